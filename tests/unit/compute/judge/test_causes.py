"""Check the cause and the evidence of every kind of verdict."""

import json
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from makewhole.compute.frames import ELSEWHERE, FINDINGS, HASHES, KEYS, TAIL, TOPIC_KEYS, Schema, empty
from makewhole.compute.judge.causes import explain
from makewhole.compute.judge.copier_commits import CopierCommits, OffsetCommit
from makewhole.compute.judge.evidence import HopContext
from makewhole.compute.judge.judge_copies import BucketInput, judge
from makewhole.compute.judge.log_history import LogHistory
from makewhole.compute.keys import with_hash
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.points import PointKind

pytestmark = pytest.mark.unit

PLAN = "demo-1-0123456789ab"
OUTSIDE = CopierCommits(group="g", commits=(OffsetCommit(partition=0, lo=0, hi=5),))
WITHIN = CopierCommits(group="g", commits=(OffsetCommit(partition=0, lo=0, hi=5, producer_id=9, producer_epoch=0),))
NOT_KNOWN = CopierCommits(group="g", commits=(OffsetCommit(partition=0, lo=None, hi=5),))


def in_another_topic(_: str) -> dict[str, Any]:
    return {"partial_transaction": {}}


IN_ONE_RECORD: list[dict[str, Any]] = [{"offset": 0, "sequence": 0, "place": "0:0"}] * 2
SESSIONS = [{}, {"producer_epoch": 1}]
OTHER_LEADER = LogHistory(
    leader_changes=(
        Incident(kind=IncidentKind.LEADER_CHANGED, point="t", topic="t", topic_id="T", detail={"epochs": []}),
    )
)


def frame(rows: list[dict[str, Any]], kind: PointKind) -> pl.DataFrame:
    usual = {
        "row_hash": 1,
        "excluded_by": [],
        "partition": 0,
        "producer_id": 9,
        "producer_epoch": 0,
        "is_aborted": False,
        "c:n": "1",
    }
    filled = [
        usual | {"key": "a", "offset": at, "sequence": at, "place": f"0:{at}"} | row for at, row in enumerate(rows)
    ]
    marks: Schema = {"is_replay": pl.Boolean, "is_produced": pl.Boolean} if kind is PointKind.TOPIC else {}
    schema = (TOPIC_KEYS if kind is PointKind.TOPIC else KEYS) | {"c:n": pl.String} | marks
    inputs = {name: dtype for name, dtype in schema.items() if name not in ("key_hi", "key_lo")}
    return with_hash(pl.DataFrame(filled, schema=inputs)).select(*schema)


def finding(
    source: list[dict[str, Any]],
    target: list[dict[str, Any]],
    hop: str = "topic→store",
    unsettled: bool = False,
    **context: Any,
) -> dict[str, Any]:
    kinds = {"ledger": PointKind.LEDGER, "topic": PointKind.TOPIC, "store": PointKind.STORE}
    left, right = (kinds[name] for name in hop.split("→"))
    source_frame, target_frame = frame(source, left), frame(target, right)
    hashes = source_frame.select(*HASHES) if unsettled else empty(HASHES)
    judged = judge(BucketInput(hop=hop, source=source_frame, target=target_frame, unsettled=hashes))
    known = HopContext(
        hop=hop, source_kind=left, target_kind=right, source=source_frame, target=target_frame, **context
    )
    explained = explain(judged, known)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("makewhole.compute.judge.key_copies._MOST_HELD", 0)  # as of a key with very many copies
        assert explain(judged, known).equals(explained)
    assert dict(explained.schema) == FINDINGS
    assert len(explained) == 1
    row = explained.row(0, named=True)
    return row | {"evidence": json.loads(row["evidence"])}


