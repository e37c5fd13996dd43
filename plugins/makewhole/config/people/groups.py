"""Read the groups of people that pipeline files may name as approvers: one YAML file, `MAKEWHOLE_GROUPS`.

    groups:
      payments: [anna, ben]

Airflow gives a task the name of who answered and nothing of their roles, whatever its auth manager (docs/adr/0021).
"""

import os
from collections.abc import Mapping
from pathlib import Path

from makewhole.config import values
from makewhole.config.tree import Problems, Section, read_tree
from makewhole.model.errors import ConfigurationError

VARIABLE = "MAKEWHOLE_GROUPS"


def read_groups() -> Mapping[str, tuple[str, ...]]:
    """Return the user names of each group; none where the variable is not set.

    Raises:
        ConfigurationError: the file has problems.
    """
    name = os.environ.get(VARIABLE, "").strip()
    if not name:
        return {}
    path = Path(name).expanduser()
    problems = Problems(file=str(path))
    groups = _groups(read_tree(path, problems))
    if problems.listed():
        raise ConfigurationError(problems.listed())
    return groups


def _groups(top: Section | None) -> dict[str, tuple[str, ...]]:
    if top is None:
        return {}
    top.only("groups")
    place = top.need("groups", "Write the groups below it, each with a list of user names")
    section = place.section() if place else None
    return {name: members.words(values.user) or () for name, members in section or ()}
