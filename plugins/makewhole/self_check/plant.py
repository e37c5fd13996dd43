"""Plant the faults of a round of a self-check, once, whatever ends in the middle of it.

A round is written before anything is planted. Each act after that is done once, or is the same when it is done again:
who takes a round up goes on with what is left of it.
"""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from makewhole.journal.database import connect
from makewhole.journal.results import self_check_rounds
from makewhole.journal.results.self_check_rounds import PlantedRound
from makewhole.kafka import scratch_topic
from makewhole.kafka.offsets import stable_offsets
from makewhole.kafka.scratch_topic import ScratchRecord, ScratchRecords
from makewhole.model.connection import Connection
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Pipeline
from makewhole.model.self_check.planted import SentRow, draw, keys_of, rows_of
from makewhole.model.self_check.settings import TOPIC_HOP
from makewhole.model.verdict import Verdict
from makewhole.postgres.scratch_tables import WITH_OTHER_NAMES, ScratchRow
from makewhole.self_check.load import load
from makewhole.self_check.systems import ScratchSystems, systems_of

logger = logging.getLogger(__name__)
_LOOKED_AT = 100
_CLOCKS_APART = timedelta(milliseconds=10)


def plant(pipeline: Pipeline, connections: Mapping[str, Connection], run: str) -> PlantedRound:
    """Plant the faults of the round of a run; return it. The round of an earlier run that no window has covered yet is
    gone on with instead.

    Raises:
        RefusedError: the round of this run was compared already, or topic or schema are not the self-check's own.
        TransientError: a server does not answer.
    """
    with connect() as journal:
        self_check_rounds.lock(journal, pipeline.name)
        known = _rounds(pipeline.name)
        mine = next((planted for planted in known if planted.run == run), None)
        if mine is not None and mine.compared_at is not None:
            raise RefusedError(
                f"round {mine.round} of run {run} was compared already; start a new run of the DAG for another round"
            )
        waiting = next((planted for planted in known if planted.compared_at is None and planted.number is None), None)
        current = mine or waiting
        systems = systems_of(pipeline, connections)
        made_at = self_check_rounds.journal_mark(journal)
        mark = f"the scratch tables of makewhole's self-check {pipeline.name}, of the journal of {made_at}"
        systems.tables.make(mark, is_known=bool(known))
        _require_own_topic(systems)
        if current is None:
            current = _begin(pipeline, systems, run, known[0].round + 1 if known else 1)
        elif current.planted_at is None:
            logger.info("round %d was begun by run %s and is gone on with", current.round, current.run)
        if current.planted_at is None:
            _plant_faults(pipeline, systems, current)
        purged = systems.tables.purge(datetime.now(UTC) - systems.settings.keep)
        logger.info("%d rows older than %s were removed", purged, systems.settings.keep)
    return next(planted for planted in _rounds(pipeline.name) if planted.round == current.round)


def _rounds(name: str) -> list[PlantedRound]:
    with connect() as journal:
        return self_check_rounds.newest(journal, name, _LOOKED_AT)


def _require_own_topic(systems: ScratchSystems) -> None:
    """Make the self-check's topic where it was not made before.

    Raises:
        RefusedError: a topic of this name is another one, or the self-check's own is gone.
    """
    is_begun, known = systems.tables.known_topic(systems.topic)
    topic_id = scratch_topic.topic_id(systems.kafka, systems.topic)
    if known is not None:
        if topic_id != known:
            _refuse(systems, "is gone" if topic_id is None else "was made again by others", WITH_OTHER_NAMES)
        return
    if topic_id is not None and not (is_begun and scratch_topic.is_empty(systems.kafka, systems.topic)):
        _refuse(systems, "is there already and is not of this self-check", "name another `topic`")
    systems.tables.note_topic(systems.topic, None)
    made = topic_id or scratch_topic.make_topic(systems.kafka, systems.topic, systems.settings.keep)
    systems.tables.note_topic(systems.topic, made)


def _refuse(systems: ScratchSystems, what: str, remedy: str) -> None:
    raise RefusedError(f"topic {systems.topic} of connection {systems.kafka.id} {what}; {remedy}")


def _begin(pipeline: Pipeline, systems: ScratchSystems, run: str, number: int) -> PlantedRound:
    """Draw a round by the seed of its day and write it."""
    now, settings = datetime.now(UTC), systems.settings
    name = f"{now:%Y%m%d}-{number}"
    begun = PlantedRound(
        round=number,
        run=run,
        name=name,
        records=settings.records,
        begins={str(part): end for part, end in stable_offsets(systems.kafka, systems.topic).items()},
        planted=draw(name, f"{pipeline.name} {name}", settings.records, settings.faults),
        begun_at=now,
    )
    with connect() as journal:
        self_check_rounds.begin(journal, pipeline.name, begun)
    return begun


def _plant_faults(pipeline: Pipeline, systems: ScratchSystems, current: PlantedRound) -> None:
    """Send, load and spoil what is left of a round. Everything of it has a time before the moment that is noted: the
    window that ends there covers it."""
    at = datetime.now(UTC)
    rows = rows_of(current.name, current.records)
    systems.tables.send([_ledger_row(row, at) for row in rows], at)
    lost = set(keys_of(current.planted, TOPIC_HOP, Verdict.MISSING))
    records = [_record(row, at) for row in rows if row.key not in lost]
    scratch_topic.send_once(
        systems.kafka,
        systems.topic,
        f"makewhole-self-check-{systems.topic}",
        current.round,
        ScratchRecords(records=records, time_ms=int(at.timestamp() * 1000)),
        current.offsets,
    )
    load(systems)
    systems.tables.spoil(current.name, current.planted, at)
    planted_at = max(datetime.now(UTC), at + _CLOCKS_APART)
    with connect() as journal:
        self_check_rounds.note_planted(journal, pipeline.name, current.round, planted_at)
    logger.info("round %d: %d records sent, %d faults planted", current.round, len(records), len(current.planted))


def _ledger_row(row: SentRow, at: datetime) -> ScratchRow:
    return ScratchRow(key=row.key, amount=row.amount, sent_at=at, payload=_value(row, at))


def _record(row: SentRow, at: datetime) -> ScratchRecord:
    return ScratchRecord(key=row.key.encode(), value=_value(row, at).encode())


def _value(row: SentRow, at: datetime) -> str:
    return json.dumps({"id": row.key, "amount": str(row.amount), "sent_at": at.isoformat()})
