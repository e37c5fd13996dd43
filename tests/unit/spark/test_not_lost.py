"""Check which certified windows are asked for keys that a store lacks now, and which of them decides."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from makewhole.compute.frames import ELSEWHERE, HASHES, JUDGED, KEYS, empty
from makewhole.lake.storage import Storage
from makewhole.lake.stored_verdicts import VerdictFiles
from makewhole.model.hops import Hop, Remedies, Remedy, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.grouping import Grouping
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.bucket.other_windows import CertifiedResult
from makewhole_spark.reconcile.bucket.task import BucketEnd, BucketTask, KnownElsewhere, SecondRound
from makewhole_spark.reconcile.judge.certified import SeenKeys, mark_vanished
from makewhole_spark.reconcile.judge.erased_keys import mark_erased, mark_tombstone_unknown
from tests.unit.compute.judge.bucket_input import hashed

pytestmark = pytest.mark.unit

REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
PIPELINE = Pipeline(
    name="shop",
    points={
        "log": TopicPoint(name="log", connection="k", topic="log", key=("$.id",)),
        "store": TablePoint(name="store", kind=PointKind.STORE, connection="db", table="store", key=("id",)),
    },
    hops=(Hop(source="log", target="store", remedies=REPORT),),
)
JUDGED_NOW = 9
END = datetime(2025, 3, 2, tzinfo=UTC)


class Shelf:
    """Verdict files of certified windows."""

    def __init__(self, folder: Path) -> None:
        self.storage = Storage(root=str(folder))
        self.results: list[CertifiedResult] = []

    def certify(
        self,
        number: int,
        held: dict[str, bool],
        *,
        verdict: str = "matched",
        repaired: tuple[str, ...] = (),
        lo: int = 0,
        is_upsert: bool = False,
    ) -> None:
        """Put a window with ten offsets of partition 0."""
        rows = {
            "key_hash": [key_hash(key) for key in held],
            "verdict": [verdict] * len(held),
            "is_held": list(held.values()),
        }
        path = self.storage.write_parquet(f"window={number}", pl.DataFrame(rows))
        mended = pl.DataFrame({"key_hash": [key_hash(key) for key in repaired]})
        self.results.append(
            CertifiedResult(
                number=number,
                revision=1,
                end=END,
                files=files(path, is_upsert=is_upsert),
                repaired=self.storage.write_parquet(f"window={number}", mended) if repaired else None,
                ranges=((0, lo, lo + 10),),
            )
        )

    def task(self, *, is_upsert: bool = False, group: Grouping | None = None) -> BucketTask:
        context = SimpleNamespace(
            storage=self.storage, pipeline=PIPELINE, window=SimpleNamespace(number=JUDGED_NOW, start=None)
        )
        semantics = Semantics.UPSERT if is_upsert else Semantics.EVENT
        return BucketTask(
            context=cast(WindowContext, context),
            hop=replace(PIPELINE.hops[0], semantics=semantics, group=group),
            bucket="",
            source=BucketEnd(),
            target=BucketEnd(),
            elsewhere=KnownElsewhere(certified=tuple(self.results)),
            second=SecondRound(unread_tails=frozenset({("log", 0)})),
        )


def files(path: str, *, is_upsert: bool = False) -> VerdictFiles:
    return VerdictFiles(hop=PIPELINE.hops[0].name, verdicts=(path,), is_upsert=is_upsert)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def missing(*keys: str) -> pl.DataFrame:
    """Return keys that are judged missing, with one of another verdict."""
    rows: list[dict[str, Any]] = [{"key": key, "key_hash": key_hash(key), "verdict": "missing"} for key in keys]
    rows.append({"key": "there", "key_hash": key_hash("there"), "verdict": "matched"})
    return hashed(rows, {"key": pl.String, **JUDGED})


def key_hash(key: str) -> str:
    return f"hash of {key}"


def elsewhere(**places: str) -> pl.DataFrame:
    """Return the copies of keys in earlier windows."""
    return hashed([{"key": key, "place": place} for key, place in places.items()], ELSEWHERE)


def marked(task: BucketTask, judged: pl.DataFrame, outside: pl.DataFrame) -> tuple[dict[str, str], SeenKeys]:
    judged, erased = mark_erased(task, judged)
    judged, seen = mark_vanished(task, judged, empty(KEYS), outside)
    return dict(mark_tombstone_unknown(judged, erased).select("key", "verdict").rows()), seen


def verdicts(shelf: Shelf, judged: pl.DataFrame, outside: pl.DataFrame, *, is_upsert: bool = False) -> dict[str, str]:
    return marked(shelf.task(is_upsert=is_upsert), judged, outside)[0]


def test_only_windows_that_hold_a_record_of_the_key_are_read(shelf: Shelf) -> None:
    shelf.certify(1, {"a": True, "b": True}, lo=0)
    shelf.results.append(CertifiedResult(number=2, revision=1, end=END, files=files("gone"), ranges=((0, 10, 20),)))

    answers, seen = marked(shelf.task(), missing("a", "b"), elsewhere(a="0:5", b="1:5"))

    assert answers == {"a": "vanished", "b": "missing", "there": "matched"}
    assert seen.evidence_of(key_hash("a")) == {"seen": {"window": 1, "revision": 1}}
    assert seen.evidence_of(key_hash("b")) == {}


def test_keys_are_asked_for_whatever_becomes_of_them(shelf: Shelf) -> None:
    """Also those that the window's own revision saw, and those of which a tombstone may be in what is gone."""
    shelf.certify(JUDGED_NOW, {"a": True}, lo=0)
    task = shelf.task()
    gone = replace(task.elsewhere.erasures, erasing=("log",), unread=frozenset({("log", 0)}))
    task = replace(task, elsewhere=replace(task.elsewhere, erasures=gone))

    answers, seen = marked(task, missing("a", "b"), elsewhere())

    assert answers == {"a": "vanished", "b": "undecidable", "there": "matched"}
    judged = missing("a", "b").filter(pl.col("verdict") == "missing")
    assert seen.missing.rows() == judged.select(*HASHES).rows()


