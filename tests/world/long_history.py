"""Simulate the windows of a long history in the journal, like one that was judged, and count what a window asks it."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import psycopg2
import pytest

from makewhole.journal import database
from makewhole.postgres_session import DsnPlace, open_session
from makewhole.sql import PgConnection, PgCursor, load_queries, sql_root
from tests.world.orders import DAY

_COPIES = """
set local synchronous_commit = on;
create temporary table copied as
    select target.pipeline, number, (number - %(like)s) * %(step)s as shift
    from generate_series(%(first)s, %(last)s) as number, unnest(%(pipelines)s::text[]) as target (pipeline);
insert into makewhole.window (pipeline, number, revision, start_time, end_time, opened_at, state, request, plan_only,
                              configuration, closed_at)
    select copied.pipeline, copied.number, 1, end_time + shift - %(step)s, end_time + shift, opened_at, state,
           request || '.' || copied.number, plan_only, configuration, closed_at
    from makewhole.window as known, copied where (known.pipeline, known.number) = (%(pipeline)s, %(like)s);
insert into makewhole.lane (pipeline, point, topic, topic_id, partition, lineage)
    select target.pipeline, point, topic, topic_id, partition, lineage
    from makewhole.lane as known, unnest(%(pipelines)s::text[]) as target (pipeline)
    where known.pipeline = %(pipeline)s on conflict do nothing;
insert into makewhole.window_range (pipeline, number, lane, offsets, lo, hi, leader_epochs)
    select copied.pipeline, copied.number, own.id, int8range(hi, hi), hi, hi, leader_epochs
    from makewhole.window_range as known
    join makewhole.lane on lane.id = known.lane
    cross join copied
    join makewhole.lane as own on (own.pipeline, own.point, own.topic_id, own.partition, own.lineage)
        = (copied.pipeline, lane.point, lane.topic_id, lane.partition, lane.lineage)
    where (known.pipeline, known.number) = (%(pipeline)s, %(like)s);
insert into makewhole.observation (pipeline, point, observed_at, topic_id, stable_offsets, leader_epochs, pg_snapshot,
                                   place)
    select copied.pipeline, point, observed_at - (%(last)s - copied.number + 1) * interval '1 minute', topic_id,
           stable_offsets, leader_epochs, pg_snapshot, place
    from (
        select distinct on (point) * from makewhole.observation
        where pipeline = %(pipeline)s order by point, observed_at
    ) as known, copied;
insert into makewhole.snapshot
    select copied.pipeline, copied.number, 1, point, manifest, committed_at
    from makewhole.snapshot as known, copied where (known.pipeline, known.number) = (%(pipeline)s, %(like)s);
insert into makewhole.hop_result
    select copied.pipeline, copied.number, 1, hop, stage, counts, digest, files, committed_at
    from makewhole.hop_result as known, copied where (known.pipeline, known.number) = (%(pipeline)s, %(like)s);
insert into makewhole.gate_report
    select copied.pipeline, copied.number, 1, stage, answer, planned, evaluated, failures, document, committed_at
    from makewhole.gate_report as known, copied where (known.pipeline, known.number) = (%(pipeline)s, %(like)s);
insert into makewhole.slice_count (pipeline, point, slice, number, revision, source, rows, counted_at)
    select copied.pipeline, point, copied.number, copied.number, 1, source, 0, counted_at
    from makewhole.slice_count as known, copied
    where (known.pipeline, known.slice, known.number) = (%(pipeline)s, %(like)s, %(like)s);
insert into makewhole.key_run (pipeline, point, number, revision, files, keys, is_partial, retired_at)
    select copied.pipeline, point, copied.number, 1, '{}', keys, is_partial, clock_timestamp()
    from makewhole.key_run as known, copied where (known.pipeline, known.number) = (%(pipeline)s, %(like)s);
insert into makewhole.key_merge (pipeline, point, attempt, windows, files, rows)
    select copied.pipeline, point, copied.pipeline || '.' || point,
           jsonb_object_agg(copied.number, 1) || jsonb_build_object(%(like)s, 1), files, keys
    from makewhole.key_run as known, copied
    where (known.pipeline, known.number) = (%(pipeline)s, %(like)s)
    group by copied.pipeline, point, files, keys;
