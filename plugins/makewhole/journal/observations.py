"""Read and write what was known to exist at a point, and when: an absence counts only from then on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from psycopg2.extras import Json

from makewhole.sql import PgConnection, record, records, single_value, statements_of

_run = statements_of("window")


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The extent of a point at a moment: offsets below `stable_offsets`, rows visible in `pg_snapshot`.

    `leader_epochs`: by partition, those of the last records below its stable offset, as a window's range has them.
    `place`: where the table stood; elsewhere `pg_snapshot` means nothing.
    """

    point: str
    observed_at: datetime
    topic_id: str | None = None
    stable_offsets: Mapping[int, int] | None = None
    leader_epochs: Mapping[int, Sequence[tuple[int, int]]] | None = None
    pg_snapshot: str | None = None
    place: str | None = None


@dataclass(frozen=True, kw_only=True)
class Lane:
    """A partition of one incarnation and lineage of a topic, with the first offset that is read, and since when."""

    topic_id: str
    partition: int
    lineage: int
    lo: int
    noticed_at: datetime


def moment_now(journal: PgConnection) -> datetime:
    """Return the time by the journal's clock: workers of which one observes and another one judges have it in common,
    however far their own are apart."""
    moment: datetime = single_value(_run(journal, "moment_now"))
    return moment.astimezone(UTC)


def put(journal: PgConnection, pipeline: str, observation: Observation) -> None:
    """Write an observation."""
    offsets, epochs = observation.stable_offsets, observation.leader_epochs
    _run(
        journal,
        "observe",
        pipeline=pipeline,
        point=observation.point,
        observed_at=observation.observed_at,
        topic_id=observation.topic_id,
        stable_offsets=None if offsets is None else Json({str(part): offset for part, offset in offsets.items()}),
        leader_epochs=None if epochs is None else Json({str(part): list(ends) for part, ends in epochs.items()}),
        pg_snapshot=observation.pg_snapshot,
        place=observation.place,
    )


def since(journal: PgConnection, pipeline: str, point: str, until: datetime) -> list[Observation]:
    """Return what was observed at a point last up to a moment, and everything since, oldest first, as far as it is of
    the log that exists now.

    What was seen before a truncation or a new incarnation was noticed does not hold for the records that came with it.
    """
    rows = _run(journal, "observations_since", pipeline=pipeline, point=point, until=until)
    return _observed(journal, pipeline, point, rows)


def last(journal: PgConnection, pipeline: str, point: str, until: datetime) -> Observation | None:
    """Return what was observed at a point last, up to a moment, as far as it is of the log that exists now; None
    without any."""
    rows = _run(journal, "last_observation", pipeline=pipeline, point=point, until=until)
    return next(iter(_observed(journal, pipeline, point, rows)), None)


def _observed(journal: PgConnection, pipeline: str, point: str, rows: Iterable[Any]) -> list[Observation]:
    lanes = records(Lane, _run(journal, "lanes", pipeline=pipeline, point=point))
    # Without the epochs, of which nothing is asked here.
    return [
        record(Observation, row, point=point, stable_offsets=_still_seen(lanes, row), leader_epochs=None)
        for row in rows
    ]


def _still_seen(lanes: Sequence[Lane], row: Any) -> dict[int, int] | None:
    offsets = row.stable_offsets
    return None if offsets is None else still_seen(lanes, row.topic_id, row.observed_at, offsets)


def still_seen(
    lanes: Sequence[Lane], topic_id: str | None, observed_at: datetime, offsets: Mapping[str, int]
) -> dict[int, int]:
    """Cut the stable offsets by partition that were observed once to what is still of the log that exists now."""
    if lanes and topic_id != lanes[-1].topic_id:
        newest = lanes[-1].topic_id
        if observed_at < min(lane.noticed_at for lane in lanes if lane.topic_id == newest):
            return {}
    stable = {int(partition): offset for partition, offset in offsets.items()}
    for lane in lanes:
        is_later = lane.lineage > 0 and lane.topic_id == topic_id and observed_at < lane.noticed_at
        if is_later and lane.partition in stable:
            stable[lane.partition] = min(stable[lane.partition], lane.lo)
    return stable
