"""Read and write the rounds of self-checks: what was planted, and what became of it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import msgspec

from makewhole.model.self_check.planted import Discrepancy
from makewhole.model.self_check.score import Score
from makewhole.sql import PgConnection, record, records, single_value, statements_of

_run = statements_of("self_check")


@dataclass(frozen=True, kw_only=True)
class RoundResult:
    """The result of a round, in a revision of a window."""

    window: int
    revision: int
    score: Score


@dataclass(frozen=True, kw_only=True)
class PlantedRound:
    """A round of a self-check. `name` begins the keys of its `records`; `begins` are the offsets from which on these
    lie, by partition. `planted_at` None: planting was begun and not ended. `number`: the window that covers it; None:
    there is none yet. `result` None: not compared yet."""

    round: int
    run: str
    name: str
    records: int
    begins: dict[str, int]
    planted: tuple[Discrepancy, ...]
    begun_at: datetime
    planted_at: datetime | None = None
    compared_at: datetime | None = None
    number: int | None = None
    result: RoundResult | None = None

    @property
    def offsets(self) -> dict[int, int]:
        """The offsets from which on the records lie."""
        return {int(partition): offset for partition, offset in self.begins.items()}


@dataclass(frozen=True, kw_only=True)
class ComparedRound:
    """The newest compared round of a pipeline."""

    pipeline: str
    round: int
    compared_at: datetime
    result: RoundResult

    @property
    def is_green(self) -> bool:
        """Whether all that was planted was found, nothing else was, and all of it was repaired with proof."""
        return self.result.score.is_green


def lock(journal: PgConnection, pipeline: str) -> None:
    """Wait until no other process plants for a pipeline; held until the transaction ends."""
    _run(journal, "lock", pipeline=pipeline)


def journal_mark(journal: PgConnection) -> str:
    """Return what distinguishes this journal from others."""
    return str(single_value(_run(journal, "journal_mark")))


def begin(journal: PgConnection, pipeline: str, planted_round: PlantedRound) -> None:
    """Write a round before anything of it is planted."""
    _run(
        journal,
        "begin",
        pipeline=pipeline,
        round=planted_round.round,
        run=planted_round.run,
        name=planted_round.name,
        records=planted_round.records,
        begins=json.dumps(planted_round.begins),
        planted=json.dumps([asdict(fault) for fault in planted_round.planted]),
    )


def note_planted(journal: PgConnection, pipeline: str, number: int, planted_at: datetime) -> None:
    """Write when all faults of a round were planted; a moment that is written stays."""
    _run(journal, "note_planted", pipeline=pipeline, round=number, planted_at=planted_at)


def newest(journal: PgConnection, pipeline: str, most: int) -> list[PlantedRound]:
    """Return the newest rounds of a pipeline, the newest first."""
    return [_round(row) for row in _run(journal, "rounds", pipeline=pipeline, most=most)]


def put_result(journal: PgConnection, pipeline: str, number: int, result: RoundResult) -> None:
    """Write what became of a round; what is written stays."""
    text = json.dumps(msgspec.to_builtins(result))
    _run(journal, "put_result", pipeline=pipeline, round=number, result=text)


def first_judged(journal: PgConnection, pipeline: str, number: int) -> int | None:
    """Return the first revision of a window whose points were compared; None: there is none."""
    ((revision,),) = _run(journal, "first_judged", pipeline=pipeline, number=number)
    return None if revision is None else int(revision)


def newest_results(journal: PgConnection) -> Sequence[ComparedRound]:
    """Return the newest compared round of each pipeline that has one."""
    return records(ComparedRound, _run(journal, "newest_results"))


def _round(row: Any) -> PlantedRound:
    return record(PlantedRound, row)
