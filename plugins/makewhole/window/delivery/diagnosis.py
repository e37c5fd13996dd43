"""Describe what weakens the delivery that a pipeline claims, and which transactions wait for their end, as one
document: what `makewhole doctor --json` prints, asked from where the connections are."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from makewhole.config.connections import from_environment
from makewhole.model.connection import Connection
from makewhole.model.errors import ConfigurationError
from makewhole.model.pipeline import Pipeline
from makewhole.window.delivery.examine import Examination, examine
from makewhole.window.delivery.transactions_document import transactions_document
from makewhole.window.unsettled import look_for_unsettled


def diagnose(pipeline: Pipeline) -> dict[str, Any]:
    """Ask every system of a pipeline that this machine has connections to. Nothing is written, and nothing is settled.

    Returns:
        `pipeline`; `claims` (`hop`, `from`, `to`, `delivery`, `is_derived`); `findings` (`severity`, `thing`,
        `setting`, `value`, `expected`, `because`, `remedy`, `fault`); `producers` by topic; `prepared`, `open` and
        `sinks`; and `problems`: `point`, `problem` (why it could not be asked), `is_connected` (this machine has its
        connection).
    """
    connections, absent = _reached(pipeline)
    examined = examine(pipeline, connections)
    unsettled = look_for_unsettled(_without(pipeline, absent), connections)
    problems = dict.fromkeys([*absent.items(), *examined.problems, *unsettled.problems])
    return {
        "pipeline": pipeline.name,
        **_document(examined),
        **transactions_document(unsettled, datetime.now(UTC)),
        "problems": [
            {"point": name, "problem": problem, "is_connected": absent.get(name) != problem}
            for name, problem in problems
        ],
    }


def _reached(pipeline: Pipeline) -> tuple[dict[str, Connection], dict[str, str]]:
    """Return the connections that this machine has, and, by point, why it lacks those of others."""
    connections: dict[str, Connection] = {}
    absent: dict[str, str] = {}
    seconds = pipeline.time_limits.longest.total_seconds()
    for point in pipeline.points.values():
        try:
            connections[point.connection] = from_environment(point.connection).limited(seconds)
        except ConfigurationError as error:
            absent[point.name] = str(error)
    return connections, absent


def _without(pipeline: Pipeline, absent: Iterable[str]) -> Pipeline:
    """Return a pipeline without points that cannot be reached from here, and without the hops at them."""
    gone = frozenset(absent)
    if not gone:
        return pipeline
    points = {name: point for name, point in pipeline.points.items() if name not in gone}
    hops = tuple(hop for hop in pipeline.hops if not gone & {hop.source, hop.target})
    return replace(pipeline, points=points, hops=hops)


def _document(examined: Examination) -> dict[str, Any]:
    return {
        "claims": [
            {
                "hop": claim.hop.name,
                "from": claim.hop.source,
                "to": claim.hop.target,
                "delivery": claim.delivery.value,
                "is_derived": claim.is_derived,
            }
            for claim in examined.claims
        ],
        "findings": [
            {
                "severity": weakness.severity.value,
                "thing": weakness.thing,
                "setting": weakness.setting,
                "value": weakness.value,
                "expected": weakness.expected,
                "because": weakness.because,
                "remedy": weakness.remedy,
                "fault": weakness.fault.place,
            }
            for weakness in examined.weaknesses
        ],
        "producers": {topic: dict(producers) for topic, producers in examined.producers.items()},
    }