def test_a_tombstone_that_compaction_may_have_taken_from_the_tail_has_its_own_cause(shelf: Shelf) -> None:
    task = shelf.task()
    task = replace(
        task,
        elsewhere=replace(task.elsewhere, erasures=replace(task.elsewhere.erasures, erasing=("log",))),
        second=SecondRound(compacted_tails=frozenset({("log", 0)})),
    )
    judged, erased = mark_erased(task, missing("a"))

    frame = mark_tombstone_unknown(judged, erased)

    assert frame.select("key", "verdict", "hint").rows()[0] == ("a", "undecidable", "compacted")


def test_the_newest_window_that_judged_the_key_decides(shelf: Shelf) -> None:
    shelf.certify(1, {"a": True, "b": True}, lo=0)
    shelf.certify(3, {"a": False}, lo=20)
    outside = pl.concat([elsewhere(a="0:5", b="0:6"), elsewhere(a="0:25", b="0:26")])

    assert verdicts(shelf, missing("a", "b"), outside) == {"a": "missing", "b": "vanished", "there": "matched"}


def test_what_a_certified_window_had_repaired_was_there(shelf: Shelf) -> None:
    shelf.certify(JUDGED_NOW, {"a": False, "b": False}, repaired=("a",))

    assert verdicts(shelf, missing("a", "b"), elsewhere()) == {"a": "vanished", "b": "missing", "there": "matched"}


def test_under_upsert_only_the_windows_own_revisions_judged_the_same_version(shelf: Shelf) -> None:
    shelf.certify(1, {"a": True, "b": True}, lo=0)
    shelf.certify(JUDGED_NOW, {"b": True}, lo=80)
    outside = elsewhere(a="0:5", b="0:6")

    answers = verdicts(shelf, missing("a", "b"), outside, is_upsert=True)
    assert answers == {"a": "missing", "b": "vanished", "there": "matched"}


@pytest.mark.parametrize("verdict", ["pending", "mismatched", "conflict", "undecidable", "missing"])
def test_under_upsert_a_row_that_held_another_version_proves_nothing_of_this_one(shelf: Shelf, verdict: str) -> None:
    """The older version was there while the key waited for this one, or the finding was tolerated."""
    shelf.certify(JUDGED_NOW, {"a": True}, verdict=verdict, is_upsert=True)

    assert verdicts(shelf, missing("a"), elsewhere(), is_upsert=True) == {"a": "missing", "there": "matched"}


