"""Decide who may answer for a plan: people by name, and groups of people."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from makewhole.model.errors import Problem, RefusedError
from makewhole.model.pipeline import GROUP_PREFIX, Approval

Groups = Mapping[str, tuple[str, ...]]
"""The user names of each group."""


@dataclass(frozen=True, kw_only=True)
class ApprovalRights:
    """The rights to answer. `by`: as in the pipeline file; empty: anybody whom Airflow lets answer."""

    by: tuple[str, ...]
    groups: Groups = field(default_factory=dict)

    @property
    def people(self) -> tuple[str, ...]:
        """Names of all who may answer, in order, none twice; empty: anybody."""
        return tuple(dict.fromkeys(name for entry in self.by for name in self._names(entry)))

    def allow(self, person: str) -> bool:
        """Return whether a person may answer."""
        return not self.by or person in self.people

    def __str__(self) -> str:
        """Return the rights as text: names, and groups with the people in them."""
        return ", ".join(
            f"{entry} ({', '.join(self._names(entry))})" if entry.startswith(GROUP_PREFIX) else entry
            for entry in self.by
        )

    def _names(self, entry: str) -> tuple[str, ...]:
        return self.groups[entry.removeprefix(GROUP_PREFIX)] if entry.startswith(GROUP_PREFIX) else (entry,)


def others_of(rights: ApprovalRights, *asked_by: str) -> tuple[str, ...]:
    """Return the people with the right to say yes, but for those who ask."""
    return tuple(name for name in rights.people if name not in asked_by)


def rights_of(policy: Approval, groups: Groups) -> ApprovalRights:
    """Return the rights that a pipeline's policy gives.

    Raises:
        RefusedError: it names a group that does not exist or is empty; that must not become a right for anybody.
    """
    problem = problem_of_groups(policy, groups, "pipeline file")
    if problem is not None:
        raise RefusedError(f"{problem.path} {problem.found}. {problem.remedy}")
    return ApprovalRights(by=policy.by, groups=groups)


def problem_of_groups(policy: Approval, groups: Groups, file: str) -> Problem | None:
    """Return that a policy names groups without a person in them, as a problem of its file; None: it names none."""
    named = [entry.removeprefix(GROUP_PREFIX) for entry in policy.by if entry.startswith(GROUP_PREFIX)]
    absent = [name for name in named if not groups.get(name)]
    if not absent:
        return None
    return Problem(
        file=file,
        path="compensation.approval.by",
        found=f"names group {', '.join(absent)}, and the file of MAKEWHOLE_GROUPS has no person in it; no answer is "
        "possible",
        remedy="Write the group there, or name people in the pipeline file",
    )