update makewhole.key_run set retired_at = clock_timestamp() where (pipeline, number) = (%(pipeline)s, %(like)s);
drop table copied;
"""


def simulate_windows(
    journal: str, pipeline: str, like: int, last: int, others: Sequence[str] = (), step: timedelta = DAY
) -> None:
    """Write windows after a judged one, to number `last`, as if each had been judged the same, without any record; the
    index has one merged run of them. `others`: pipelines that have as many; `step`: the length of a window.

    The server of tests commits without waiting for its log. Of rows that are not in the log yet VACUUM marks no page as
    visible to all, so that indexes alone would not do for the planner, as they do in a journal of that age.
    """
    values = {
        "pipeline": pipeline,
        "like": like,
        "first": like + 1,
        "last": last,
        "step": step,
        "pipelines": [pipeline, *others],
    }
    with psycopg2.connect(journal) as session, session.cursor() as cursor:
        cursor.execute(_COPIES, values)
    run_outside(journal, "vacuum analyze")


def run_outside(journal: str, statement: str) -> None:
    """Run a statement outside of a transaction."""
    session = psycopg2.connect(journal)
    try:
        session.autocommit = True
        with session.cursor() as cursor:
            cursor.execute(statement)
    finally:
        session.close()


# What is asked


@dataclass(frozen=True, kw_only=True)
class Question:
    """A statement that was run, by its name in `sql/queries`, with the rows that it returned."""

    name: str
    text: str
    rows: int

    @property
    def writes(self) -> bool:
        """Return whether the statement writes, or locks rows to write."""
        return bool(re.search(r"\b(insert into|update makewhole|delete from|for no key update)\b", self.text))


@dataclass(kw_only=True)
class Questions:
    """Notes the statements that this process runs at the journal."""

    asked: list[Question] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """By the name of the statement: how often it was run, and the rows that it returned in all."""
        times, rows = Counter[str](), Counter[str]()
        for statement in self.asked:
            times[statement.name] += 1
            rows[statement.name] += statement.rows
        return {name: (times[name], rows[name]) for name in sorted(times)}


@contextmanager
def questions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Questions]:
    """Note what is asked of the journal meanwhile, on connections that are opened meanwhile."""
    noted, names = Questions(), _names()

    class Noting(PgCursor):
        def execute(self, query: Any, values: Any = None) -> None:
            super().execute(query, values)
            text = query if isinstance(query, str) else query.as_string(self)
            comment = text.strip().splitlines()[0]
            if self.name is None:
                name, rows = names.get(comment, comment), max(0, self.rowcount)
                noted.asked.append(Question(name=name, text=_sent(self), rows=rows))

    def opened(dsn: str, place: DsnPlace, **parameters: Any) -> PgConnection:
        return open_session(dsn, place, cursor_factory=Noting, **parameters)

    with monkeypatch.context() as patch:
        patch.setattr(database, "open_session", opened)
        yield noted


def _names() -> dict[str, str]:
    """Return the names of the statements of `sql/queries` by their first lines."""
    files = sorted((sql_root() / "queries").glob("*.sql"))
    pairs = ((path.stem, load_queries(path.stem)) for path in files)
    return {text.splitlines()[0]: f"{stem}.{name}" for stem, texts in pairs for name, text in texts.items()}


def _sent(cursor: PgCursor) -> str:
    sent: bytes = cursor.query or b""
    return sent.decode()


# What that costs the server


def rows_read(session: PgConnection, text: str) -> int:
    """Return how many rows of tables and indexes the server reads for a statement that only reads: as it chooses to, or
    by indexes alone where that is less. Of the tables of a few pipelines it may as well read all."""
    numbers = []
    with session.cursor() as cursor:
        for is_free in ("on", "off"):
            cursor.execute(f"set local enable_seqscan to {is_free}; set local enable_bitmapscan to {is_free}")
            cursor.execute(f"explain (analyze, format json, timing off) {without_comments(text)}")
            ((plans,),) = cursor.fetchall()
            numbers.append(_scanned(plans[0]["Plan"]))
    return min(numbers)


def without_comments(text: str) -> str:
    """Return a statement without its lines of comments."""
    return re.sub(r"^\s*--.*$", "", text, flags=re.MULTILINE).strip().rstrip(";")


_SCANS = ("Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Bitmap Index Scan")


def _scanned(node: dict[str, Any]) -> int:
    """Return the rows that the scans below a node read, filtered ones included."""
    below = sum(_scanned(node_below) for node_below in node.get("Plans", ()))
    if node["Node Type"] not in _SCANS:
        return below
    filtered = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return below + int((node["Actual Rows"] + filtered) * node["Actual Loops"])