@pytest.mark.parametrize(
    ("verdict", "is_held"), [("matched", True), ("duplicate", True), ("vanished", False), ("erased", False)]
)
def test_under_upsert_a_row_that_held_the_version_has_vanished(shelf: Shelf, verdict: str, is_held: bool) -> None:
    shelf.certify(JUDGED_NOW, {"a": is_held}, verdict=verdict, is_upsert=True)

    assert verdicts(shelf, missing("a"), elsewhere(), is_upsert=True) == {"a": "vanished", "there": "matched"}


def test_what_was_repaired_under_upsert_held_the_version_whatever_it_held_before(shelf: Shelf) -> None:
    shelf.certify(JUDGED_NOW, {"a": True, "b": True}, verdict="mismatched", repaired=("a",), is_upsert=True)

    answers = verdicts(shelf, missing("a", "b"), elsewhere(), is_upsert=True)
    assert answers == {"a": "vanished", "b": "missing", "there": "matched"}


@pytest.mark.parametrize("verdict", ["mismatched", "undecidable", "conflict"])
def test_the_row_of_an_event_that_was_there_has_vanished_whatever_it_held(shelf: Shelf, verdict: str) -> None:
    shelf.certify(JUDGED_NOW, {"a": True}, verdict=verdict)

    assert verdicts(shelf, missing("a"), elsewhere()) == {"a": "vanished", "there": "matched"}


def test_a_key_that_only_waited_in_a_newer_window_was_last_judged_by_an_older_one(shelf: Shelf) -> None:
    shelf.certify(1, {"a": True}, lo=0)
    shelf.certify(JUDGED_NOW, {"a": False}, verdict="pending", lo=80)

    assert verdicts(shelf, missing("a"), elsewhere(a="0:5")) == {"a": "vanished", "there": "matched"}


@pytest.mark.parametrize("is_upsert", [False, True], ids=["event", "upsert"])
def test_a_key_that_was_handed_over_is_asked_for_until_a_window_judged_it(shelf: Shelf, is_upsert: bool) -> None:
    """Leave out what a later window says of `a`, which is of another version, and that one saw `c`, which this window
    never handed over."""
    shelf.certify(JUDGED_NOW, {"a": True, "b": True}, verdict="pending", is_upsert=is_upsert)
    shelf.certify(JUDGED_NOW + 1, {"a": True, "c": True}, is_upsert=is_upsert)
    shelf.certify(JUDGED_NOW + 3, {"b": True}, is_upsert=is_upsert)
    shelf.certify(JUDGED_NOW + 4, {"a": False, "b": False}, verdict="missing", is_upsert=is_upsert)
    own, *following = shelf.results
    shelf.results = [own]
    task = shelf.task(is_upsert=is_upsert)
    task = replace(task, second=replace(task.known_since, following=tuple(following)))

    answers, seen = marked(task, missing("a", "b", "c"), elsewhere())

    assert answers == {"a": "vanished", "b": "vanished", "c": "missing", "there": "matched"}
    assert [seen.seen[key_hash(key)] for key in "ab"] == [(JUDGED_NOW + 1, 1), (JUDGED_NOW + 3, 1)]
    assert seen.handed_on.rows() == missing("a", "b").select(*HASHES).rows()[:2]


def total_verdict(shelf: Shelf, outside: pl.DataFrame) -> str:
    task = shelf.task(group=Grouping(identity="line"))
    return marked(task, missing("a"), outside)[0]["a"]


@pytest.mark.parametrize("verdict", ["pending", "mismatched", "undecidable"])
def test_a_row_of_many_records_that_held_a_part_of_them_proves_nothing_of_all(shelf: Shelf, verdict: str) -> None:
    shelf.certify(JUDGED_NOW, {"a": True}, verdict=verdict)

    assert total_verdict(shelf, elsewhere()) == "missing"


def test_a_row_of_many_records_that_held_those_of_an_older_window_proves_nothing_of_all(shelf: Shelf) -> None:
    shelf.certify(1, {"a": True}, lo=0)
    assert total_verdict(shelf, elsewhere(a="0:5")) == "missing"

    shelf.certify(JUDGED_NOW, {"a": True}, lo=80)
    assert total_verdict(shelf, elsewhere(a="0:5")) == "vanished"
