"""Forecast what a frozen plan would do if it ran now, by the guards of the run; nothing is written anywhere.

The journal and the tables are read in transactions that cannot write, a topic by its metadata. An action is judged as
if no action before it had been done; where an earlier one is about the same key of the same table, it waits for that
one instead. The guards are checked again when the plan runs: the forecast is of this moment.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa

from makewhole.compensation.execution.content import PlanContent, load_content
from makewhole.compensation.execution.look_again.look_again import LookAgain
from makewhole.compensation.execution.may_run import why_not_approved
from makewhole.compensation.execution.targets import Chunk, Target, require_receipts_kept, require_same_places
from makewhole.compensation.freezing.chunks import take_chunk
from makewhole.compensation.freezing.plan_hash import unchanged_actions
from makewhole.compensation.preview.dry_report import (
    DryRun,
    DryRunPart,
    Forecast,
    RecordToSend,
    Sample,
    TableEffects,
)
from makewhole.compensation.preview.never_seen import never_seen
from makewhole.compensation.preview.target_readers import ChunksDone, open_target_reader
from makewhole.compensation.preview.topic_effects import is_topic, read_topic_effects
from makewhole.journal import plan_progress, plans
from makewhole.journal.actions import actions_in, in_parts
from makewhole.journal.database import JournalSession
from makewhole.journal.plans import StoredPlan
from makewhole.journal.replayed_positions import PlanInJournal
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Remedy
from makewhole.model.refusal import Refusal
from makewhole.sql import PgConnection
from makewhole.tables.row_change import RowChange

SAMPLES = 3
_READ_SECONDS_MOST = 300.0
_EFFECTS = "effects"
_ROW_REMEDIES = tuple(remedy.value for remedy in (Remedy.UPSERT, Remedy.QUARANTINE, Remedy.RESTORE))


def dry_run(
    journal_dsn: str,
    plan_id: str,
    targets: Mapping[str, Target],
    *,
    samples: int = SAMPLES,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> DryRun:
    """Forecast a frozen plan. `samples`: so many actions of each part that would be done, and as many refused ones.
    `progress` is called with (actions judged, all actions) after every chunk.

    Raises:
        RefusedError: the plan was changed in the journal, its targets in the pipeline file, or it has no payloads.
        CorruptionError: its payload file, or its receipts at a target, are not what they were.
        PermanentError: there is no such plan.
        TransientError: a server or the storage is away.
    """
    with JournalSession(journal_dsn) as journal:
        with _read_only_transaction(journal) as reading:
            stored = plans.get_plan(reading, plan_id)
            stopped_by = why_not_approved(stored.plan, plans.approval_of(reading, plan_id))
            actions = unchanged_actions(reading, stored.plan, stored.payload_sha256)
            risks = never_seen(reading, plan_id, {name: target.point for name, target in targets.items()})
        if stored.plan.payload_uri is None:
            raise RefusedError(f"plan {plan_id} was refused as a whole and would do nothing: {stored.plan.reason}")
        require_same_places(actions, targets)
        content = load_content(stored, actions, lambda: None)
        try:
            forecast = _PlanForecast(journal, stored, content, _SampleChooser(samples), progress)
            for name in content.chunks:
                forecast.judge_target(name, targets)
        finally:
            content.close()
    return DryRun(
        plan=stored.plan,
        stopped_by=stopped_by,
        parts=forecast.parts(targets),
        samples=tuple(forecast.samples),
        tables=tuple(forecast.tables),
        risks=risks,
        topics=tuple(read_topic_effects(targets[name], targets) for name in content.chunks if is_topic(targets[name])),
    )


@contextmanager
def _read_only_transaction(journal: JournalSession) -> Iterator[PgConnection]:
    """Open a transaction at the journal that cannot write."""
    with journal.transaction(idle_seconds=_READ_SECONDS_MOST) as session, session.cursor() as cursor:
        cursor.execute("set transaction read only")
        yield session


class _SampleChooser:
    """The choice of samples: the first actions of each kind at each target that would be done, and that would not."""

    def __init__(self, most: int) -> None:
        self._left: defaultdict[tuple[str, str, bool], int] = defaultdict(lambda: most)

    def choose(self, rows: pa.Table, waiting: Collection[int], refused: Collection[int]) -> list[int]:
        """Return the numbers of the actions to show, of these."""
        chosen = []
        for seq, target, remedy in zip(*(rows.column(name).to_pylist() for name in _SAMPLED), strict=True):
            kind = (target, remedy, seq in refused or seq in waiting)
            if self._left[kind] > 0:
                self._left[kind] -= 1
                chosen.append(seq)
        return chosen


_SAMPLED = ("seq", "target", "remedy")


class _PlanForecast:
    """The forecasts of a plan's actions, made target by target and chunk by chunk."""

    def __init__(
        self,
        journal: JournalSession,
        stored: StoredPlan,
        content: PlanContent,
        choice: _SampleChooser,
        progress: Callable[[int, int], None],
    ) -> None:
        self._journal, self._stored, self._content = journal, stored, content
        self._choice, self._progress = choice, progress
        self._frame = _actions_frame(content.actions)
        self._counts: defaultdict[tuple[str, str], _PartCounts] = defaultdict(_PartCounts)
        self._judged, self._not_aside = 0, set[str]()
        self.samples: list[Sample] = []
        self.tables: list[TableEffects] = []

    def judge_target(self, name: str, targets: Mapping[str, Target]) -> None:
        """Forecast every chunk of one target."""
        chunks = self._content.chunks[name]
        with ExitStack() as stack:
            in_journal = self._chunks_in_journal(name)
            look_again = stack.enter_context(LookAgain(targets, self._in_journal(name), self._content.keys_at(name)))
            reader = open_target_reader(stack, targets[name], self._stored, in_journal, look_again)
            done = reader.done()
            require_receipts_kept(name, done.chunks, in_journal, len(chunks))
            self._note_done(name, done)
            waiting = self._waiting(name, done.chunks) | self._after_rows_aside(name, done.chunks)
            left_empty, locked = Counter[str](), list[int]()
            for part in chunks[done.chunks :]:
                chunk, refused = self._content.chunk(name, part.number), self._refused(name, part.number)
                forecast = reader.forecast(chunk, partial(self._choice.choose, chunk.rows, waiting))
                self._note(chunk, {**forecast.refused, **refused}, waiting, forecast.shown)
                left_empty.update(forecast.left_empty)
                locked += [part.size] if forecast.locks_table else []
        if left_empty or locked:
            self.tables.append(
                TableEffects(
                    target=name,
                    place=targets[name].point.place,
                    left_empty=dict(left_empty),
                    locked_chunks=len(locked),
                    chunk_actions=max(locked, default=0),
                )
            )

    def parts(self, targets: Mapping[str, Target]) -> tuple[DryRunPart, ...]:
        """Return the actions by target and remedy, in the order of the plan."""
        parts = []
        for (target, remedy), rows in self._frame.group_by("target", "remedy", maintain_order=True):
            counts = self._counts[str(target), str(remedy)]
            parts.append(
                DryRunPart(
                    remedy=str(remedy),
                    target=str(target),
                    place=targets[str(target)].point.place,
                    actions=len(rows),
                    forecasts={forecast: counts.forecasts[forecast] for forecast in Forecast},
                    reasons=dict(counts.reasons.most_common()),
                    payload_from=dict(Counter(filter(None, rows["payload_from"].to_list())).most_common()),
                )
            )
        return tuple(parts)

    def _in_journal(self, name: str) -> PlanInJournal:
        return PlanInJournal(
            transaction=partial(_read_only_transaction, self._journal),
            plan=self._stored.plan,
            target=name,
            log_ends=self._stored.log_ends or {},
        )

    def _chunks_in_journal(self, name: str) -> int:
        with _read_only_transaction(self._journal) as journal:
            recorded = [
                item.chunk for item in plan_progress.chunks_of(journal, self._stored.plan.id) if item.target == name
            ]
        return max(recorded, default=-1) + 1

    def _refused(self, name: str, number: int) -> Mapping[int, Refusal]:
        """Return what earlier attempts refused: it stays refused."""
        with _read_only_transaction(self._journal) as journal:
            return plan_progress.refused_actions(journal, self._content.chunk_actions(name, number))

    def _note_done(self, name: str, done: ChunksDone) -> None:
        for part in self._content.chunks[name][: done.chunks]:
            refused = {**done.refused, **self._refused(name, part.number)}
            rows = take_chunk(self._content.actions, part)
            self._count(rows, {seq: _forecast(seq, refused, (), by_itself=Forecast.DONE) for seq in _seqs(rows)})
            self._report_progress(part.size)

    def _note(
        self,
        chunk: Chunk,
        refused: Mapping[int, Refusal],
        waiting: Collection[int],
        shown: Mapping[int, RowChange | RecordToSend],
    ) -> None:
        forecasts = {seq: _forecast(seq, refused, waiting) for seq in _seqs(chunk.rows)}
        self._count(chunk.rows, forecasts)
        for action in actions_in(chunk.rows.filter(pa.array([seq in shown for seq in _seqs(chunk.rows)]))):
            forecast, refusal = forecasts[action.seq]
            self.samples.append(Sample(action=action, forecast=forecast, refusal=refusal, shown=shown[action.seq]))
        self._report_progress(len(chunk.rows))

    def _count(self, rows: pa.Table, forecasts: Mapping[int, tuple[Forecast, Refusal | None]]) -> None:
        """Count the forecasts of the actions of a chunk, and the refusals in their order."""
        for seq, target, remedy in zip(*(rows.column(name).to_pylist() for name in _SAMPLED), strict=True):
            forecast, refusal = forecasts[seq]
            counts = self._counts[target, remedy]
            counts.forecasts[forecast] += 1
            if refusal is not None:
                counts.reasons[refusal] += 1

    def _report_progress(self, actions: int) -> None:
        self._judged += actions
        self._progress(self._judged, len(self._content.actions))

    def _waiting(self, name: str, done: int) -> set[int]:
        """Return the actions on rows that come after another one on the same key which is not done yet. Rows that one
        action moved aside are put back together: none of them waits."""
        undone = self._frame.filter(
            (pl.col("target") == name) & (pl.col("chunk") >= done) & pl.col("remedy").is_in(_ROW_REMEDIES)
        )
        # Nearly all keys have one action: a hash shows which, before texts are compared.
        undone = undone.filter(pl.col("key_hash").hash().is_duplicated())
        first = pl.col("seq") == pl.col("seq").min().over("key_hash")
        together = pl.col("undoes").eq(pl.col("undoes").first().over("key_hash")).fill_null(value=False)
        return set(undone.filter(~first & ~together)["seq"].to_list())

    def _after_rows_aside(self, name: str, done: int) -> set[int]:
        """Return the actions that send a record after rows of its key were moved aside, where these are not yet: tables
        with such rows come before the topics."""
        here = self._frame.filter((pl.col("target") == name) & (pl.col("chunk") >= done))
        moves = here.filter(pl.col("remedy") == Remedy.QUARANTINE.value)
        self._not_aside.update(moves["key_hash"].to_list())
        after = here.filter(pl.col("puts_aside").is_not_null())
        return {seq for seq, key in after.select("seq", "key_hash").iter_rows() if key in self._not_aside}


