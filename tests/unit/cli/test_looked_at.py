"""Check how a window reports at which keys of earlier windows it looked again."""

import io

import pytest
from rich.console import Console

from makewhole.cli.report import show_looked_at
from makewhole.journal.results.snapshot_manifests import LOOKED_AT, looked_at

pytestmark = pytest.mark.unit

NEXT = {"window": 4, "share": 0, "shares": 1, "until": 3}
LOOK = {
    "windows": [1, 3],
    "keys": 1_200,
    "rows": 2,
    "files": ["x"],
    "gone": [],
    "read_with_other_configuration": [],
    "next": NEXT,
}


def printed(**changes: object) -> str:
    manifests = {"orders": {}, "warehouse": {LOOKED_AT: {"orders→warehouse": LOOK | changes}}}
    out = io.StringIO()
    show_looked_at(Console(file=out, width=200), [{"window": 4, "looked_at": looked_at(manifests)}])
    return out.getvalue().strip()


def test_the_keys_are_counted_with_their_windows() -> None:
    seen = "window 4: looked again at 1,200 keys of windows 1 to 3 in warehouse (orders→warehouse)"
    assert printed() == seen
    assert printed(windows=[2, 2], keys=1) == (
        "window 4: looked again at 1 key of window 2 in warehouse (orders→warehouse)"
    )


def test_windows_that_are_left_out_are_named() -> None:
    assert printed(windows=[], keys=0, gone=[2], read_with_other_configuration=[1]) == (
        "window 4: looked again at no key of an earlier window in warehouse (orders→warehouse); "
        "not at those of 1, 2, whose values are not there to compare"
    )


def test_what_a_manifest_says_is_shown_without_its_files() -> None:
    (look,) = looked_at({"warehouse": {LOOKED_AT: {"hop": LOOK}}})["warehouse"].values()
    assert look == {
        "windows": [1, 3],
        "keys": 1_200,
        "rows": 2,
        "gone": [],
        "read_with_other_configuration": [],
        "until": 3,
    }
