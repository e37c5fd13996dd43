"""Check what incidents of tables say, and that none of them keeps a window from being certified."""

import pytest

from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.incidents.settlements import settled_by
from makewhole.model.pipeline import Pipeline

pytestmark = pytest.mark.unit

GROWN = [{"window": 1, "counted": 1000, "rows": 1003}, {"window": 7, "counted": 0, "rows": 1}]


def incident(kind: IncidentKind, **detail: object) -> Incident:
    return Incident(kind=kind, point="warehouse", topic="dw.departures", topic_id="", detail=detail)


def slices(kind: IncidentKind, listed: list[dict[str, int]], rows: int, windows: int | None = None) -> Incident:
    return incident(kind, slices=listed, windows=len(listed) if windows is None else windows, rows=rows, new_rows=0)


@pytest.mark.parametrize(
    ("happened", "sentence"),
    [
        (
            slices(IncidentKind.SLICE_GROWN, GROWN, 4),
            "4 rows came to warehouse (dw.departures) later than `late` reaches, with the times of window 1 "
            "(1,000 → 1,003), window 7 (0 → 1)",
        ),
        (
            slices(IncidentKind.SLICE_SHRUNK, [{"window": 3, "counted": 2, "rows": 1}], 1, windows=21),
            "1 row of warehouse (dw.departures) that earlier windows had counted are gone, with the times of window 3 "
            "(2 → 1), 20 more",
        ),
        (
            slices(IncidentKind.SLICE_FIRST_COUNTED, [], 0, windows=1),
            "the rows of warehouse (dw.departures) with the times of 1 earlier window were counted for the first time",
        ),
        (
            incident(IncidentKind.NO_TIME_INDEX, column="loaded_at"),
            "no index of warehouse (dw.departures) begins with loaded_at: every window reads the whole table",
        ),
        (
            incident(
                IncidentKind.PREPARED_TRANSACTION,
                keys=2,
                number=1,
                transactions=[
                    {"gid": "dt=2/c.parquet", "owner": "", "prepared": "2026-11-01T02:03:04+00:00", "file": True}
                ],
            ),
            "2 keys of warehouse (dw.departures) may be held by 1 file that no marker commits: file dt=2/c.parquet, "
            "written 2026-11-01 02:03 UTC",
        ),
        (
            incident(
                IncidentKind.PREPARED_TRANSACTION,
                keys=2,
                number=1,
                transactions=[{"gid": "755", "owner": "?", "prepared": None, "tables": []}],
            ),
            "2 keys of warehouse (dw.departures) may be held by 1 transaction that may be prepared, which a standby "
            "does not show: transaction 755, in progress at the primary of the standby",
        ),
    ],
    ids=lambda value: value.kind.value if isinstance(value, Incident) else "",
)
def test_an_incident_of_a_table_says_what_happened_and_blocks_nothing(happened: Incident, sentence: str) -> None:
    assert incident_sentence(happened) == sentence
    assert not happened.blocks(Pipeline(name="shop", points={}, hops=()))


def test_files_that_cannot_be_read_are_named_with_their_snapshot_and_what_to_do() -> None:
    cut_off = {"path": "a.parquet", "size_bytes": 4, "written": "2026-11-01T02:03:04+00:00"}
    spoilt = {**cut_off, "path": "b.parquet", "snapshot": "7", "spoilt": True}
    gone = {**cut_off, "path": "c.parquet", "snapshot": "8", "gone": True}
    happened = incident(IncidentKind.UNREADABLE_FILES, number=3, files=[cut_off, spoilt, gone])
    assert incident_sentence(happened) == (
        "3 files of warehouse (dw.departures) cannot be read: a.parquet (4 bytes, written 2026-11-01 02:03 UTC); "
        "b.parquet (4 bytes, written 2026-11-01 02:03 UTC by snapshot 7; it does not decode); "
        "c.parquet (listed 2026-11-01 02:03 UTC by snapshot 8; it is gone). What they hold is not known"
    )
    assert settled_by(happened).startswith("restore what is gone. Where it is lost for good, take it out of the table")
    whole = incident(IncidentKind.UNREADABLE_FILES, number=1, files=[cut_off])
    assert settled_by(whole).startswith("have their writer write them again")


def test_it_says_what_to_do() -> None:
    assert settled_by(incident(IncidentKind.NO_TIME_INDEX, column="loaded_at")) == (
        "make one: `create index concurrently on dw.departures (loaded_at)`"
    )
    assert settled_by(slices(IncidentKind.SLICE_GROWN, GROWN, 4)) == (
        "they are judged in this window. If rows come so late as a rule, write a longer `late` into the pipeline's file"
    )


@pytest.mark.parametrize(
    ("reason", "key", "why", "remedy"),
    [
        ("view", ["id"], "it is a view", "name the table that the view reads as the store, where there is one"),
        (
            "no_key_index",
            ["id"],
            "no index finds the rows of a key",
            "make one: `create index concurrently on dw.departures (id)`",
        ),
        (
            "no_key_index",
            ["shop", "id"],
            "no index finds the rows of a key",
            "nothing has to be done: rows of a key of several columns are found by no index",
        ),
    ],
)
def test_a_store_that_is_not_looked_at_again_says_why(reason: str, key: list[str], why: str, remedy: str) -> None:
    unseen = incident(IncidentKind.VALUES_NOT_LOOKED_AT, reason=reason, key=key)
    assert incident_sentence(unseen) == (
        f"the rows of warehouse (dw.departures) that earlier windows judged are not looked at again: {why}. What is "
        "changed there with its time left as it was is not seen"
    )
    assert settled_by(unseen) == remedy
    assert not unseen.blocks(Pipeline(name="shop", points={}, hops=()))


def test_files_that_no_reader_takes_are_named_and_block_nothing() -> None:
    listed = [{"path": "_temporary/0/a.parquet", "size_bytes": 17, "written": "2026-11-01T02:03:04+00:00"}]
    happened = incident(IncidentKind.LEFT_OVER_FILES, files=listed, number=2, size_bytes=40)
    assert incident_sentence(happened) == (
        "2 files beside those of warehouse (dw.departures) are under a temporary name, or not committed, for longer "
        "than pending.max_age (40 bytes): _temporary/0/a.parquet (17 bytes, written 2026-11-01 02:03 UTC); 1 more. No "
        "reader takes them"
    )
    assert not happened.blocks(Pipeline(name="shop", points={}, hops=()))


def test_files_that_cannot_be_read_keep_a_window_from_being_certified() -> None:
    listed = [
        {"path": f"dt=2/{name}.parquet", "size_bytes": 17, "written": "2026-11-01T02:03:04+00:00"} for name in "abcd"
    ]
    happened = incident(IncidentKind.UNREADABLE_FILES, files=listed, number=12)
    assert incident_sentence(happened) == (
        "12 files of warehouse (dw.departures) are no whole Parquet files: dt=2/a.parquet (17 bytes, written "
        "2026-11-01 02:03 UTC); dt=2/b.parquet (17 bytes, written 2026-11-01 02:03 UTC); dt=2/c.parquet (17 bytes, "
        "written 2026-11-01 02:03 UTC); 9 more. What they hold is not known"
    )
    spoilt = incident(IncidentKind.UNREADABLE_FILES, files=[listed[0] | {"spoilt": True}], number=1)
    assert incident_sentence(spoilt) == (
        "1 file of warehouse (dw.departures) cannot be read: dt=2/a.parquet (17 bytes, written 2026-11-01 02:03 UTC; "
        "it does not decode). What it holds is not known"
    )
    assert happened.blocks(Pipeline(name="shop", points={}, hops=()))
