"""Report to OpenLineage what a window has read and what is true of it, where Airflow's provider of OpenLineage is
installed: each point as a dataset with its rows, and an assertion for each verdict that the gate bounds.

The provider asks for it in a process that it forks when the task has ended, so `certify` leaves it in memory. No key
and no value is in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from makewhole.model.connection import KafkaConnection, PostgresConnection
from makewhole.model.points import TopicPoint
from makewhole.model.window import WindowState
from makewhole.orchestration.task_ids import certified_asset

if TYPE_CHECKING:
    from makewhole.model.connection import Connection
    from makewhole.model.hops import Hop
    from makewhole.model.pipeline import Pipeline
    from makewhole.model.verdict import HopCounts

_BOUNDED = ("missing", "duplicate", "mismatched", "unexpected", "conflict")
_LEFT: list["WindowLineage"] = []


@dataclass(frozen=True, kw_only=True)
class Assertion:
    """An assertion about a point, whether it holds, and why: what was expected, and what there is."""

    name: str
    holds: bool
    expected: str
    actual: str


@dataclass(frozen=True, kw_only=True)
class PointLineage:
    """A point as a dataset. `rows` that the window has read of it; None: nothing of it was judged. `assertions` are of
    the hops that lead into it, and one is that the window is certified."""

    namespace: str
    name: str
    rows: int | None
    assertions: Sequence[Assertion]


@dataclass(frozen=True, kw_only=True)
class WindowLineage:
    """The points that a window has read, and the asset that its certificate updates; no asset where it has none."""

    points: Sequence[PointLineage]
    asset: tuple[str, str] | None


def is_reported() -> bool:
    """Return whether this Airflow has its provider of OpenLineage."""
    try:
        return find_spec("airflow.providers.openlineage") is not None
    except ModuleNotFoundError:
        return False


def lineage_of(
    pipeline: "Pipeline",
    connections: Mapping[str, "Connection"],
    counts: Mapping[str, "HopCounts"],
    accepted: Mapping[str, Mapping[str, int]],
    state: WindowState,
) -> WindowLineage:
    """Return what is reported of a window: `counts` of each hop that was judged, after its repair where there was one,
    `accepted` findings by hop and verdict."""
    certified = Assertion(
        name="certified", holds=state is WindowState.CERTIFIED, expected=WindowState.CERTIFIED.value, actual=state.value
    )
    points = []
    for name, point in pipeline.points.items():
        into = [hop for hop in pipeline.hops if hop.target == name and hop.name in counts]
        out_of = [hop for hop in pipeline.hops if hop.source == name and hop.name in counts]
        rows = [counts[hop.name].target_rows for hop in into] + [counts[hop.name].source_rows for hop in out_of]
        namespace, dataset = _dataset(point, connections[point.connection])
        points.append(
            PointLineage(
                namespace=namespace,
                name=dataset,
                rows=max(rows, default=None),
                assertions=[
                    certified,
                    *(item for hop in into for item in _assertions(pipeline, hop, counts[hop.name], accepted)),
                ],
            )
        )
    asset = certified_asset(pipeline.name) if state is WindowState.CERTIFIED else None
    return WindowLineage(points=points, asset=asset)


def leave(lineage: WindowLineage) -> None:
    """Keep what the provider asks for when the task has ended."""
    _LEFT[:] = [lineage]


def add_lineage(task: Any) -> None:
    """Have the provider ask a task, where it is installed, however it ends."""
    if is_reported():
        operator = getattr(task, "operator", task)
        operator.get_openlineage_facets_on_complete = facets
        operator.get_openlineage_facets_on_failure = facets


def facets(task_instance: Any) -> Any:  # noqa: ARG001 - as the provider calls it
    """Return what was left, as the provider's `OperatorLineage`."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset

    lineage = _LEFT[-1] if _LEFT else WindowLineage(points=[], asset=None)
    inputs = [
        InputDataset(namespace=point.namespace, name=point.name, inputFacets=_facets(point)) for point in lineage.points
    ]
    outputs = []
    if lineage.asset is not None:
        scheme, _, path = lineage.asset[1].partition("://")
        outputs = [OutputDataset(namespace=scheme, name=path)]
    return OperatorLineage(inputs=inputs, outputs=outputs)


def _facets(point: PointLineage) -> dict[str, Any]:
    """Return the facets of a dataset; without its rows where nothing of it was judged."""
    from openlineage.client.facet_v2 import data_quality_assertions_dataset, data_quality_metrics_input_dataset

    assertions = [
        data_quality_assertions_dataset.Assertion(
            assertion=item.name, success=item.holds, severity="error", expected=item.expected, actual=item.actual
        )
        for item in point.assertions
    ]
    made: dict[str, Any] = {
        "dataQualityAssertions": data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
            assertions=assertions
        )
    }
    if point.rows is not None:
        metrics = data_quality_metrics_input_dataset.DataQualityMetricsInputDatasetFacet
        made["dataQualityMetrics"] = metrics(rowCount=point.rows, columnMetrics={})
    return made


def _assertions(
    pipeline: "Pipeline", hop: "Hop", counts: "HopCounts", accepted: Mapping[str, Mapping[str, int]]
) -> Sequence[Assertion]:
    """Return what the gate bounds on a hop. What is not known is never allowed, and silence is not proof."""
    bounds = {verdict: getattr(pipeline.gate, verdict) for verdict in _BOUNDED} | {"undecidable": 0}
    taken, hop_name = accepted.get(hop.name, {}), f"{hop.source}-{hop.target}"
    least = 0 if pipeline.gate.allow_empty else 1
    numbers = {verdict: getattr(counts, verdict) - taken.get(verdict, 0) for verdict in bounds}
    judged = Assertion(
        name=f"{hop_name}.judged",
        holds=counts.judged >= least,
        expected=f"at least {least}",
        actual=str(counts.judged),
    )
    return [
        judged,
        *(
            Assertion(
                name=f"{hop_name}.{verdict}",
                holds=numbers[verdict] <= allowed,
                expected=f"at most {allowed}",
                actual=str(numbers[verdict]),
            )
            for verdict, allowed in bounds.items()
        ),
    ]


def _dataset(point: Any, connection: "Connection") -> tuple[str, str]:
    """Return namespace and name of a point's dataset, by OpenLineage's rules for Kafka and PostgreSQL; those of another
    system go by its connection."""
    from makewhole.kinds import server_of

    server: Any = server_of(connection)
    if isinstance(point, TopicPoint) and isinstance(connection, KafkaConnection):
        return f"kafka://{server[0]}", point.topic
    if isinstance(connection, PostgresConnection):
        host, port = server.get("host", "localhost"), server.get("port", "5432")
        parts = (server.get("dbname"), *point.table_names)
        return f"postgres://{host}:{port}", ".".join(part for part in parts if part)
    return f"makewhole://{connection.id}", point.topic if isinstance(point, TopicPoint) else point.table
