"""Ask, for the command line, everything that windows of a pipeline need: the service's parts and Airflow's."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from makewhole.cli.airflow_api import AirflowApi, access, airflow
from makewhole.cli.runs.pipeline_dags import import_error_of, wait_for_pipeline
from makewhole.config.connection_text import find_connection
from makewhole.config.connections import fields_of
from makewhole.model.closing import ClosingContext
from makewhole.model.errors import ConfigurationError, MakewholeError, Problem
from makewhole.model.pipeline import Pipeline
from makewhole.orchestration.access import oncall_dag_of
from makewhole.orchestration.task_ids import ONCALL_DAG
from makewhole.signing.key_files import KEY_CONNECTION, KEY_VARIABLE, signing_key_from_environment
from makewhole.window.readiness.mistakes import Readiness
from makewhole.window.readiness.points import look_at_points
from makewhole.window.readiness.service import look_at_chain, look_at_journal, look_at_signing_key, look_at_storage
from makewhole.window.readiness.spark import SPARK_CONNECTION, look_at_spark

_POOLS = 1000
_SECONDS_TO_READ = 40.0  # that Airflow may take to read a pipeline file that is new


class Live(ClosingContext):
    """The systems that can be asked from here. Airflow is asked over REST, where it is known and answers."""

    def __init__(self, service: Readiness) -> None:
        self._service, self._stack = service, ExitStack()
        self._api: AirflowApi | None = None
        self._known: dict[str, Mapping[str, Any] | None] = {}
        with service.asking("Airflow", "MAKEWHOLE_AIRFLOW_URL"):
            self._api = self._stack.enter_context(airflow(access()))

    def close(self) -> None:
        """Close the connection to Airflow."""
        self._stack.close()

    def look_at_service(self) -> None:
        """Note what is wrong with what all pipelines need."""
        found = self._service
        look_at_journal(found)
        look_at_storage(found)
        self._look_at_key(found)
        self._look_at_spark(found)
        if self._api is not None:
            self._look_at_pools(found, self._api)

    def look_at_pipeline(self, found: Readiness, pipeline: Pipeline) -> None:
        """Note what is wrong with what a pipeline names, with its certificates, and with its DAG."""
        look_at_chain(found, self._service, pipeline.name)
        named = {name for point in pipeline.points.values() for name in point.connections}
        elsewhere = {name for name in named if not _is_here(name) and self._airflow_has(name) is not None}
        look_at_points(found, pipeline, elsewhere)
        if self._api is not None:
            with found.asking(f"DAG of {pipeline.name}", "Airflow"):
                wait_for_pipeline(self._api, pipeline.name, oncall_dag_of(pipeline), _SECONDS_TO_READ)

    def _look_at_key(self, found: Readiness) -> None:
        if not os.environ.get(KEY_VARIABLE, "").strip() and self._airflow_has(KEY_CONNECTION) is not None:
            found.not_asked.append(f"signing key: Airflow has it, as the password of connection {KEY_CONNECTION}")
            return
        look_at_signing_key(found, signing_key_from_environment)

    def _look_at_spark(self, found: Readiness) -> None:
        """Check the connection of Spark, here or at Airflow."""
        if _is_here(SPARK_CONNECTION):
            with found.asking(f"connection {SPARK_CONNECTION}", "environment"):
                fields = fields_of(SPARK_CONNECTION)
                look_at_spark(found, fields)
        elif self._api is not None:
            look_at_spark(found, self._airflow_has(SPARK_CONNECTION))
        else:
            found.not_asked.append(f"connection {SPARK_CONNECTION}: neither here, nor is Airflow known")
        found.not_asked.append("Spark on Airflow's workers: the first task of a window asks there")

    def _look_at_pools(self, found: Readiness, api: AirflowApi) -> None:
        """Note pools of our tasks that do not exist, or have no slot: their tasks would wait for ever."""
        with found.asking("pools", "Airflow"):
            slots = {pool["name"]: pool["slots"] for pool in api.get("/pools", limit=_POOLS)["pools"]}
            # The forms of all pipelines have the same tasks.
            form = next((dag["dag_id"] for dag in api.get("/dags", dag_id_pattern=ONCALL_DAG, limit=1)["dags"]), None)
            if import_error_of(api) is not None or form is None:
                return
            tasks = api.get(f"/dags/{form}/tasks")["tasks"]
            for pool in sorted({task["pool"] for task in tasks}):
                if slots.get(pool, 0) == 0:
                    text = "has no slot" if pool in slots else "does not exist"
                    remedy = f"Run: airflow pools set {pool} 16 makewhole"
                    found.note(Problem(file="Airflow", path=f"pool {pool}", found=text, remedy=remedy))

    def _airflow_has(self, name: str) -> Mapping[str, Any] | None:
        """Return the fields of a connection that Airflow keeps, without secrets; None: it has none, or says none to
        us."""
        if self._api is not None and name not in self._known:
            try:
                self._known[name] = self._api.get(f"/connections/{name}")
            except MakewholeError:
                self._known[name] = None
        return self._known.get(name)


def _is_here(name: str) -> bool:
    """Return whether this machine describes a connection, well or not."""
    try:
        return bool(find_connection(name).described)
    except ConfigurationError:
        return True
