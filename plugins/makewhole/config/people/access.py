"""Read `access` of a pipeline file: which roles of Airflow may do what with the DAGs of its pipeline."""

import re
from dataclasses import fields

from makewhole.config.tree import Section
from makewhole.config.values import UnfitError, shown
from makewhole.model.people.access import DagAccess

_ROLE = re.compile(r"(?=\S)[^\x00-\x1f\x7f]{1,64}(?<=\S)")
_ACTS = tuple(act.name for act in fields(DagAccess))


def read_access(top: Section) -> DagAccess | None:
    """Return the roles that the file names; None: it leaves rights to Airflow, and forms serve several pipelines."""
    place = top.get("access")
    section = place.section() if place else None
    if section is None:
        return None
    section.only(*_ACTS)
    named = {act: roles.words(_role) or () for act in _ACTS if (roles := section.get(act)) is not None}
    return DagAccess(**named)


def _role(text: str) -> str:
    if not _ROLE.fullmatch(text):
        raise UnfitError(
            f"{shown(text)} is not the name of a role",
            "Use 1 to 64 printable characters, as Airflow's auth manager has it",
        )
    return text
