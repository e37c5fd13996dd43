"""Ask, for the command line, everything that windows of a pipeline need: the service's parts and Airflow's."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx

from makewhole.cli.airflow_api import URL_VARIABLE, AirflowApi, AirflowRefusedError, access, airflow
from makewhole.cli.environment import console
from makewhole.cli.runs.ask import ask_airflow
from makewhole.cli.runs.pipeline_dags import import_error_of, wait_for_pipeline
from makewhole.config.connection_text import find_connection, variable_of
from makewhole.config.connections import fields_of
from makewhole.model.closing import ClosingContext
from makewhole.model.errors import ConfigurationError, MakewholeError, Problem
from makewhole.model.pipeline import Pipeline
from makewhole.orchestration.access import oncall_dag_of
from makewhole.orchestration.task_ids import ONCALL_DAG, READINESS, reconcile_dag_id
from makewhole.signing.key_files import KEY_CONNECTION, KEY_VARIABLE, signing_key_from_environment
from makewhole.window.readiness.mistakes import Readiness, Weight
from makewhole.window.readiness.points import look_at_points
from makewhole.window.readiness.service import look_at_chain, look_at_journal, look_at_signing_key, look_at_storage
from makewhole.window.readiness.spark import SPARK_CONNECTION, look_at_spark

_errors = console(stderr=True)
_SECONDS_TO_READ = 75.0  # that Airflow may take to read a pipeline file that is new


@dataclass(frozen=True, kw_only=True)
class _RemoteConnection:
    """A connection as Airflow knows it: its fields without secrets, where it shows them; and why it cannot be asked
    from here, "" where there is none."""

    fields: Mapping[str, Any] | None = None
    why: str = ""


class Live(ClosingContext):
    """The systems that can be asked from here. Airflow is asked over REST, where it is known and answers; `in_airflow`:
    and a task of it asks the others, in place of this machine."""

    def __init__(self, service: Readiness, *, in_airflow: bool = False) -> None:
        self._service, self._stack, self._in_airflow = service, ExitStack(), in_airflow
        self._api: AirflowApi | None = None
        self._known: dict[str, _RemoteConnection] = {}
        with service.asking("Airflow", URL_VARIABLE):
            api = self._stack.enter_context(airflow(access()))
            with suppress(AirflowRefusedError):  # a refusal is Airflow's answer, too
                api.get("/dags", limit=1)
            self._api = api

    def close(self) -> None:
        """Close the connection to Airflow."""
        self._stack.close()

    def look_at_service(self) -> None:
        """Note what is wrong with what all pipelines need."""
        readiness = self._service
        if not self._in_airflow:
            look_at_journal(readiness)
            look_at_storage(readiness)
            self._look_at_key(readiness)
            self._look_at_spark(readiness)
        if self._api is not None:
            self._look_at_pools(readiness, self._api)

    def look_at_pipeline(self, readiness: Readiness, pipeline: Pipeline) -> None:
        """Note what is wrong with what a pipeline names, with its certificates, and with its DAG."""
        if self._in_airflow:
            self._ask_for_pipeline(readiness, pipeline)
            return
        look_at_chain(readiness, self._service, pipeline.name)
        named = {name for point in pipeline.points.values() for name in point.connections}
        kept = {name: self._remote(name) for name in named if not _is_here(name)}
        look_at_points(readiness, pipeline, {name: kept[name].why for name in kept if kept[name].why})
        if self._api is not None:
            self._look_at_dag(readiness, pipeline, self._api)

    def _ask_for_pipeline(self, readiness: Readiness, pipeline: Pipeline) -> None:
        """Note what is wrong with the DAG of a pipeline, and what a task asks then."""
        if self._api is None:
            readiness.not_asked.append(f"everything that a window of {pipeline.name} needs: Airflow cannot be asked")
            return
        self._look_at_dag(readiness, pipeline, self._api)
        if not readiness.failed:
            with readiness.asking(f"a task of Airflow about {pipeline.name}", "Airflow"):
                readiness.add(ask_airflow(pipeline, READINESS, _errors))

    def _look_at_dag(self, readiness: Readiness, pipeline: Pipeline, api: AirflowApi) -> None:
        with _asking_airflow(readiness, f"DAG of {pipeline.name}"):
            wait_for_pipeline(api, pipeline.name, oncall_dag_of(pipeline), _SECONDS_TO_READ)
            scheduled = reconcile_dag_id(pipeline.name)
            if pipeline.schedule is not None and api.has_dag(scheduled) and api.get(f"/dags/{scheduled}")["is_paused"]:
                paused = "is paused, as new DAGs are: no window comes by the schedule of the file"
                remedy = f"Release it when its windows are wanted: airflow dags unpause {scheduled}"
                readiness.note(Problem(file="Airflow", path=scheduled, found=paused, remedy=remedy), Weight.ADVICE)

    def _look_at_key(self, readiness: Readiness) -> None:
        if not os.environ.get(KEY_VARIABLE, "").strip() and (why := self._remote(KEY_CONNECTION).why):
            readiness.not_asked.append(f"signing key, as the password of connection {KEY_CONNECTION}: {why}")
            return
        look_at_signing_key(readiness, signing_key_from_environment)

    def _look_at_spark(self, readiness: Readiness) -> None:
        """Check the connection of Spark, here or at Airflow."""
        if _is_here(SPARK_CONNECTION):
            with readiness.asking(f"connection {SPARK_CONNECTION}", "environment"):
                fields = fields_of(SPARK_CONNECTION)
                look_at_spark(readiness, fields)
        elif (there := self._remote(SPARK_CONNECTION)).fields is not None or (self._api is not None and not there.why):
            look_at_spark(readiness, there.fields)
        else:
            why = there.why or "neither here, nor is Airflow known"
            readiness.not_asked.append(f"connection {SPARK_CONNECTION}: {why}")
        readiness.not_asked.append("Spark on Airflow's workers: the first task of a window asks there")

    def _look_at_pools(self, readiness: Readiness, api: AirflowApi) -> None:
        """Note pools of our tasks that do not exist, or have no slot: their tasks would wait for ever."""
        with _asking_airflow(readiness, "pools"):
            slots = {pool["name"]: pool["slots"] for pool in api.get_all("/pools", "pools")}
            # The forms of all pipelines have the same tasks.
            form = next((dag["dag_id"] for dag in api.get("/dags", dag_id_pattern=ONCALL_DAG, limit=1)["dags"]), None)
            if import_error_of(api) is not None or form is None:
                return
            tasks = api.get(f"/dags/{form}/tasks")["tasks"]
            for pool in sorted({task["pool"] for task in tasks}):
                if slots.get(pool, 0) == 0:
                    text = "has no slot" if pool in slots else "does not exist"
                    remedy = f"Run: airflow pools set {pool} 16 makewhole"
                    readiness.note(Problem(file="Airflow", path=f"pool {pool}", found=text, remedy=remedy))

    def _remote(self, name: str) -> _RemoteConnection:
        """Return what is known of a connection that this machine does not describe."""
        if name not in self._known:
            self._known[name] = self._ask_for(name)
        return self._known[name]

    def _ask_for(self, name: str) -> _RemoteConnection:
        """Ask Airflow for a connection. It looks in its database alone: another backend of secrets, or the environment
        of its workers, may have what that has not, unless the service is the stack on this machine."""
        is_remote = bool(os.environ.get(URL_VARIABLE))
        if self._api is None:
            return _RemoteConnection(
                why="not here, and Airflow, which may have it, cannot be asked" if is_remote else ""
            )
        try:
            return _RemoteConnection(
                fields=self._api.get(f"/connections/{name}"), why="Airflow has it, and this machine does not"
            )
        except AirflowRefusedError as error:
            if error.status != httpx.codes.NOT_FOUND:
                return _RemoteConnection(
                    why=f"not here, and Airflow does not say whether it has it (HTTP {error.status})"
                )
        except MakewholeError:
            return _RemoteConnection(why="not here, and Airflow, which may have it, cannot be asked")
        where = f"a secrets backend, or {variable_of(name)} of its workers, may"
        return _RemoteConnection(why=f"not here, and Airflow's database has it not; {where}" if is_remote else "")


@contextmanager
def _asking_airflow(readiness: Readiness, thing: str) -> Iterator[None]:
    """Run a block that asks Airflow for a thing: what this user may not see is not asked."""
    with readiness.asking(thing, "Airflow"):
        try:
            yield
        except AirflowRefusedError as error:
            if error.status != httpx.codes.FORBIDDEN:
                raise
            readiness.asked.remove(thing)
            readiness.not_asked.append(f"{thing}: Airflow does not show it to this user (HTTP {error.status})")


def _is_here(name: str) -> bool:
    """Return whether this machine describes a connection, well or not."""
    try:
        return bool(find_connection(name).described)
    except ConfigurationError:
        return True
