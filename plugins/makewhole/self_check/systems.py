"""Find the systems of a self-check: the connections that its file names, its topic and its tables."""

from collections.abc import Mapping
from dataclasses import dataclass

from makewhole.model.connection import Connection, KafkaConnection, PostgresConnection, kafka_of
from makewhole.model.errors import ConfigurationError, Problem, RefusedError
from makewhole.model.pipeline import Pipeline
from makewhole.model.self_check.settings import SelfCheck
from makewhole.postgres.scratch_tables import ScratchTables


@dataclass(frozen=True, kw_only=True)
class ScratchSystems:
    """The systems of a self-check: its settings, the connection of its topic, and its tables."""

    settings: SelfCheck
    kafka: KafkaConnection
    tables: ScratchTables

    @property
    def topic(self) -> str:
        """The name of its topic."""
        return self.settings.topic


def settings_of(pipeline: Pipeline) -> SelfCheck:
    """Return the settings of a self-check's pipeline.

    Raises:
        RefusedError: it is none.
    """
    if pipeline.self_check is None:
        raise RefusedError(f"{pipeline.name} is no self-check: its file has no `self_check`, and nothing is planted")
    return pipeline.self_check


def systems_of(pipeline: Pipeline, connections: Mapping[str, Connection]) -> ScratchSystems:
    """Return the systems of a self-check.

    Raises:
        ConfigurationError: a connection is of another kind.
    """
    settings = settings_of(pipeline)
    postgres = connections[settings.postgres]
    if not isinstance(postgres, PostgresConnection):
        problem = Problem(
            file="pipeline file",
            path="self_check.postgres",
            found=f"connection {settings.postgres} is none of a PostgreSQL",
            remedy="Name one of the type postgres",
        )
        raise ConfigurationError([problem])
    tables = ScratchTables(connection=postgres, schema=settings.schema)
    return ScratchSystems(settings=settings, kafka=kafka_of(connections[settings.kafka]), tables=tables)
