"""What a frozen plan would do if it ran now: every guard asked, a few actions shown, nothing written anywhere.

The journal and the tables are read in transactions that cannot write, a topic by its metadata. An action is judged as
if nothing before it in the plan had been done; where an earlier one is about the same key of the same table, it is said
to wait for that instead. What is true now may not be when the plan runs: the guards are asked again then.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa

from makewhole.compensation.execution.content import PlanContent, load_content
from makewhole.compensation.execution.permission import why_not_approved
from makewhole.compensation.execution.targets import Chunk, Target, require_receipts_kept, require_same_places
from makewhole.compensation.freezing.chunks import take_chunk
from makewhole.compensation.preview.dry_report import DryRun, DryRunPart, Forecast, RecordToSend, Sample
from makewhole.compensation.preview.target_readers import ChunksDone, open_target_reader
from makewhole.journal import plan_progress, plans
from makewhole.journal.actions import actions_in, unchanged_actions
from makewhole.journal.leases import JournalSession
from makewhole.journal.plans import StoredPlan
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Remedy
from makewhole.postgres.write.dry_run import RowChange
from makewhole.sql import PgConnection

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
    """Judge a frozen plan. `samples`: so many actions of each part that would be done, and as many refused ones.
    `progress` is told (actions looked at, all actions) after every chunk.

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
        if stored.plan.payload_uri is None:
            raise RefusedError(f"plan {plan_id} was refused as a whole and would do nothing: {stored.plan.reason}")
        require_same_places(actions, targets)
        content = load_content(stored, actions, lambda: None)
        try:
            look = _PlanForecast(journal, stored, content, _SampleChooser(samples), progress)
            for name in content.chunks:
                look.at(name, targets[name])
        finally:
            content.close()
    return DryRun(plan=stored.plan, stopped_by=stopped_by, parts=look.parts(targets), samples=tuple(look.samples))


@contextmanager
def _read_only_transaction(journal: JournalSession) -> Iterator[PgConnection]:
    """A transaction at the journal that cannot write."""
    with journal.transaction(idle_seconds=_READ_SECONDS_MOST) as session, session.cursor() as cursor:
        cursor.execute("set transaction read only")
        yield session


class _SampleChooser:
    """Which actions are shown: the first few of each kind at each target that would be done, and that would not."""

    def __init__(self, most: int) -> None:
        self._left: defaultdict[tuple[str, str, bool], int] = defaultdict(lambda: most)

    def choose(self, rows: pa.Table, waiting: Collection[int], refused: Collection[int]) -> list[int]:
        """Of these actions."""
        chosen = []
        for seq, target, remedy in zip(*(rows.column(name).to_pylist() for name in _SAMPLED), strict=True):
            kind = (target, remedy, seq in refused or seq in waiting)
            if self._left[kind] > 0:
                self._left[kind] -= 1
                chosen.append(seq)
        return chosen


_SAMPLED = ("seq", "target", "remedy")


