"""Compare, key by key, what the windows of a self-check found with what was planted, and what is left after the repair.

What is left is read in the scratch topic and tables by plain queries and a plain consumer, and not by what windows read
with.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.journal.results import self_check_rounds
from makewhole.journal.results.self_check_rounds import PlantedRound, RoundResult
from makewhole.kafka import scratch_topic
from makewhole.model.connection import Connection
from makewhole.model.pipeline import Pipeline
from makewhole.model.self_check.planted import Discrepancy, rows_of
from makewhole.model.self_check.score import Score
from makewhole.model.self_check.settings import STORE_HOP, TOPIC_HOP
from makewhole.model.verdict import GAPS, Verdict
from makewhole.model.window import WindowState
from makewhole.self_check.systems import ScratchSystems, systems_of
from makewhole.sql import PgConnection

logger = logging.getLogger(__name__)
LOOKED_AT = 100
_UNDER_WAY = (WindowState.OPEN, WindowState.ERROR)


def compare(pipeline: Pipeline, connections: Mapping[str, Connection]) -> list[PlantedRound]:
    """Compare every round that is planted and not compared yet, and whose window came to its end; return these, the
    oldest first, with their results.

    Raises:
        TransientError: a server does not answer.
    """
    with connect() as journal:
        known = self_check_rounds.newest(journal, pipeline.name, LOOKED_AT)
    ever_planted = frozenset(fault for planted in known for fault in planted.planted)
    systems, compared = systems_of(pipeline, connections), []
    for planted in reversed([planted for planted in known if _is_waiting(planted)]):
        result = _result_of(pipeline, systems, planted, ever_planted)
        if result is None:
            continue
        with connect() as journal:
            self_check_rounds.put_result(journal, pipeline.name, planted.round, result)
        compared.append(planted.round)
    with connect() as journal:
        known = self_check_rounds.newest(journal, pipeline.name, LOOKED_AT)
    return [planted for planted in reversed(known) if planted.round in compared]


def _is_waiting(planted: PlantedRound) -> bool:
    return planted.compared_at is None and planted.number is not None


def _result_of(
    pipeline: Pipeline, systems: ScratchSystems, planted: PlantedRound, ever_planted: frozenset[Discrepancy]
) -> RoundResult | None:
    """Return what became of a round; None while its window is under way. What an earlier round planted and its window
    missed is no invention of the one that finds it (`ever_planted`), and belongs to neither."""
    number = planted.number
    assert number is not None
    with connect() as journal:
        [newest] = windows.newest(journal, pipeline.name, number=number)
        revision = self_check_rounds.first_judged(journal, pipeline.name, number)
        if newest.state in _UNDER_WAY or revision is None:
            logger.info("round %d: window %d is %s; it is compared later", planted.round, number, newest.state.value)
            return None
        discrepancies = _found(journal, pipeline.name, number, revision) - (ever_planted - {*planted.planted})
    score = Score(
        planted=len(planted.planted),
        found=len(discrepancies),
        missed=tuple(sorted({*planted.planted} - discrepancies)),
        invented=tuple(sorted(discrepancies - {*planted.planted})),
        left=tuple(_left(systems, planted)),
        state=newest.state,
        reason=newest.reason,
    )
    return RoundResult(window=number, revision=revision, score=score)


def _found(journal: PgConnection, pipeline: str, number: int, revision: int) -> set[Discrepancy]:
    """Return what a window found before its repair: gaps, and what it could not decide."""
    window = windows.load(journal, pipeline, number, revision)
    items = (item.finding for item in window_findings.findings(journal, window))
    wrong = {*GAPS, Verdict.UNDECIDABLE, Verdict.CONFLICT}
    return {
        Discrepancy(hop=finding.hop, verdict=finding.verdict.value, key=finding.key)
        for finding in items
        if finding.verdict in wrong
    }


def _left(systems: ScratchSystems, planted: PlantedRound) -> Iterator[Discrepancy]:
    """Yield what is wrong now in the topic and the store, by what the round has drawn."""
    right = {row.key: row.amount for row in rows_of(planted.name, planted.records)}
    in_topic = _in_topic(systems, planted)
    sent_again = {fault.key for fault in planted.planted if fault.verdict == Verdict.MISSING.value}
    rows = systems.tables.stored_of(planted.name)
    copies, amounts = Counter(key for key, _ in rows), dict(rows)
    for key, amount in sorted(right.items()):
        wrong = _of_records(in_topic.get(key, []), amount, most=2 if key in sent_again else 1)
        if wrong is not None:
            yield Discrepancy(hop=TOPIC_HOP, verdict=wrong.value, key=key)
        if not copies[key]:
            yield Discrepancy(hop=STORE_HOP, verdict=Verdict.MISSING.value, key=key)
        elif copies[key] > 1:
            yield Discrepancy(hop=STORE_HOP, verdict=Verdict.DUPLICATE.value, key=key)
        elif amounts[key] != amount:
            yield Discrepancy(hop=STORE_HOP, verdict=Verdict.MISMATCHED.value, key=key)
    for hop, keys in ((TOPIC_HOP, in_topic.keys()), (STORE_HOP, copies.keys())):
        for key in sorted(keys - right.keys()):
            yield Discrepancy(hop=hop, verdict=Verdict.UNEXPECTED.value, key=key)


def _of_records(sent: Sequence[Decimal], amount: Decimal, most: int) -> Verdict | None:
    """Return what is wrong with the records of a key, which has to have one of this value and may have so many."""
    if not sent:
        return Verdict.MISSING
    if set(sent) != {amount}:
        return Verdict.MISMATCHED
    return Verdict.DUPLICATE if len(sent) > most else None


def _in_topic(systems: ScratchSystems, planted: PlantedRound) -> dict[str, list[Decimal]]:
    """Return the value of each record of the round's keys in the topic."""
    values: dict[str, list[Decimal]] = {}
    for record in scratch_topic.read_from(systems.kafka, systems.topic, planted.offsets):
        value = json.loads(record.value)
        if str(value["id"]).startswith(f"{planted.name}-"):
            values.setdefault(str(value["id"]), []).append(Decimal(value["amount"]))
    return values
