"""Check what is known of a key by a window's files: its verdict, or that it was clean."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from makewhole.compute.frames import VERDICTS
from makewhole.compute.keys import key_hash
from makewhole.compute.placeholders import PLACEHOLDERS
from makewhole.lake.storage import Storage
from makewhole.lake.stored_verdicts import COMPARED, SEMANTICS, VerdictFiles, stored_verdicts
from tests.unit.compute.judge.bucket_input import HOP, NEW, copies, one

pytestmark = pytest.mark.unit

BUCKET = "03of16"
CLEAN = {"summary": {"clean": 2}}


class Window:
    """The files of one bucket of a window, with the verdicts of some keys and the copies of its two slices."""

    def __init__(self, folder: Path) -> None:
        self.storage = Storage(root=str(folder))

    def put(self, name: str, frame: pl.DataFrame) -> str:
        return self.storage.write_parquet(name, frame)

    def verdicts(self, **by_key: str) -> str:
        rows = [{"hop": HOP, "key_hash": key_hash(key), "verdict": verdict} for key, verdict in by_key.items()]
        return self.put("verdicts", pl.DataFrame(rows, schema=VERDICTS))

    def asked(self, files: VerdictFiles, *keys: str) -> dict[str, tuple[str, bool | None]]:
        names = {key_hash(key): key for key in keys}
        stored = stored_verdicts(self.storage, files, list(names))
        return {names[at]: (verdict, is_held) for at, verdict, is_held in stored.rows()}


@pytest.fixture
def window(tmp_path: Path) -> Window:
    return Window(tmp_path)


def files_of(
    window: Window,
    source: list[dict[str, Any]],
    target: list[dict[str, Any]],
    semantics: str = "event",
    **verdicts: str,
) -> VerdictFiles:
    slices = [
        {BUCKET: [window.put("slice", copies(rows, is_topic))]} for rows, is_topic in ((source, True), (target, False))
    ]
    files = {**CLEAN, SEMANTICS: semantics, "verdicts_by_bucket": {BUCKET: [window.verdicts(**verdicts)]}}
    return VerdictFiles.of(HOP, files, slices, BUCKET)


def test_a_key_without_a_row_is_matched_where_the_slices_show_that_it_was_clean(window: Window) -> None:
    rows = [one("a", 1), one("b", 2), one("c", 3)]
    files = files_of(window, rows, [rows[0], one("b", 2, NEW)], b="mismatched", c="missing")

    assert window.asked(files, "a", "b", "c") == {
        "a": ("matched", True),
        "b": ("mismatched", None),
        "c": ("missing", None),
    }


@pytest.mark.parametrize("semantics", ["upsert", "event"])
def test_a_key_without_a_row_was_clean_by_the_semantics_that_its_window_was_judged_by(
    window: Window, semantics: str
) -> None:
    """a: two versions; b: two rows of a store; c: the store has a lower number; d: an older version; e: read twice."""
    source = [one("a", 1), one("a", 2, NEW), one("b", 3), one("c", 4, version=2), one("d", 5), one("d", 6, NEW)]
    target = [one("a", 1, NEW), one("b", 2), one("b", 3), one("c", 4, version=1), one("d", 5)]
    files = files_of(window, [*source, one("e", 7)], [*target, *[one("e", 6)] * 2], semantics)

    versions, events = dict.fromkeys("ae", ("matched", True)), {"c": ("matched", True)}
    assert window.asked(files, *"abcde") == (versions if semantics == "upsert" else events)


@pytest.mark.parametrize("semantics", ["upsert", "event"])
def test_a_key_was_clean_by_what_its_hop_compared(window: Window, semantics: str) -> None:
    """The topic has more columns than the hop compares. Of a value that a placeholder stands for in a record nothing is
    known."""
    rows, unknown = [one(key, at) for at, key in enumerate("abc")], PLACEHOLDERS[0]
    source = copies(rows, True).with_columns(amount("1.00", "2.00", unknown), pl.lit("EU").alias("c:region"))
    target = copies([row | {"row_hash": NEW} for row in rows], False).with_columns(amount("1.00", "9.00", unknown))
    slices = [{BUCKET: [window.put(name, frame)]} for name, frame in (("source", source), ("target", target))]
    files = {**CLEAN, SEMANTICS: semantics, "verdicts_by_bucket": {BUCKET: [window.verdicts()]}}
    compared = {COMPARED: {"source": ["amount"], "target": ["amount"]}}

    assert window.asked(VerdictFiles.of(HOP, {**files, **compared}, slices, BUCKET), *"abc") == {"a": ("matched", True)}
    assert window.asked(VerdictFiles.of(HOP, files, slices, BUCKET), *"abc") == {}


def amount(*texts: str) -> pl.Series:
    return pl.Series("c:amount", texts)


def test_a_key_that_was_not_judged_has_no_verdict(window: Window) -> None:
    source = [one("excluded", 1, excluded_by=[HOP]), one("aborted", 2, is_aborted=True)]
    files = files_of(window, source, [one("excluded", 1), one("aborted", 2), one("unmatched", 3)])

    assert window.asked(files, "excluded", "aborted", "unmatched", "absent") == {}


def test_without_clean_keys_no_slice_is_read(window: Window) -> None:
    files = {
        "summary": {"clean": 0},
        SEMANTICS: "event",
        "verdicts_by_bucket": {BUCKET: [window.verdicts(a="missing")]},
    }
    slices = [{BUCKET: ["gone.parquet"]}, {BUCKET: ["gone.parquet"]}]

    assert window.asked(VerdictFiles.of(HOP, files, slices, BUCKET), "a", "b") == {"a": ("missing", None)}


def test_nothing_is_read_for_no_key(window: Window) -> None:
    assert window.asked(VerdictFiles(hop=HOP, verdicts=("gone.parquet",))) == {}