class _PlanForecast:
    """Goes through the chunks of a plan, target by target."""

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
        self._forecasts: dict[int, tuple[Forecast, str | None]] = {}
        self._looked_at = 0
        self.samples: list[Sample] = []

    def at(self, name: str, target: Target) -> None:
        """Every chunk of one target."""
        chunks = self._content.chunks[name]
        with ExitStack() as stack:
            seen = self._chunks_seen(name)
            look = open_target_reader(stack, target, name, self._stored, seen)
            done = look.done()
            require_receipts_kept(name, done.chunks, seen, len(chunks))
            self._note_done(name, done)
            waiting = self._waiting(name, done.chunks)
            for part in chunks[done.chunks :]:
                chunk, decided = self._content.chunk(name, part.number), self._decided(name, part.number)
                found = look.look(chunk, partial(self._choice.choose, chunk.rows, waiting))
                self._note(chunk, {**found.refused, **decided}, waiting, found.shown)

    def parts(self, targets: Mapping[str, Target]) -> tuple[DryRunPart, ...]:
        """The actions by target and remedy, in the order of the plan."""
        parts = []
        for (target, remedy), rows in self._frame.group_by("target", "remedy", maintain_order=True):
            forecasts = [self._forecasts[seq] for seq in rows["seq"].to_list()]
            counted = Counter(forecast for forecast, _ in forecasts)
            parts.append(
                DryRunPart(
                    remedy=str(remedy),
                    target=str(target),
                    place=targets[str(target)].point.place,
                    actions=len(rows),
                    forecasts={forecast: counted[forecast] for forecast in Forecast},
                    reasons=dict(
                        Counter(
                            why for forecast, why in forecasts if forecast is Forecast.REFUSED and why
                        ).most_common()
                    ),
                    payload_from=dict(Counter(filter(None, rows["payload_from"].to_list())).most_common()),
                )
            )
        return tuple(parts)

    def _chunks_seen(self, name: str) -> int:
        with _read_only_transaction(self._journal) as journal:
            seen = [
                item.chunk for item in plan_progress.chunks_of(journal, self._stored.plan.id) if item.target == name
            ]
        return max(seen, default=-1) + 1

    def _decided(self, name: str, number: int) -> Mapping[int, str]:
        """What earlier attempts refused stays refused."""
        with _read_only_transaction(self._journal) as journal:
            return plan_progress.refused_actions(journal, self._content.chunk_actions(name, number))

    def _note_done(self, name: str, done: ChunksDone) -> None:
        for part in self._content.chunks[name][: done.chunks]:
            refused = {**done.refused, **self._decided(name, part.number)}
            for seq in _seqs(take_chunk(self._content.actions, part)):
                why = refused.get(seq)
                self._forecasts[seq] = (Forecast.DONE, None) if why is None else (Forecast.REFUSED, why)
            self._tell(part.size)

    def _note(
        self,
        chunk: Chunk,
        refused: Mapping[int, str],
        waiting: Collection[int],
        shown: Mapping[int, RowChange | RecordToSend],
    ) -> None:
        for seq in _seqs(chunk.rows):
            self._forecasts[seq] = _forecast(seq, refused, waiting)
        for action in actions_in(chunk.rows.filter(pa.array([seq in shown for seq in _seqs(chunk.rows)]))):
            forecast, reason = self._forecasts[action.seq]
            self.samples.append(Sample(action=action, forecast=forecast, reason=reason, shown=shown[action.seq]))
        self._tell(len(chunk.rows))

    def _tell(self, actions: int) -> None:
        self._looked_at += actions
        self._progress(self._looked_at, len(self._content.actions))

    def _waiting(self, name: str, done: int) -> set[int]:
        """The actions on rows of which an earlier one, that did not happen yet, is about the same key. What one action
        moved aside comes back together."""
        ahead = self._frame.filter(
            (pl.col("target") == name) & (pl.col("chunk") >= done) & pl.col("remedy").is_in(_ROW_REMEDIES)
        )
        first = pl.col("seq") == pl.col("seq").min().over("key_hash")
        together = pl.col("undoes").eq(pl.col("undoes").first().over("key_hash")).fill_null(value=False)
        return set(ahead.filter(~first & ~together)["seq"].to_list())


def _forecast(seq: int, refused: Mapping[int, str], waiting: Collection[int]) -> tuple[Forecast, str | None]:
    if seq in waiting:
        return Forecast.WAITS, "an earlier action is about the same key: this one is judged when that is done"
    return (Forecast.REFUSED, refused[seq]) if seq in refused else (Forecast.WOULD, None)


def _seqs(rows: Any) -> list[int]:
    """The numbers of actions."""
    found: list[int] = rows.column("seq").to_pylist()
    return found


def _actions_frame(actions: pa.Table) -> pl.DataFrame:
    """Columns `seq`, `chunk`, `remedy`, `target`, `key_hash`, `payload_from` (null: nothing is written) and `undoes`
    (the number of the action that is taken back, null in plans that undo nothing)."""
    texts: Any = {name: actions.column(name).cast(pa.string()) for name in ("remedy", "target", "key_hash", "before")}
    numbers = {name: actions.column(name) for name in ("seq", "chunk")}
    frame = pl.DataFrame(pl.from_arrow(pa.table({**numbers, **texts})))
    undoes = pl.col("before").str.json_path_match("$.undoes")
    return frame.select(
        "seq",
        "chunk",
        "remedy",
        "target",
        "key_hash",
        pl.coalesce(
            pl.col("before").str.json_path_match("$.payload_from"),
            pl.when(pl.col("remedy") == Remedy.RESTORE.value).then(pl.lit(_EFFECTS)),
        ).alias("payload_from"),
        undoes.alias("undoes"),
    )