@dataclass
class _PartCounts:
    """The forecasts of the actions of one remedy at one target, and the refusals among them."""

    forecasts: Counter[Forecast] = field(default_factory=Counter)
    reasons: Counter[Refusal] = field(default_factory=Counter)


def _forecast(
    seq: int, refused: Mapping[int, Refusal], waiting: Collection[int], by_itself: Forecast = Forecast.WOULD
) -> tuple[Forecast, Refusal | None]:
    if seq in waiting:
        return Forecast.WAITS, None
    return (Forecast.REFUSED, refused[seq]) if seq in refused else (by_itself, None)


def _seqs(rows: Any) -> list[int]:
    """Return the numbers of actions."""
    numbers: list[int] = rows.column("seq").to_pylist()
    return numbers


def _actions_frame(actions: pa.Table) -> pl.DataFrame:
    """Return the columns `seq`, `chunk`, `remedy`, `target`, `key_hash`, `payload_from` (null: nothing is written),
    `undoes` (the number of the action that is taken back, null in plans that undo nothing) and `puts_aside` (null: no
    rows go before)."""
    return pl.concat([_part_of_frame(part) for part in in_parts(actions)])


def _part_of_frame(actions: pa.Table) -> pl.DataFrame:
    texts: Any = {name: actions.column(name).cast(pa.string()) for name in ("remedy", "target", "key_hash", "before")}
    numbers = {name: actions.column(name) for name in ("seq", "chunk")}
    frame = pl.DataFrame(pl.from_arrow(pa.table({**numbers, **texts})))
    said = pl.col("before").str.json_path_match
    payload_from = pl.coalesce(
        said("$.payload_from"),
        pl.when(pl.col("remedy") == Remedy.RESTORE.value).then(pl.lit(_EFFECTS)),
    )
    return frame.select(
        *("seq", "chunk", "remedy", "target", "key_hash"),
        payload_from.alias("payload_from"),
        said("$.undoes").alias("undoes"),
        said("$.puts_aside").alias("puts_aside"),
    )