@pytest.mark.parametrize(
    ("hop", "source", "target", "context", "verdict", "cause"),
    [
        ("ledger→topic", [{}], [], {}, "missing", "never_produced"),
        ("ledger→topic", [{}], [{"is_aborted": True}], {}, "missing", "aborted_transaction"),
        ("topic→store", [{}], [], {}, "missing", "lost_after_topic"),
        ("topic→store", [{}], [], {"committed": {0: 5}}, "missing", "committed_before_written"),
        ("ledger→store", [{}], [], {}, "missing", "never_written"),
        ("topic→store", [{}], [{}, {}], {}, "duplicate", "written_before_committed"),
        ("topic→store", [{}, {}], [{}, {}], {}, "duplicate", "upstream_duplicate"),
        ("ledger→topic", [{}], [{"producer_id": -1}] * 2, {}, "duplicate", "retry_without_idempotence"),
        ("ledger→topic", [{}], [{"producer_id": -1}, {}], {}, "duplicate", "application_resend"),
        ("ledger→topic", [{}], [{}, {"producer_epoch": 1, "sequence": 0}], {}, "duplicate", "application_resend"),
        ("ledger→topic", [{}], [{}, {"producer_id": 10}], {}, "duplicate", "application_resend"),
        ("ledger→topic", [{}], [{}, {}], {}, "duplicate", "application_resend"),
        ("ledger→topic", [{}], [{}, {"sequence": 0}], {}, "duplicate", "sequence_repeated"),
        ("ledger→topic", [{}], [{}, {"sequence": 0, "partition": 1}], {}, "duplicate", "application_resend"),
        ("ledger→topic", [{}], IN_ONE_RECORD, {}, "duplicate", "application_resend"),
        (
            "ledger→topic",
            [{}],
            [{**element, "producer_id": -1} for element in IN_ONE_RECORD],
            {},
            "duplicate",
            "application_resend",
        ),
        ("ledger→topic", [{}], [*IN_ONE_RECORD, {"sequence": 0}], {}, "duplicate", "sequence_repeated"),
        ("topic→store", IN_ONE_RECORD, [{}, {}], {}, "duplicate", "upstream_duplicate"),
        (
            "topic→store",
            [{**element, "is_aborted": True} for element in IN_ONE_RECORD] + [{}],
            [{}] * 3,
            {},
            "duplicate",
            "read_uncommitted",
        ),
        ("ledger→topic", [{}], [{"is_produced": True}, {}], {}, "duplicate", "late_original"),
        ("ledger→topic", [{}], [{"is_produced": True}, {}, {}], {}, "duplicate", "application_resend"),
        ("ledger→topic", [{}], [{"is_produced": True}] * 2, {}, "duplicate", "application_resend"),
        ("topic→store", [{}, {"is_replay": True}], [{}, {}], {}, "duplicate", "late_original"),
        ("topic→store", [{}, {"is_produced": True}], [{}, {}], {}, "duplicate", "late_original"),
        ("topic→store", [{}, {}, {"is_replay": True}], [{}, {}], {}, "duplicate", "upstream_duplicate"),
        ("topic→store", [{"is_replay": True}], [{}, {}], {}, "duplicate", "written_before_committed"),
        ("topic→store", [{"is_aborted": True}, {}], [{}, {}], {}, "duplicate", "read_uncommitted"),
        ("topic→store", [{"is_aborted": True}, {}], [{}] * 3, {}, "duplicate", "written_before_committed"),
        ("topic→store", [{"is_aborted": True}] * 2 + [{}], [{}, {}], {}, "duplicate", "written_before_committed"),
        ("topic→store", [{"is_aborted": True}, {}, {}], [{}] * 3, {}, "duplicate", "upstream_duplicate"),
        ("topic→store", [{}], [{"row_hash": 2, "c:n": "2"}], {}, "mismatched", "value_differs"),
        ("topic→store", [], [{}], {}, "unexpected", "not_in_source"),
        ("topic→store", [{"is_aborted": True}], [{}], {}, "unexpected", "read_uncommitted"),
        ("topic→store", [{}], [], {"unsettled": True}, "pending", "in_flight"),
        ("ledger→topic", [{}], [], {"not_lost": in_another_topic}, "missing", "partial_transaction"),
        ("topic→topic", [{}], [], {"not_lost": in_another_topic, "copier": OUTSIDE}, "missing", "partial_transaction"),
        (
            "ledger→topic",
            [{}],
            [],
            {"not_lost": in_another_topic, "target_log": OTHER_LEADER},
            "missing",
            "leader_changed",
        ),
        ("topic→topic", [{}], [], {"copier": OUTSIDE}, "missing", "committed_before_written"),
        ("topic→topic", [{}], [{"is_aborted": True}], {"copier": OUTSIDE}, "missing", "committed_before_written"),
        ("topic→topic", [{}, {"offset": 9}], [], {"copier": OUTSIDE}, "missing", "never_produced"),
        ("topic→topic", [{"offset": 5}], [], {"copier": OUTSIDE}, "missing", "never_produced"),
        ("topic→topic", [{}], [], {"copier": WITHIN}, "missing", "never_produced"),
        ("topic→topic", [{}], [{"is_aborted": True}], {"copier": NOT_KNOWN}, "missing", "aborted_transaction"),
        ("topic→topic", [{}], [], {"copier": OUTSIDE, "target_log": OTHER_LEADER}, "missing", "leader_changed"),
        ("topic→topic", [{}], SESSIONS, {"copier": OUTSIDE}, "duplicate", "written_before_committed"),
        ("topic→topic", [{}], SESSIONS, {"copier": WITHIN}, "duplicate", "application_resend"),
        ("topic→topic", [{}], SESSIONS, {"copier": NOT_KNOWN}, "duplicate", "application_resend"),
        ("topic→topic", [{}], SESSIONS, {}, "duplicate", "application_resend"),
        ("topic→topic", [{}, {}], SESSIONS, {"copier": OUTSIDE}, "duplicate", "application_resend"),
        ("topic→topic", [{}], [{}, {}], {"copier": OUTSIDE}, "duplicate", "application_resend"),
        (
            "topic→topic",
            [{}],
            [{}, {}, {"producer_epoch": 1, "is_aborted": True}],
            {"copier": OUTSIDE},
            "duplicate",
            "application_resend",
        ),
    ],
)
def test_each_verdict_has_the_cause_that_its_evidence_carries(
    hop: str, source: list[Any], target: list[Any], context: dict[str, Any], verdict: str, cause: str
) -> None:
    judged = finding(source, target, hop, **context)

    assert (judged["verdict"], judged["cause"], judged["hop"], judged["key"]) == (verdict, cause, hop, "a")


