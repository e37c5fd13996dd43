"""Read `access` of a pipeline file: which roles of Airflow may do what with the DAGs of its pipeline."""

from collections.abc import Iterable
from dataclasses import fields

from makewhole.config import values
from makewhole.config.people.groups import VARIABLE, read_roles
from makewhole.config.tree import Section
from makewhole.config.values import shown
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.people.access import DagAccess
from makewhole.model.pipeline import Pipeline

_ACTS = tuple(act.name for act in fields(DagAccess))


def read_access(top: Section) -> DagAccess | None:
    """Return the roles that the file names; None: it leaves rights to Airflow, and forms serve several pipelines."""
    place = top.get("access")
    section = place.section() if place else None
    if section is None:
        return None
    section.only(*_ACTS)
    named = {act: roles.words(values.role) or () for act in _ACTS if (roles := section.get(act)) is not None}
    return DagAccess(**named)


def problems_of_roles(pipelines: Iterable[Pipeline]) -> tuple[Problem, ...]:
    """Return the roles of pipelines that the deployment does not list: they are given no right. Airflow takes away all
    DAGs of a file, those of other pipelines too, where one of them names a role that its auth manager does not have."""
    guarded = [pipeline for pipeline in pipelines if pipeline.access is not None]
    try:
        known = read_roles() if guarded else frozenset()
    except ConfigurationError as error:
        return tuple(error.problems)
    return tuple(
        Problem(
            file=f"pipeline {pipeline.name}",
            path=f"access.{act}",
            found=f"{shown(role)} is not among the roles in the file of {VARIABLE}, and is given no right",
            remedy="Write it there, below 'roles', when Airflow's auth manager has it; or take it out here",
        )
        for pipeline in guarded
        for act in _ACTS
        for role in getattr(pipeline.access, act)
        if role not in known
    )
