"""Give the DAGs of a pipeline the rights that its file names, and find the DAG and the pipeline of a request.

A right on a DAG that serves several pipelines is one on all of them. So a pipeline whose file has `access` is in none.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from makewhole.config.people.groups import read_roles
from makewhole.config.pipeline_file import find_pipeline
from makewhole.model.errors import ConfigurationError, RequestRefusedError
from makewhole.model.pipeline import Pipeline
from makewhole.orchestration import task_ids

_LOOK, _ACT = ("can_read",), ("can_read", "can_edit")
_START = ("can_read", "can_create")
RESOURCES = ("DAGs", "DAG Runs")
"""The two kinds of things for which Flask-AppBuilder's auth manager has rights by DAG."""


def access_control(pipeline: Pipeline) -> dict[str, dict[str, set[str]]] | None:
    """Return the rights on each DAG of a pipeline by role, as Airflow's argument of this name takes them; None: they
    are left as they are. Flask-AppBuilder's auth manager keeps them; others do not read them. A role that the
    deployment does not list has none."""
    access = pipeline.access
    if access is None:
        return None
    known = _listed_roles()
    rights: dict[str, dict[str, set[str]]] = {}
    for roles, actions in (
        (access.read, (_LOOK, _LOOK)),
        (access.approve, (_ACT, _LOOK)),
        (access.run, (_ACT, _START)),
    ):
        for role in (role for role in roles if role in known):  # in the file's order, the same at each reading
            given = rights.setdefault(role, {resource: set() for resource in RESOURCES})
            for resource, allowed in zip(RESOURCES, actions, strict=True):
                given[resource] |= set(allowed)
    return rights


def _listed_roles() -> frozenset[str]:
    """Return the roles that the deployment lists; none where its file has problems, which an import error of
    `dags/makewhole_pipeline_files.py` shows."""
    try:
        return read_roles()
    except ConfigurationError:
        return frozenset()


def with_shared_forms(pipelines: Iterable[Pipeline]) -> list[Pipeline]:
    """Return those that the forms for several pipelines offer."""
    return [pipeline for pipeline in pipelines if pipeline.access is None]


def with_own_forms(pipelines: Iterable[Pipeline]) -> list[Pipeline]:
    """Return those that have forms of their own."""
    return [pipeline for pipeline in pipelines if pipeline.access is not None]


def oncall_dag_of(pipeline: Pipeline) -> str:
    """Return the id of the DAG with the on-call form of a pipeline."""
    return task_ids.ONCALL_DAG if pipeline.access is None else task_ids.own_oncall_dag_id(pipeline.name)


def accept_dag_of(pipeline: Pipeline) -> str:
    """Return the id of the DAG that accepts findings of a pipeline."""
    return task_ids.ACCEPT_DAG if pipeline.access is None else task_ids.own_accept_dag_id(pipeline.name)


def ask_dag_of(pipeline: Pipeline) -> str:
    """Return the id of the DAG that asks about a pipeline."""
    return task_ids.ASK_DAG if pipeline.access is None else task_ids.own_ask_dag_id(pipeline.name)


def requested_name(context: Mapping[str, Any]) -> str:
    """Return the pipeline of a run: that of its DAG, whatever its form says; of a DAG for several, that of the form.

    Raises:
        RequestRefusedError: the form names one that has DAGs of its own.
    """
    dag = str(context["ti"].dag_id)
    own = task_ids.pipeline_of_dag(dag)
    if own is not None:
        return own
    name = str(context["params"]["pipeline"])
    if find_pipeline(name).access is not None:
        raise RequestRefusedError(
            f"{dag} cannot be run for {name}: its file names who may (`access`), and it has DAGs of its own; use "
            f"{dag}_{name}"
        )
    return name
