"""Test reversals on real servers: one committed event per extra copy, never two, whoever asks and whatever changed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from makewhole.compute.keys import key_hash
from makewhole.model.hops import Remedy, Reverse
from makewhole.model.pipeline import Limits
from makewhole.model.plan import PlanState
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Finding, Verdict
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

HOP = "flights→warehouse"
COUPON = Reverse(
    to="reversals",
    key="{{ key }}",
    value={"type": "reversed", "id": "{{ key }}", "delay": "{{ -row.delay }}", "copy": "{{ finding.copy }}"},
    headers=(("note", "{{ row.note }}"),),
)


def test_every_row_beyond_the_survivor_is_taken_back_by_one_event(world: PlanWorld) -> None:
    topic = prepare(world)
    world.load_again("K1", copies=3, delay=1.5)
    world.load_again("K2", copies=2, delay=1.5)
    frozen = world.freeze_plan([duplicate(world, 1, 3), duplicate(world, 2, 2)])

    receipts = world.run(frozen.plan.id)

    places: dict[str, str] = dict(world.sql("select id || note, ctid::text from dw.departures"))
    assert sent(world, topic) == [
        ("K1", {"type": "reversed", "id": "K1", "delay": -1.5, "copy": 2}, "copy 1"),
        ("K1", {"type": "reversed", "id": "K1", "delay": -1.5, "copy": 3}, "copy 2"),
        ("K2", {"type": "reversed", "id": "K2", "delay": -1.5, "copy": 2}, "copy 1"),
    ]
    last = next(message for message in world.records(topic) if message.key == b"K2")
    assert last.value == b'{"type":"reversed","id":"K2","delay":-1.5,"copy":2}'
    assert list(last.headers) == [
        ("note", b"copy 1"),
        ("makewhole-reverses", f"warehouse/dw.departures/{places['K2copy 1']}".encode()),
        ("makewhole-plan", frozen.plan.id.encode()),
        ("makewhole-window", f"{world.pipeline.name}/1".encode()),
        ("makewhole-seq", b"2"),
        ("makewhole-origin", b"template"),
        ("makewhole-chunk", b"0"),
    ]
    assert [action.before.payload_from for action in frozen.actions] == ["template"] * 3
    assert [(receipt.target, receipt.actions) for receipt in receipts] == [("reversals", 3)]
    assert world.sql("select count(*) from dw.departures") == [(5,)]
    assert world.run(frozen.plan.id) == receipts
    assert len(world.records(topic)) == 3


def test_no_row_is_left_of_a_key_that_was_never_sent(world: PlanWorld) -> None:
    topic = prepare(world, unexpected=Remedy.REVERSE)
    world.load_again("K1", copies=2, delay=1.5)
    frozen = world.freeze_plan([replace(duplicate(world, 1, 2), verdict=Verdict.UNEXPECTED)])
    world.run(frozen.plan.id)

    assert [value["copy"] for _, value, _ in sent(world, topic)] == [1, 2]


def test_a_repeated_record_is_taken_back_by_what_it_says_itself(world: PlanWorld) -> None:
    topic = prepare(world, hop="outbox→flights")
    world.sql("insert into ops.outbox values ('K1', '{\"shop\": 7.10}', '2013-01-01 00:00:01+00')")
    reverse = replace(COUPON, value={"delay": "{{ row.delay }}", "shop": "{{ source.value.shop }}"}, headers=())
    world.change_hop("outbox→flights", reverse=reverse)
    world.send([1, 1, 1])
    positions = sorted(world.originals)
    finding = replace(
        duplicate(world, 1, 3, hop="outbox→flights"),
        evidence={
            "target_copies": 3,
            "repeated": {"here": [f"{part}:{offset}" for part, offset in positions], "elsewhere": 0},
        },
    )
    frozen = world.freeze_plan([finding])
    world.run(frozen.plan.id)

    messages = world.records(topic)
    assert [message.value for message in messages] == [b'{"delay":1,"shop":7.10}'] * 2
    assert [message.header_texts["makewhole-reverses"] for message in messages] == [
        f"flights/{world.topic}/{part}/{offset}" for part, offset in positions[1:]
    ]
    again = world.freeze([finding])
    assert (again.plan, again.refusals) == (None, ())


def test_what_was_taken_back_is_not_taken_back_again_by_a_later_revision(world: PlanWorld) -> None:
    topic = prepare(world)
    world.load_again("K1", copies=3, delay=1.5)
    world.run(world.plan([duplicate(world, 1, 3)]).id)

    again = world.freeze([duplicate(world, 1, 3)])

    assert (again.plan, again.refusals) == (None, ())
    assert len(world.records(topic)) == 2


@pytest.mark.parametrize("is_unknown", [False, True])
def test_a_revision_goes_on_where_the_one_before_was_stopped_if_it_is_known_where(
    world: PlanWorld, is_unknown: bool
) -> None:
    """K1 was reversed before; K2 has a plan that was begun and has no receipt: its target is asked, unless that was
    tried in vain."""
    topic = prepare(world)
    for number in (1, 2, 3):
        world.load_again(f"K{number}", copies=2, delay=1.5)
    world.run(world.plan([duplicate(world, 1, 2)]).id)
    stopped = world.plan([duplicate(world, 2, 2)])
    settled = "now()" if is_unknown else "null"
    world.journal_sql(
        "update makewhole.plan set state = 'rejected', began_at = now(), "
        f"is_unknown = {is_unknown}, settled_at = {settled} where id = %s",
        stopped.id,
    )

    frozen = world.freeze_plan([duplicate(world, number, 2) for number in (1, 2, 3)])
    world.run(frozen.plan.id)

    refusal = Refusal(
        RefusalCode.NOT_KNOWN,
        f"plan {stopped.id} was begun, and the journal has no receipt of its action 0, which takes back a "
        "copy of this key. Look for both numbers in the lineage headers of reversals",
    )
    keys = ["K3"] if is_unknown else ["K2", "K3"]
    assert [action.key for action in frozen.actions] == keys
    assert [refused.refusal for refused in frozen.refusals] == ([refusal] if is_unknown else [])
    assert [key for key, _, _ in sent(world, topic)] == ["K1", *keys]


@pytest.mark.parametrize(
    ("change", "rows", "is_known"),
    [
        ("update dw.departures set note = 'reversed' where note = 'copy 1'", 2, True),
        ("delete from dw.departures where note = 'copy 1'", 1, True),
        (
            "insert into dw.departures values ('K1', -1.5, 'reversal', '2013-01-02 00:00Z')",
            3,
            False,
        ),
        ("update dw.departures set note = 'x', loaded_at = '2013-01-02 00:00Z' where note = 'copy 1'", 2, False),
        (
            "delete from dw.departures where note = 'copy 1'; "
            "insert into dw.departures values ('K1', 1.5, 'again', '2013-01-02 00:00Z')",
            2,
            False,
        ),
    ],
)
def test_rows_that_changed_after_a_reversal_are_known_again_or_left_to_a_person(
    world: PlanWorld, change: str, rows: int, is_known: bool
) -> None:
    topic = prepare(world)
    world.load_again("K1", copies=2, delay=1.5)
    first = world.freeze_plan([duplicate(world, 1, 2)])
    world.run(first.plan.id)
    world.sql(change)

    again = world.freeze([duplicate(world, 1, rows)])

    assert again.plan is None
    refusal = Refusal(
        RefusalCode.NOT_KNOWN,
        f"plan {first.plan.id} took back a row of this key, and its rows changed since. Whether an extra "
        "row is that one, what its reversal wrote, or one more repetition cannot be determined; reverse by hand",
    )
    assert [refused.refusal for refused in again.refusals] == ([] if is_known else [refusal])
    assert len(world.records(topic)) == 1


def test_rows_that_are_not_as_they_were_judged_are_not_taken_back(world: PlanWorld) -> None:
    prepare(world)
    world.load_again("K1", copies=2, delay=1.5)
    world.load_again("K2", copies=2, delay=1.5)
    world.sql("delete from dw.departures where id = 'K1' and note = 'copy 1'")
    world.sql("update dw.departures set delay = null where id = 'K2'")

    frozen = world.freeze([duplicate(world, 1, 2), duplicate(world, 2, 2)])

    assert frozen.plan is None
    assert [(refused.key_hash[-1], refused.refusal) for refused in frozen.refusals] == [
        ("1", Refusal(RefusalCode.STALE, "the key has 1 rows now and had 2 when it was judged; run the window again")),
        (
            "2",
            Refusal(
                RefusalCode.UNFIT,
                "the template '{{ -row.delay }}' names what the data do not have, or have not of that kind",
            ),
        ),
    ]


def test_limits_count_what_is_left_to_take_back(world: PlanWorld) -> None:
    prepare(world)
    world.pipeline = replace(world.pipeline, limits=Limits(actions=2, share=1.0, records_per_second=5))
    world.load_again("K1", copies=3, delay=1.5)
    world.load_again("K2", copies=4, delay=1.5)
    world.run(world.plan([duplicate(world, 1, 3)]).id)

    assert world.freeze([duplicate(world, 1, 3)]).plan is None
    over = world.freeze_plan([duplicate(world, 1, 3), duplicate(world, 2, 4)])
    assert over.plan.state is PlanState.REFUSED
    assert over.plan.reason == (
        "3 actions are more than the limit of 2; find out what broke before repairing it, then raise "
        "compensation.limits.actions"
    )


def test_a_reversal_that_would_be_one_more_copy_of_its_key_is_refused(world: PlanWorld) -> None:
    prepare(world)
    world.load_again("K1", copies=2, delay=1.5)
    world.change_hop(HOP, reverse=replace(COUPON, to="flights"))

    frozen = world.freeze([duplicate(world, 1, 2)])

    assert [refused.refusal for refused in frozen.refusals] == [
        Refusal(
            RefusalCode.UNFIT,
            "in flights the reversal would be one more copy of the key that it takes back; give it a key of its "
            "own, or send it to a topic of its own",
        )
    ]


def test_a_reversal_with_a_key_of_its_own_is_known_in_a_topic_that_is_judged(world: PlanWorld) -> None:
    prepare(world)
    world.load_again("K1", copies=2, delay=1.5)
    world.change_hop(HOP, reverse=replace(COUPON, to="flights", value={"id": "{{ key }}-reversed"}))
    frozen = world.freeze_plan([duplicate(world, 1, 2)])
    world.run(frozen.plan.id)

    (message,) = world.records(world.topic)
    assert message.value == b'{"id":"K1-reversed"}'
    assert frozen.actions[0].before.fields["reversal_key_hash"] == key_hash("K1-reversed")


def test_the_source_record_comes_from_the_archive(world: PlanWorld) -> None:
    topic = prepare(world)
    world.load_again("K4", copies=2, delay=1.5)
    world.send([4])
    position, record = next(iter(world.originals.items()))
    world.originals[position] = replace(
        record, value=b'{"id": "K4", "price": 12345678901234567890.10, "note": "{{ key }}"}'
    )
    value = {"price": "{{ source.value.price }}", "note": "{{ source.value.note }}", "of": "{{ source.headers.trace }}"}
    world.change_hop(HOP, reverse=replace(COUPON, value=value))
    frozen = world.freeze_plan([duplicate(world, 4, 2)])
    world.run(frozen.plan.id)

    (message,) = world.records(topic)
    assert message.value == b'{"price":12345678901234567890.10,"note":"{{ key }}","of":"t4"}'


def prepare(world: PlanWorld, *, hop: str = HOP, **remedies: Remedy) -> str:
    topic: str = world.add_topic("reversals")
    world.change_hop(hop, reverse=COUPON)
    world.remedies(hop, duplicate=Remedy.REVERSE, **remedies)
    return topic


def duplicate(world: PlanWorld, number: int, copies: int, hop: str = HOP) -> Finding:
    finding = world.finding(number, Verdict.DUPLICATE, hop=hop)
    return replace(finding, evidence={**finding.evidence, "target_copies": copies})


def sent(world: PlanWorld, topic: str) -> list[tuple[str, Mapping[str, Any], str]]:
    """Key, value and note of the committed reversals, by key and copy."""
    messages = [(message.key_text, message.document, message.header_texts["note"]) for message in world.records(topic)]
    return sorted(messages, key=lambda message: (message[0], message[1]["copy"]))
