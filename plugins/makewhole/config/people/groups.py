"""Read the groups of people that pipeline files may name as approvers, and the roles to which they may give rights on
their DAGs: one YAML file, `MAKEWHOLE_GROUPS`.

    groups:
      payments: [anna, ben]
    roles: [payments, Data Ops]

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
    return _read()[0]


def read_roles() -> frozenset[str]:
    """Return the roles that the file says Airflow's auth manager has; none where the variable is not set.

    Raises:
        ConfigurationError: the file has problems.
    """
    return _read()[1]


def _read() -> tuple[dict[str, tuple[str, ...]], frozenset[str]]:
    name = os.environ.get(VARIABLE, "").strip()
    if not name:
        return {}, frozenset()
    path = Path(name).expanduser()
    problems = Problems(file=str(path))
    top = read_tree(path, problems)
    groups_and_roles = (_groups(top), _roles(top)) if top else ({}, frozenset())
    if problems.listed():
        raise ConfigurationError(problems.listed())
    return groups_and_roles


def _groups(top: Section) -> dict[str, tuple[str, ...]]:
    top.only("groups", "roles")
    if top.has("roles") and not top.has("groups"):
        return {}
    place = top.need("groups", "Write the groups below it, each with a list of user names")
    section = place.section() if place else None
    return {name: members.words(values.user) or () for name, members in section or ()}


def _roles(top: Section) -> frozenset[str]:
    place = top.get("roles")
    return frozenset((place.words(values.role) or ()) if place else ())
