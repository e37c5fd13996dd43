"""The approval page has counts, refusals and samples, and never a key or a value."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compensation.approval.page import ApprovalPage, ApprovalQuestion, approval_page, escaped
from makewhole.compensation.preview.dry_report import (
    DryRun,
    DryRunPart,
    Forecast,
    RecordToSend,
    Sample,
    TableEffects,
    TopicEffects,
)
from makewhole.kafka.group_offsets import CutOff, OffsetOutOfRange
from makewhole.kafka.topic_readers import ReadingGroup
from makewhole.model.actions import Action, read_before
from makewhole.model.hops import Remedy
from makewhole.model.plan import Plan, PlanState
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.row_change import RowChange

pytestmark = pytest.mark.unit

SECRET = "SECRET"
PLAN = Plan(
    id="flights-7-0123456789ab",
    pipeline="flights",
    window=7,
    revision=1,
    sha256="0123456789ab" + "0" * 52,
    payload_uri="file:///x",
    counts={"redeliver": 3, "upsert": 2},
    state=PlanState.AWAITING_APPROVAL,
)


def test_the_page_of_a_plan() -> None:
    page = approval_page(question())
    assert page.subject == "Repair flights/7: 5 actions"
    assert page.body == (
        "Departures, to the warehouse\n"
        "\n"
        "Window 7: a to b\n"
        "\n"
        "If it ran at 2026-01-31 12:00 UTC:\n"
        "\n"
        "| remedy | target | actions | would be done | refused | waits | done already | payloads from |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
        "| redeliver | flights (kafka:flights) | 3 | 3 | 0 | 0 | 0 | archive 2, broker 1 |\n"
        "| upsert | warehouse (pg:dw.departures) | 2 | 1 | 1 | 0 | 0 | archive 2 |\n"
        "\n"
        "Refused:\n"
        "\n"
        "- 1 upsert warehouse: stale: the row is of a newer version than the record\n"
        "\n"
        "For example:\n"
        "\n"
        "- action 0, redeliver flights: a record to partition 2, a value of 8 bytes, 1 header, "
        "time as in the original\n"
        "- action 1, upsert warehouse: 1 row now, 1 after it; columns: delay\n"
        "- action 2, upsert warehouse: 0 rows now, 1 after it; columns: id, delay\n"
        "- action 3, quarantine warehouse: 2 rows now, 1 after it, 1 moved aside\n"
        "- action 4, restore warehouse: 1 row now, 2 after it; columns: id, delay\n"
        "- action 5, upsert warehouse: refused\n"
        "\n"
        "See keys and values, before and after, and how it stands now: "
        "`makewhole plan dry-run flights-7-0123456789ab`\n"
        "\n"
        f"Plan `flights-7-0123456789ab`, SHA-256 `{PLAN.sha256}`. The answer is bound to this content.\n"
        "\n"
        "Who may answer: oncall, group:payments (anna, ben).\n"
        "\n"
        "**Approve** does these actions, each exactly once; the guards are asked again then. **Reject** leaves "
        "everything as it is, and the window open."
    )


def test_no_key_and_no_value_is_on_it() -> None:
    """All data in the samples is SECRET; the same dry run shows it on the command line."""
    page = approval_page(question())
    assert SECRET not in page.subject + page.body


def test_an_undo_says_what_it_takes_back() -> None:
    page = approval_page(replace(question(), plan=replace(PLAN, undoes="flights-7-aaaaaaaaaaaa")))
    assert page.subject == "Undo flights/7: 5 actions"
    assert "It takes back what plan `flights-7-aaaaaaaaaaaa` did, the last one first." in page.body


def test_without_a_dry_run_the_page_says_so_and_counts_what_is_planned() -> None:
    page = approval_page(replace(question(), dry_run="connection pg: the session broke"))
    assert "**What it would do now is not known**: connection pg: the session broke" in page.body
    assert "| redeliver | 3 |\n| upsert | 2 |" in page.body
    assert "For example" not in page.body


def test_what_is_only_reported_is_named_as_no_part_of_the_plan() -> None:
    sentences = ("4 missing on a→b: nothing is written, because the remedy is `report`", "<b>")
    page = approval_page(replace(question(), reported=sentences))
    assert (
        "Not in this plan:\n\n- 4 missing on a→b: nothing is written, because the remedy is \\`report\\`\n"
        "- &lt;b&gt;\n\n"
    ) in page.body
    assert "Not in this plan" not in approval_page(question()).body


def test_the_page_stays_small_however_large_the_plan_is() -> None:
    small = dry_run()
    parts = tuple(
        replace(small.parts[1], reasons={Refusal(RefusalCode.UNFIT, f"{number} " + "x" * 900): 1})
        for number in range(500)
    )
    large = replace(small, parts=parts, samples=small.samples * 500)
    page = approval_page(replace(question(), dry_run=large, about=("a" * 100_000,), reported=("b" * 9_000,) * 500))
    assert len(page.body) < 20_000
    assert "- and 490 more" in page.body


def test_markup_from_outside_is_text() -> None:
    nasty = "<script>alert(1)</script> [x](javascript:y) | # ![i](z)\n\n# Approved `by` _all_ \x1b[2J"
    page = approval_page(replace(question(), about=(nasty,), who=nasty, dry_run=nasty))
    assert "<script>" not in page.body
    assert "\x1b" not in page.body
    assert not re.search(r"(?<!\\)!?\[", page.body)
    assert not re.search(r"^# ", page.body, re.MULTILINE)


@given(st.text())
def test_escaped_text_is_one_line_without_markup(text: str) -> None:
    shown = escaped(text)
    assert "\n" not in shown
    assert "<" not in shown
    assert not re.search(r"(?<!\\)[`*_\[\]|#!~]", shown.replace("\\\\", ""))


def test_the_digest_is_over_all_that_is_shown() -> None:
    page = approval_page(question())
    others = [
        ApprovalPage(subject=page.subject + " ", body=page.body),
        ApprovalPage(subject=page.subject, body=page.body[:-1]),
    ]
    assert len({page.sha256, *(other.sha256 for other in others)}) == 3


def test_the_page_says_what_stays_empty_and_who_waits() -> None:
    effects = TableEffects(
        target="warehouse",
        place="pg:dw.departures",
        left_empty={"loaded_at": 1_200},
        locked_chunks=2,
        chunk_actions=1_000,
    )
    asked = question()
    assert isinstance(asked.dry_run, DryRun)
    body = approval_page(replace(asked, dry_run=replace(asked.dry_run, tables=(effects,)))).body
    assert (
        "Beside the rows:\n\n"
        "- warehouse (pg:dw.departures): loaded\\_at stays empty in 1,200 inserted rows, as \\`leave\\` of the "
        "hop says\n"
        "- warehouse (pg:dw.departures) has no unique index on its key: other writers of the table wait during 2 "
        "chunks of up to 1,000 actions, each for as long as its transaction takes (about 1 s for 10,000 actions); "
        "readers do not. A unique index on exactly the key makes this needless\n\n"
        "For example:"
    ) in body


OUT_OF_RANGE = OffsetOutOfRange(committed=99, start=3, end=12)
CUT_OFF = CutOff(leader_epoch=1, agreed=7)


@pytest.mark.parametrize(
    ("groups", "silent", "lines"),
    [
        (
            (
                ReadingGroup(group="dw_loader", lag=1_203, unread=0, records=1_200),
                ReadingGroup(group="far", lag=12_000, unread=0),
                ReadingGroup(group="b*i", lag=4, unread=1, records=0),
                ReadingGroup(group="restored", lag=0, unread=0, out_of_range={0: OUT_OF_RANGE}),
                ReadingGroup(group="cut", lag=0, unread=0, out_of_range={0: replace(OUT_OF_RANGE, cut_off=CUT_OFF)}),
            ),
            None,
            "- flights (log:flights) is read by group dw\\_loader, 1,200 behind\n"
            "- flights (log:flights) is read by group far, at most 12,000 behind\n"
            "- flights (log:flights) is read by group b\\*i, 0 behind, no offset in 1 partition\n"
            "- flights (log:flights) is read by group restored, how far behind is not known: it stands at offset 99 of "
            "partition 0, whose log has 3 to 12, and will read what its auto.offset.reset says "
            "(group\\_out\\_of\\_range)\n"
            "- flights (log:flights) is read by group cut, how far behind is not known: it stands at offset 99 of "
            "partition 0, whose log was cut off at 7 since, and will read what its auto.offset.reset says "
            "(group\\_out\\_of\\_range)",
        ),
        ((), None, "- flights (log:flights): no consumer group has an offset there; who reads it is not known"),
        ((), "refused", "- flights (log:flights): which groups read it is not known: refused"),
    ],
)
def test_the_page_says_who_gets_the_records(groups: tuple[ReadingGroup, ...], silent: str | None, lines: str) -> None:
    effects = TopicEffects(target="flights", place="log:flights", groups=groups, silent=silent)
    asked = question()
    assert isinstance(asked.dry_run, DryRun)
    body = approval_page(replace(asked, dry_run=replace(asked.dry_run, topics=(effects,)))).body
    assert f"Who gets the records:\n\n{lines}\n\nFor example:" in body


def question() -> ApprovalQuestion:
    return ApprovalQuestion(
        plan=PLAN,
        label="flights/7",
        about=("Departures, to the warehouse", "Window 7: a to b"),
        who="oncall, group:payments (anna, ben)",
        dry_run=dry_run(),
        dry_run_at=datetime(2026, 1, 31, 12, tzinfo=UTC),
    )


def dry_run() -> DryRun:
    def forecasts(would: int, refused: int = 0) -> dict[Forecast, int]:
        return dict.fromkeys(Forecast, 0) | {Forecast.WOULD: would, Forecast.REFUSED: refused}

    record = RecordToSend(
        key=SECRET.encode(),
        value=b'"SECRET"',
        headers=((SECRET, SECRET.encode()),),
        partition=2,
        timestamp_ms=1,
        fields=(SECRET,),
    )
    old, new = '{"id": "SECRET", "delay": 1}', '{"id": "SECRET", "delay": 2}'
    shown: list[tuple[Remedy, Forecast, Any]] = [
        (Remedy.REDELIVER, Forecast.WOULD, record),
        (Remedy.UPSERT, Forecast.WOULD, RowChange(before=(old,), after=(new,))),
        (Remedy.UPSERT, Forecast.WOULD, RowChange(before=(), after=(new,))),
        (Remedy.QUARANTINE, Forecast.WOULD, RowChange(before=(old, new), after=(old,), aside=(new,))),
        (Remedy.RESTORE, Forecast.WOULD, RowChange(before=(old,), after=(old, old))),
        (Remedy.UPSERT, Forecast.REFUSED, RowChange(before=(old,), after=(old,))),
    ]
    newer = Refusal(RefusalCode.STALE, "the row is of a newer version than the record")
    return DryRun(
        plan=PLAN,
        stopped_by=None,
        parts=(
            DryRunPart(
                remedy="redeliver",
                target="flights",
                place="kafka:flights",
                actions=3,
                forecasts=forecasts(3),
                reasons={},
                payload_from={"archive": 2, "broker": 1},
            ),
            DryRunPart(
                remedy="upsert",
                target="warehouse",
                place="pg:dw.departures",
                actions=2,
                forecasts=forecasts(1, 1),
                reasons={newer: 1},
                payload_from={"archive": 2},
            ),
        ),
        samples=tuple(
            Sample(action=action(seq, remedy), forecast=forecast, refusal=None, shown=what)
            for seq, (remedy, forecast, what) in enumerate(shown)
        ),
    )


def action(seq: int, remedy: Remedy) -> Action:
    target = "flights" if remedy is Remedy.REDELIVER else "warehouse"
    before = read_before(remedy, '{"place":"","undoes":0,"kind":"inserted"}')
    return Action(seq=seq, hop="flights→warehouse", target=target, key=SECRET, key_hash="0" * 32, before=before)
