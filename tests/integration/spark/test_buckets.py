"""Test a bucket of a hop between two topics from files alone: truncations, key indexes and tails."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from makewhole.compute import rollup
from makewhole.compute.buckets import bucket_name, is_in_bucket
from makewhole.compute.frames import TAIL, TOPIC_KEYS
from makewhole.compute.indexed_keys.key_runs import build_key_run
from makewhole.compute.indexed_keys.stored_runs import stored_run
from makewhole.compute.judge.log_history import LogHistory
from makewhole.compute.keys import with_hash
from makewhole.compute.versions import VERSION
from makewhole.key_index.files import IndexFile, write_index_file
from makewhole.lake.storage import Storage
from makewhole.model.hops import Hop, Remedies, Remedy, Semantics
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TopicPoint
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Window
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.bucket.answer import BucketAnswer, KeptExceptions
from makewhole_spark.reconcile.bucket.other_windows import IndexFiles, TruncatedFiles
from makewhole_spark.reconcile.bucket.task import (
    BucketEnd,
    BucketTask,
    KnownElsewhere,
    OtherSource,
    PointIndex,
    SecondRound,
)
from makewhole_spark.reconcile.bucket.window_files import WindowFiles
from makewhole_spark.reconcile.judge.index import known_elsewhere
from makewhole_spark.reconcile.judge.judge_bucket import judge_bucket
from tests.world.combinations import with_every_change
from tests.world.examples import in_turn

pytestmark = pytest.mark.integration

DAY = datetime(2025, 3, 1, tzinfo=UTC)
REMEDIES = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
HOP = Hop(source="raw", target="clean", remedies=REMEDIES)
NONE = IndexFiles()
TRUNCATED = Incident(
    kind=IncidentKind.TRUNCATED, point="clean", topic="clean", topic_id="A", partition=0, lo=5, hi=9, detail={}
)


class Bench:
    """Files of two topics; all keys share one bucket."""

    def __init__(self, folder: Path) -> None:
        points = {name: TopicPoint(name=name, connection="log", topic=name, key=("$.id",)) for name in ("raw", "clean")}
        self.storage = Storage(root=str(folder))
        self.context = WindowContext(
            pipeline=Pipeline(name="demo", points=points, hops=(HOP,)),
            window=Window(pipeline="demo", number=2, revision=1, start=DAY, end=DAY, opened_at=DAY, ranges={}),
            connections={},
            storage=self.storage,
        )

    def task(
        self,
        source: str,
        target: str,
        *,
        is_upsert: bool = False,
        at_source: IndexFiles = NONE,
        at_target: IndexFiles = NONE,
        **second: Any,
    ) -> BucketTask:
        """Return a task whose logs were read to their ends: in the second round."""
        hop = replace(HOP, semantics=Semantics.UPSERT if is_upsert else Semantics.EVENT)
        return BucketTask(
            context=replace(self.context, pipeline=replace(self.context.pipeline, hops=(hop,))),
            hop=hop,
            bucket=bucket_name(0, 1),
            source=BucketEnd(files=self.files(source), index=PointIndex(copies=at_source)),
            target=BucketEnd(files=self.files(target), index=PointIndex(copies=at_target)),
            second=SecondRound(**second),
        )

    def copies(self, text: str) -> pl.DataFrame:
        """`a@3=7!` is key a at offset 3 with row hash 7, a tombstone."""
        rows = []
        for word in text.split():
            key, _, rest = word.rstrip("!").partition("@")
            offset, _, value = rest.partition("=")
            rows.append(
                {"key": key, "offset": int(offset), "row_hash": int(value or 1), "partition": 0, "producer_id": 9}
                | {"place": f"0:{offset}", "excluded_by": [], "is_aborted": False, "is_tombstone": word.endswith("!")}
                | {"sequence": int(offset), "producer_epoch": 0, "time": DAY}
            )
        schema = {name: kind for name, kind in TOPIC_KEYS.items() if name not in ("key_hi", "key_lo")}
        return with_hash(pl.DataFrame(rows, schema=schema)).select(*TOPIC_KEYS)

    def files(self, text: str) -> tuple[str, ...]:
        return (self.storage.write_parquet("bench", self.copies(text)),) if text else ()

    def run(self, text: str, *, has_versions: bool = False) -> tuple[IndexFile, ...]:
        marked = self.copies(text).with_columns(pl.lit(False).alias("is_replay"), pl.lit(False).alias("is_produced"))
        return (self.index_file(build_key_run(marked, has_versions=has_versions)),)

    def index_file(self, run: pl.DataFrame) -> IndexFile:
        """Write the run of a window."""
        return IndexFile(path=write_index_file(self.storage, "bench", [stored_run(run, 1)]), windows=(1,))

    def tail(self, text: str, *, is_open: bool = False) -> list[str]:
        tail = in_tail(self.copies(text)).with_columns(pl.lit(True).alias("is_later"), pl.lit(is_open).alias("is_open"))
        return [self.storage.write_parquet("bench", tail.select(*TAIL))]

    def judge(self, task: BucketTask) -> BucketAnswer:
        return judge_bucket(task)

    def found(self, task: BucketTask) -> dict[str, tuple[str, str]]:
        answer = judge_bucket(task)
        frame = self.storage.read_parquet([answer.findings] if answer.findings else [])
        rows = [] if frame is None else frame.select("key", "verdict", "cause").rows()
        return {key: (verdict, cause) for key, verdict, cause in rows}


def in_tail(copies: pl.DataFrame) -> pl.DataFrame:
    """Return copies with what the rest of a log notes of them: nothing, but that tombstones end versions."""
    ends = (pl.col("is_tombstone") & pl.col("version").is_null()).alias("ends_earlier")
    never = ("is_replay", "is_produced", "is_former", "is_later", "is_open")
    return copies.with_columns(ends, *(pl.lit(False).alias(name) for name in never))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def cut(
    bench: Bench, task: BucketTask, target: str, source: str = "", *, is_now: bool = True, at: int = 5
) -> BucketTask:
    """Cut an earlier window's copies off the target's log."""
    files = TruncatedFiles(
        files=WindowFiles(alike=bench.files(target)),
        limits={0: at},
        limits_now={0: at} if is_now else {},
        source_files=WindowFiles(alike=bench.files(source)),
    )
    log = LogHistory(truncated=(TRUNCATED,) if is_now else ())
    return replace(task, target=replace(task.target, log=log), elsewhere=KnownElsewhere(truncated=(files,)))


def kept_in(task: BucketTask, kept: KeptExceptions | None) -> BucketTask:
    return replace(task, second=replace(task.known_since, kept=kept))


def test_what_was_cut_off_is_judged_again_where_the_source_had_it(bench: Bench) -> None:
    """a: in the files of the source then; b: in its index only; c: nowhere; d: sent again; e: has a copy left."""
    judged = bench.task("", "d@5", at_source=IndexFiles(earlier=bench.run("b@2")))
    task = cut(bench, judged, "a@5 b@6 c@7 d@8 e@2 e@9", source="a@1 d@4 e@5")

    answer = bench.judge(task)

    assert bench.found(task) == {"a": ("missing", "truncated"), "b": ("missing", "truncated")}
    assert (answer.truncated, answer.counts.source_keys, answer.counts.matched, answer.expected) == (4, 4, 2, 4)


def test_what_an_earlier_window_noticed_is_not_judged_again_and_still_counts_no_more(bench: Bench) -> None:
    again = cut(bench, bench.task("a@11 b@12", "a@21 b@22"), "a@5 b@3", source="a@1 b@2", is_now=False)

    assert bench.found(again) == {"b": ("duplicate", "application_resend")}
    assert bench.judge(again).truncated == 0


def test_the_keys_that_runs_of_any_kind_may_know_are_known_from_their_filters(bench: Bench) -> None:
    """a to c: in runs of the source and the target; d: in that of another source; e: in none."""

    def index(text: str) -> tuple[IndexFile, ...]:
        marks = (pl.lit(False).alias(name) for name in ("is_replay", "is_produced"))
        run = build_key_run(bench.copies(text).with_columns(*marks), has_versions=False)
        return (IndexFile(path=write_index_file(bench.storage, "bench", [stored_run(run, 1)]), windows=(1,)),)

    task = bench.task(
        "",
        "",
        at_source=IndexFiles(earlier=index("a@1")),
        at_target=IndexFiles(later=index("b@1"), former=index("c@1")),
    )
    end = BucketEnd(index=PointIndex(copies=IndexFiles(earlier=index("d@1"))))
    task = replace(task, elsewhere=KnownElsewhere(other_sources=(OtherSource(hop=HOP, end=end),)))
    keys = bench.copies("a@9 b@9 c@9 d@9 e@9")

    known = known_elsewhere(task, keys.select("key_hi", "key_lo"))

    assert keys.join(known, on=["key_hi", "key_lo"], how="semi")["key"].to_list() == ["a", "b", "c", "d"]
    assert known_elsewhere(bench.task("", ""), keys.select("key_hi", "key_lo")).is_empty()


def test_a_copy_of_a_former_incarnation_is_no_first_copy_of_a_duplicate(bench: Bench) -> None:
    former = IndexFiles(former=bench.run("a@3 b@4"))

    assert bench.found(bench.task("a@11 b@12", "a@0", at_target=former)) == {}


def test_the_producers_of_both_copies_name_the_cause_of_a_repeat_across_windows(bench: Bench) -> None:
    index = IndexFiles(earlier=bench.run("a@3"))
    same = bench.copies("a@21").with_columns(pl.lit(3, dtype=pl.Int32).alias("sequence"))
    repeated = bench.task("a@11", "", at_target=index)
    files = (bench.storage.write_parquet("bench", same),)
    repeated = replace(repeated, target=replace(repeated.target, files=files))

    assert bench.found(repeated) == {"a": ("duplicate", "sequence_repeated")}
    assert bench.found(bench.task("a@11", "a@21", at_target=index)) == {"a": ("duplicate", "application_resend")}


def test_a_tail_of_which_some_is_gone_proves_no_absence(bench: Bench) -> None:
    task = bench.task("a@1 b@2", "", tails={"clean": bench.tail("a@30")}, partial_tails=frozenset({"clean"}))

    assert bench.found(task) == {"b": ("undecidable", "expired")}
    assert bench.found(replace(task, second=replace(task.known_since, partial_tails=frozenset()))) == {
        "b": ("missing", "never_produced")
    }


def test_a_bucket_that_is_judged_again_gives_the_same_from_the_exceptions_that_were_kept(bench: Bench) -> None:
    """a, b: clean; c: its record comes later; d: lost; e: repeated; f: changed."""
    first = replace(bench.task("a@1 b@2 c@3 d@4 e@5 f@6=1", "a@1 b@2 e@5 e@6 f@7=2"), second=None)
    kept = bench.judge(first).kept
    again = replace(first, second=SecondRound(tails={"clean": bench.tail("c@30 d@31", is_open=False)}, kept=kept))

    assert kept is not None and kept.clean == 2
    files = bench.storage.read_parquet([kept.source]), bench.storage.read_parquet([kept.target])
    assert [None if frame is None else frame["key"].to_list() for frame in files] == [list("cdef"), list("eef")]
    assert without_files(bench.judge(again)) == without_files(bench.judge(kept_in(again, None)))
    assert bench.found(again) == {"e": ("duplicate", "application_resend"), "f": ("mismatched", "value_differs")}
    gone = replace(first, second=SecondRound(tails={"clean": bench.tail("d@31", is_open=True)}, kept=kept))
    assert bench.found(gone)["c"] == ("missing", "never_produced")
    assert without_files(bench.judge(gone)) == without_files(bench.judge(kept_in(gone, None)))


def test_a_key_that_was_clean_and_has_a_copy_in_the_rest_of_the_log_is_judged_with_it(bench: Bench) -> None:
    first = replace(bench.task("a@1=1 b@2 c@3", "a@1=1 b@2"), second=None)
    kept = bench.judge(first).kept
    before = in_tail(bench.copies("a@0=9"))
    tails = {"raw": [bench.storage.write_parquet("bench", before.select(*TAIL))]}
    again = replace(first, second=SecondRound(tails=tails, kept=kept))

    assert kept is not None and kept.clean == 2
    assert bench.found(again) == {"a": ("conflict", "source_contradicts_itself"), "c": ("missing", "never_produced")}
    assert without_files(bench.judge(again)) == without_files(bench.judge(kept_in(again, None)))


def test_under_upsert_a_bucket_that_is_judged_again_gives_the_same_from_the_exceptions(bench: Bench) -> None:
    """a: clean, by its last versions; b: its last version comes later; c: lost; d: clean until the rest is read."""
    source, target = "a@1=1 a@2=2 b@3=1 c@4 d@5=1", "a@1=1 a@2=2 a@3=2 b@4=7 d@5=2 d@6=1"
    first = replace(bench.task(source, target, is_upsert=True), second=None)
    kept = bench.judge(first).kept
    again = replace(first, second=SecondRound(tails={"clean": bench.tail("b@30=1")}, kept=kept))
    with_clean = replace(first, second=SecondRound(tails={"clean": bench.tail("b@30=1 d@31=9")}, kept=kept))

    assert kept is not None
    assert (kept.clean, kept.source_rows, kept.target_rows) == (2, 3, 5)
    for task in (again, with_clean):
        assert bench.found(task) == {"c": ("missing", "never_produced")}
        assert without_files(bench.judge(task)) == without_files(bench.judge(kept_in(task, None)))
    assert [bench.judge(task).clean for task in (again, with_clean)] == [2, 1]
    assert bench.judge(again).counts == bench.judge(with_clean).counts


def test_under_upsert_keys_that_other_windows_know_are_clean_but_for_a_higher_number_before(bench: Bench) -> None:
    """a to c: the target had 1, 2 or 3 before; d: it comes to have 3 later; e: the source had 3 before."""

    def numbered(text: str) -> pl.DataFrame:
        version = pl.col("row_hash").cast(VERSION).alias("version")
        marks = (pl.lit(False).alias(name) for name in ("is_replay", "is_produced"))
        return bench.copies(text).with_columns(version, *marks)

    def run(text: str) -> tuple[IndexFile, ...]:
        stored = stored_run(build_key_run(numbered(text), has_versions=True), 1)
        return (IndexFile(path=write_index_file(bench.storage, "bench", [stored]), windows=(1,)),)

    points = {name: replace(point, version="$.version") for name, point in bench.context.pipeline.points.items()}
    bench.context = replace(bench.context, pipeline=replace(bench.context.pipeline, points=points))
    task = bench.task(
        "",
        "",
        is_upsert=True,
        at_source=IndexFiles(earlier=run("e@1=3")),
        at_target=IndexFiles(earlier=run("a@1=1 b@2=2 c@3=1 c@4=3 c@5=1"), later=run("d@1=3")),
    )
    here = numbered("a@11=2 b@12=2 c@13=2 d@14=2 e@15=2").drop("is_replay", "is_produced")
    files = (bench.storage.write_parquet("bench", here),)

    answer = bench.judge(with_files(task, files, files))

    assert (answer.clean, answer.counts.matched, answer.counts.mismatched) == (3, 3, 2)


def test_nothing_is_kept_of_a_bucket_that_is_not_judged_again(bench: Bench) -> None:
    clean, changed = bench.task("a@1 b@2", "a@1 b@2"), bench.task("a@1=1", "a@1=2", is_upsert=True)

    assert [bench.judge(replace(task, second=None)).kept for task in (clean, changed)] == [None, None]


def with_files(task: BucketTask, source: tuple[str, ...], target: tuple[str, ...]) -> BucketTask:
    return replace(task, source=replace(task.source, files=source), target=replace(task.target, files=target))


def without_files(answer: BucketAnswer) -> BucketAnswer:
    return replace(answer, verdicts="", findings=None)


def test_under_upsert_the_latest_of_the_index_and_the_tail_counts(bench: Bench) -> None:
    """a: the target had it before; b: an old one before; c: it comes later; d: deleted at the source later."""
    index = IndexFiles(earlier=bench.run("a@1=1 a@2=7 b@3=7 b@4=1", has_versions=True))
    tails = {"clean": bench.tail("c@40=7"), "raw": bench.tail("d@50!")}
    task = bench.task("a@1=7 b@2=7 c@3=7 d@4=7", "d@20=7 d@21!", is_upsert=True, at_target=index, tails=tails)

    assert bench.found(task) == {"b": ("mismatched", "value_differs")}


def test_under_upsert_a_target_ahead_of_an_old_window_is_known_by_the_later_snapshots(bench: Bench) -> None:
    task = bench.task("a@1=1 b@2=1", "a@1=5 b@2=6", is_upsert=True)
    task = replace(task, source=replace(task.source, after=WindowFiles(alike=bench.files("a@60=5 a@61=9"))))

    assert bench.found(task) == {"b": ("mismatched", "value_differs")}


def test_under_upsert_a_truncated_version_is_what_the_target_no_longer_has(bench: Bench) -> None:
    task = cut(bench, bench.task("", "", is_upsert=True), "a@2=1 a@6=7", source="a@1=1 a@2=7")

    assert bench.found(task) == {"a": ("mismatched", "stale_version")}


def test_an_open_record_is_pending_with_its_place(bench: Bench) -> None:
    task = bench.task("a@1", "", tails={"clean": bench.tail("a@30", is_open=True)})

    answer = bench.judge(task)

    assert answer.counts.pending == 1
    frame = bench.storage.read_parquet([answer.findings or ""])
    assert frame is not None
    assert json.loads(frame["evidence"][0])["open"] == ["0:30"]


@pytest.mark.parametrize("is_upsert", with_every_change([False, True], first=1), ids=["events", "versions"])
def test_buckets_take_their_own_keys_from_files_of_fewer_buckets(bench: Bench, is_upsert: bool) -> None:
    """Keep what other windows wrote, and the tails, in one bucket; a to f: cut off; g to n: of this window."""
    whole = bench.task(
        "g@21 h@22 i@23 j@24=1 k@25 l@26",
        "d@30 g@31 j@32=2 k@33 k@34 m@35 n@36",
        is_upsert=is_upsert,
        at_source=IndexFiles(earlier=bench.run("c@2 n@9 m@8", has_versions=is_upsert)),
        at_target=IndexFiles(earlier=bench.run("h@3 l@4=7", has_versions=is_upsert)),
        tails={"clean": bench.tail("i@50")},
    )
    whole = replace(whole, source=replace(whole.source, after=WindowFiles(alike=bench.files("j@60=2"))))
    whole = cut(bench, whole, "a@5 b@6 c@7 d@8 e@2 e@9 f@3 g@4", source="a@1 b@2 d@4 e@5 f@6")

    def judged(buckets: int) -> tuple[list[tuple[Any, ...]], HopCounts, int, int]:
        answers = [
            bench.judge(with_files(replace(whole, bucket=name), source, target))
            for name in (bucket_name(number, buckets) for number in range(buckets))
            for source, target in [(own(whole.source.files, name), own(whole.target.files, name))]
        ]
        findings = bench.storage.read_parquet([answer.findings for answer in answers if answer.findings])
        assert findings is not None
        return (
            findings.sort("key").rows(),
            rollup.add_counts([answer.counts for answer in answers]),
            rollup.add_digests(answer.digest for answer in answers),
            sum(answer.expected for answer in answers),
        )

    def own(files: tuple[str, ...], name: str) -> tuple[str, ...]:
        frame = bench.storage.read_parquet(files)
        assert frame is not None
        return (bench.storage.write_parquet("bench", frame.filter(is_in_bucket(name))),)

    single = judged(1)

    verdicts = {row[1]: row[3] for row in single[0]}
    numbers = in_turn(is_upsert, (4, 16, 2, 64))
    cut_off = dict.fromkeys("abc", "missing")
    repeated = {} if is_upsert else {"g": "duplicate", "j": "mismatched", "k": "duplicate"}
    assert verdicts == {**cut_off, **repeated, "l": "mismatched"}
    assert [judged(buckets) == single for buckets in numbers] == [True] * len(numbers)