def test_a_key_that_the_group_has_not_reached_is_not_yet_consumed() -> None:
    unconsumed = frame([{}], PointKind.TOPIC).select(*HASHES)

    judged = finding([{}], [], unsettled=True, unconsumed=unconsumed, committed={0: 0})

    assert (judged["verdict"], judged["cause"]) == ("pending", "not_yet_consumed")
    assert judged["evidence"]["group_committed"] == {"0": 0}


def test_evidence_names_places_identity_and_values() -> None:
    evidence = finding([{"replay_plan": PLAN}], [{}, {}])["evidence"]

    assert evidence == {
        "in_source": True,
        "source_copies": 1,
        "target_copies": 2,
        "row_hash": "1",
        "values": {"n": "1"},
        "source": [
            {
                "place": "0:0",
                "partition": 0,
                "offset": 0,
                "producer_id": 9,
                "producer_epoch": 0,
                "sequence": 0,
                "replay_plan": PLAN,
            }
        ],
        "target": [{"place": "0:0"}, {"place": "0:1"}],
    }


def test_evidence_of_a_mismatch_names_the_columns_with_both_values() -> None:
    evidence = finding([{}], [{"row_hash": 2, "c:n": None}])["evidence"]

    assert evidence["columns"] == {"n": {"source": "1", "target": None}}


def test_a_record_that_the_filter_keeps_out_is_marked_and_its_values_are_not_those_that_count() -> None:
    kept_out = {"excluded_by": ["topic→store"], "c:n": "9", "row_hash": 9}
    evidence = finding([kept_out, {}], [{"place": "(0,1)"}, {"place": "(0,2)"}])["evidence"]

    assert [copy.get("excluded", False) for copy in evidence["source"]] == [True, False]
    assert evidence["values"] == {"n": "1"}


@pytest.mark.parametrize(
    ("is_upsert", "places"), [(False, ["0:5", "0:6", "0:7"]), (True, ["0:5", "0:7", "0:6"])], ids=["event", "upsert"]
)
def test_the_records_of_a_repeated_key_outside_the_window_are_named_in_the_order_in_which_they_count(
    is_upsert: bool, places: list[str]
) -> None:
    rows: list[dict[str, Any]] = [
        {"place": "0:5"},
        {"place": "0:6", "version": 3},
        {"place": "0:7", "version": 2, "is_later": True},
    ]
    keys = frame([{}], PointKind.TOPIC).select(*HASHES)
    copies = pl.DataFrame([{"row_hash": 7, "is_replay": False, **row} for row in rows])
    elsewhere = pl.concat([keys.join(copies, how="cross"), empty(ELSEWHERE)], how="diagonal_relaxed")
    target = [{"place": "(0,1)"}, {"place": "(0,2)"}]
    evidence = finding([{}], target, source_elsewhere=elsewhere, is_upsert=is_upsert)["evidence"]

    assert [copy["place"] for copy in evidence["source_elsewhere"]] == places
    assert evidence["source_elsewhere"][1 if is_upsert else 2] == {
        "place": "0:7",
        "partition": 0,
        "offset": 7,
        "version": 2,
        "later": True,
        "row_hash": "7",
    }


def test_a_great_many_copies_are_counted_and_ten_are_shown() -> None:
    evidence = finding([{}], [{"place": f"(0,{at})"} for at in range(500)])["evidence"]

    assert evidence["target_copies"] == 500
    assert len(evidence["target"]) == 10


def test_a_repeated_record_has_the_places_of_all_its_copies_that_stand_in_no_other_place() -> None:
    copies = [{"place": f"0:{at}", "offset": at, "replay_plan": PLAN if at == 3 else None} for at in range(20)]
    ours = {"place": "0:90", "offset": 90, "replay_plan": PLAN, "is_replay": True}
    aborted = {"place": "0:91", "offset": 91, "is_aborted": True}

    evidence = finding([{}], [*copies, ours, aborted], "ledger→topic")["evidence"]

    assert len(evidence["target"]) == 10
    assert evidence["repeated"] == {"here": [f"0:{at}" for at in range(20)], "elsewhere": 0}
    assert "repeated" not in finding([{}], [{}, {}])["evidence"]


def test_matched_keys_are_no_findings() -> None:
    source = frame([{}], PointKind.TOPIC)
    judged = judge(BucketInput(hop="topic→store", source=source, target=frame([{}], PointKind.STORE)))
    context = HopContext(
        hop="topic→store", source_kind=PointKind.TOPIC, target_kind=PointKind.STORE, source=source, target=source
    )

    assert explain(judged, context).is_empty()


# What the log's own history explains


def incident(kind: IncidentKind, lo: int = 0, hi: int = 9, **detail: Any) -> Incident:
    return Incident(kind=kind, point="topic", topic="topic", topic_id="A", partition=0, lo=lo, hi=hi, detail=detail)


CHANGED = incident(IncidentKind.LEADER_CHANGED, epochs=[[0, 3], [1, 9]])
CUT = incident(IncidentKind.TRUNCATED, lo=3, lineage=0)
MADE_AGAIN = incident(IncidentKind.TOPIC_RECREATED)


@pytest.mark.parametrize(
    ("log", "target", "is_truncated", "cause"),
    [
        (LogHistory(leader_changes=(CHANGED,)), [], False, "leader_changed"),
        (LogHistory(truncated=(CUT,)), [], False, "leader_changed"),
        (LogHistory(truncated=(CUT,), leader_changes=(CHANGED,)), [], True, "truncated"),
        (LogHistory(recreated=(MADE_AGAIN,), leader_changes=(CHANGED,)), [], False, "topic_recreated"),
        (LogHistory(leader_changes=(CHANGED,)), [{"is_aborted": True}], False, "aborted_transaction"),
    ],
)
def test_an_absence_is_explained_by_what_happened_to_the_log(
    log: LogHistory, target: list[Any], is_truncated: bool, cause: str
) -> None:
    keys = frame([{}], PointKind.LEDGER).select(*HASHES) if is_truncated else empty(HASHES)

    judged = finding([{}], target, "ledger→topic", target_log=log, truncated=keys)

    assert (judged["verdict"], judged["cause"]) == ("missing", cause)


class Numbering:
    """Sequence evidence in which producer 9 alone is known, and suspect."""

    def of(self, partition: int, producer_id: int, epoch: int) -> dict[str, Any] | None:
        return {"producer_id": 9, "producer_epoch": epoch, "gaps": 1} if producer_id == 9 else None

    def suspects(self) -> list[dict[str, Any]]:
        return [{"partition": 0, "producer_id": 9, "epoch_bumps": 1}]


def test_a_changed_leader_is_evidence_with_its_epochs_and_the_suspect_producers() -> None:
    log = LogHistory(leader_changes=(CHANGED,))

    evidence = finding([{}], [], "ledger→topic", target_log=log, target_sequences=Numbering())["evidence"]

    assert evidence["leader_changes"] == [{"partition": 0, "lo": 0, "hi": 9, "epochs": [[0, 3], [1, 9]]}]
    assert evidence["suspect_producers"] == [{"partition": 0, "producer_id": 9, "epoch_bumps": 1}]


def test_the_numbering_of_every_copys_producer_is_evidence_once() -> None:
    target = [{}, {}, {"producer_id": 10}, {"producer_id": -1}]

    evidence = finding([{}], target, "ledger→topic", target_sequences=Numbering())["evidence"]

    assert evidence["sequences"] == [{"partition": 0, "producer_id": 9, "producer_epoch": 0, "gaps": 1}]


@pytest.mark.parametrize("kind", [IncidentKind.OPEN_TRANSACTION, IncidentKind.HANGING_TRANSACTION])
def test_a_pending_key_names_the_transaction_that_it_waits_for(kind: IncidentKind) -> None:
    detail: dict[str, Any] = {"producer_id": 7, "producer_epoch": 1, "transactional_id": "tx", "state": "Ongoing"}
    ours = incident(kind, lo=4, last_timestamp_ms=1_000, **detail)
    behind = incident(kind, lo=40, last_timestamp_ms=-1, **detail)
    tail = frame([{"place": "0:5"}], PointKind.TOPIC).select(*HASHES, "place")

    judged = finding(
        [{}], [], "ledger→topic", unsettled=True, open_copies=tail, target_log=LogHistory(transactions=(ours, behind))
    )

    assert (judged["verdict"], judged["cause"]) == ("pending", "in_flight")
    assert judged["evidence"]["open"] == ["0:5"]
    assert judged["evidence"]["transactions"] == [
        detail
        | {
            "partition": 0,
            "first_offset": 4,
            "since": "1970-01-01T00:00:01+00:00",
            "is_hanging": kind is IncidentKind.HANGING_TRANSACTION,
        }
    ]


SINCE = datetime(2013, 1, 1, 2, 3, tzinfo=UTC)


def test_what_a_group_does_not_reach_for_too_long_names_the_group_and_where_it_stands() -> None:
    unconsumed = frame([{}], PointKind.TOPIC).select(*HASHES)
    waiting = unconsumed.with_columns(pl.lit(SINCE).alias("since"))

    judged = finding([{}], [], group="loader", unconsumed=unconsumed, committed={0: 0}, waiting=waiting)

    assert (judged["verdict"], judged["cause"]) == ("missing", "not_consumed")
    evidence = judged["evidence"]
    assert (evidence["group"], evidence["group_committed"]) == ("loader", {"0": 0})
    assert evidence["waiting_since"] == SINCE.isoformat()


def test_what_is_pending_for_the_first_time_waits_since_the_window_was_opened() -> None:
    evidence = finding([{}], [], unsettled=True, opened_at=SINCE)["evidence"]
    assert evidence["waiting_since"] == SINCE.isoformat()


def test_what_stays_in_an_open_transaction_for_too_long_names_its_place() -> None:
    held = frame([{}], PointKind.TOPIC).with_columns(pl.lit("0:7").alias("place"))
    open_copies = pl.concat([empty(TAIL), held.select(name for name in TAIL if name in held.columns)], how="diagonal")

    judged = finding([{}], [], "ledger→topic", open_copies=open_copies)

    assert (judged["verdict"], judged["cause"]) == ("missing", "not_committed")
    assert judged["evidence"]["open"] == ["0:7"]
