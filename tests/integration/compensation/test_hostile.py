"""Somebody tampers: with a plan, its files, its approval, its headers, its targets, its template, or with the data.

Each is refused with a message that says why, and nothing is written; hostile data are written as data.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.appended import Since, marked_since
from makewhole.compensation.approve import Answer, Decision, record_answer
from makewhole.compensation.known import replayed_keys
from makewhole.compensation.replay import compensate
from makewhole.compensation.targets import targets_of
from makewhole.compensation.verify import verify
from makewhole.config.context import WindowContext
from makewhole.journal.database import connect as connect_journal
from makewhole.journal.evidence import JudgedFinding
from makewhole.journal.reversals import reversals_of
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError, MakewholeError, RefusedError
from makewhole.model.pipeline import Approval, Remedy, Reverse
from makewhole.model.plan import Plan, PlanState
from makewhole.model.verdict import Finding, Verdict
from makewhole.orchestration.compensate import require_own_plan

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

HOP = "flights→warehouse"
COUPON = Reverse(to="reversals", value={"id": "{{ key }}", "delay": "{{ row.delay }}"})


# A changed plan


def changed(plan: Plan) -> str:
    return (
        f"plan {plan.id} is not the one that was frozen: its actions were changed in the journal. Nothing is written; "
        "open a new revision of the window"
    )


@pytest.mark.parametrize(
    "change",
    [
        "update makewhole.planned_action set key = 'K99' where seq = 1",
        "update makewhole.planned_action set key_hash = repeat('f', 32) where seq = 1",
        "update makewhole.planned_action set target = 'warehouse' where seq = 1",
        "update makewhole.planned_action set remedy = 'produce' where seq = 1",
        "update makewhole.planned_action set hop = 'outbox→flights' where seq = 1",
        "update makewhole.planned_action set chunk = 7 where seq = 1",
        "update makewhole.planned_action set before = replace(before, 'kafka:flights', 'kafka:other') where seq = 1",
        "update makewhole.planned_action set before = before || ' ' where seq = 1",
        "delete from makewhole.planned_action where seq = 2",
        "insert into makewhole.planned_action select plan, 3, chunk, remedy, hop, target, key, key_hash, before "
        "from makewhole.planned_action where seq = 2",
        "update makewhole.planned_action set seq = 3 where seq = 0",
        "update makewhole.plan set payload_sha256 = repeat('0', 64)",
    ],
)
def test_a_changed_action_stops_the_whole_plan(world: Any, change: str) -> None:
    plan = redelivery(world)
    world.journal_sql(change)

    assert refusal(lambda: world.run(plan.id)) == changed(plan)
    assert world.replayed() == []


def test_a_plan_whose_hash_was_changed_with_its_actions_has_no_approval(world: Any) -> None:
    plan = redelivery(world)
    world.journal_sql("update makewhole.plan set sha256 = repeat('0', 64)")

    assert refusal(lambda: world.run(plan.id)) == (
        f"plan {plan.id} was approved with another content; ask for a new approval"
    )
    assert world.replayed() == []


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("approved", "plan {} has no approval; ask for one"),
        ("frozen", "plan {} has no approval; ask for one"),
        ("running", "plan {} has no approval; ask for one"),
        ("done", "plan {} has no approval; ask for one"),
        ("refused", "plan {} is refused"),
        ("awaiting_approval", "plan {} is awaiting_approval"),
    ],
)
def test_a_state_that_was_written_by_hand_is_no_approval(world: Any, state: str, told: str) -> None:
    plan = redelivery(world, above_actions=0)
    world.journal_sql("update makewhole.plan set state = %s", state)

    assert refusal(lambda: world.run(plan.id)) == told.format(plan.id)
    assert world.replayed() == []


def test_a_changed_payload_file_is_not_written(world: Any) -> None:
    plan = redelivery(world)
    path = Path(str(plan.payload_uri))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

    assert refusal(lambda: world.run(plan.id), CorruptionError) == (
        f"the payload file {path} is not the one that the plan froze; nothing of it is written. Open a new revision of "
        "the window"
    )
    assert world.replayed() == []


def test_the_payload_file_of_another_plan_is_not_written(world: Any) -> None:
    plan = redelivery(world)
    other = world.freeze([world.finding(2, Verdict.MISSING)]).plan
    shutil.copyfile(str(other.payload_uri), str(plan.payload_uri))
    world.journal_sql(
        "update makewhole.plan set state = 'frozen', reason = null, settled_at = null where id = %s", plan.id
    )

    assert refusal(lambda: world.run(plan.id), CorruptionError).startswith(
        f"the payload file {plan.payload_uri} is not the one that the plan froze"
    )
    world.journal_sql(
        "update makewhole.plan set payload_uri = %s, payload_sha256 = "
        "(select payload_sha256 from makewhole.plan where id = %s) where id = %s",
        other.payload_uri,
        other.id,
        plan.id,
    )
    assert refusal(lambda: world.run(plan.id)) == changed(plan)
    assert world.replayed() == []


# Approval


def test_an_answer_to_what_was_shown_before_does_not_count_for_what_is_there_now(world: Any) -> None:
    stale = redelivery(world, above_actions=0)
    fresh = world.freeze([world.finding(number, Verdict.MISSING) for number in range(2)]).plan

    assert refusal(lambda: record_answer(world.journal, fresh.id, answer(stale), Approval())) == (
        f"the answer is for another content than plan {fresh.id} has; look at it again"
    )
    assert refusal(lambda: record_answer(world.journal, stale.id, answer(stale), Approval())) == (
        f"plan {stale.id} is rejected and waits for no answer"
    )
    assert refusal(lambda: world.run(stale.id)) == f"plan {stale.id} is rejected: superseded by plan {fresh.id}"
    assert refusal(lambda: world.run(fresh.id)) == f"plan {fresh.id} is awaiting_approval"
    assert world.replayed() == []


def test_an_approval_is_over_when_its_time_is(world: Any) -> None:
    plan = redelivery(world, above_actions=0)
    long_ago = replace(answer(plan), at=datetime.now(UTC) - timedelta(hours=5))
    record_answer(world.journal, plan.id, long_ago, Approval(expires=timedelta(hours=4)))

    assert refusal(lambda: world.run(plan.id)) == (
        f"the approval of plan {plan.id} has expired; open a new revision and ask again"
    )
    assert world.replayed() == []


@pytest.mark.parametrize(
    ("by", "told"),
    [
        ("viewer", "viewer may not answer for plan {}; oncall, lead may"),
        ("ONCALL", "ONCALL may not answer for plan {}; oncall, lead may"),
        ("oncall, lead", "oncall, lead may not answer for plan {}; oncall, lead may"),
        ("", "an answer to plan {} needs a name"),
        (None, "an answer to plan {} needs a name"),
    ],
)
@pytest.mark.parametrize("decision", [Decision.APPROVED, Decision.REJECTED])
def test_who_has_not_the_right_answers_nothing(world: Any, by: str | None, told: str, decision: Decision) -> None:
    plan = redelivery(world, above_actions=0)
    given = replace(answer(plan), by=by, decision=decision)

    assert refusal(lambda: record_answer(world.journal, plan.id, given, Approval(by=("oncall", "lead")))) == (
        told.format(plan.id)
    )
    assert world.journal_sql("select state from makewhole.plan") == [("awaiting_approval",)]
    assert world.journal_sql("select count(*) from makewhole.approval") == [(0,)]


@pytest.mark.parametrize(
    ("by", "told"),
    [
        ("viewer", "viewer may not answer for plan {}; lead, group:payments (anna, ben) may"),
        ("payments", "payments may not answer for plan {}; lead, group:payments (anna, ben) may"),
        ("group:payments", "group:payments may not answer for plan {}; lead, group:payments (anna, ben) may"),
    ],
)
def test_a_right_of_a_group_is_one_of_its_people_and_of_nobody_else(world: Any, by: str, told: str) -> None:
    plan = redelivery(world, above_actions=0)
    policy, groups = Approval(by=("lead", "group:payments")), {"payments": ("anna", "ben"), "others": ("viewer",)}
    given = replace(answer(plan), by=by)

    assert refusal(lambda: record_answer(world.journal, plan.id, given, policy, groups)) == told.format(plan.id)
    assert refusal(lambda: world.run(plan.id)) == f"plan {plan.id} is awaiting_approval"
    assert record_answer(world.journal, plan.id, replace(given, by="ben"), policy, groups).reason == "approved by ben"


def test_a_group_that_is_gone_gives_nobody_a_right(world: Any) -> None:
    plan = redelivery(world, above_actions=0)

    assert refusal(lambda: record_answer(world.journal, plan.id, answer(plan), Approval(by=("group:gone",)))) == (
        "compensation.approval.by names group gone, and the file of MAKEWHOLE_GROUPS has nobody in it; nobody can "
        "answer. Write the group there, or name people in the pipeline file"
    )
    assert world.journal_sql("select state from makewhole.plan") == [("awaiting_approval",)]
    timed_out = replace(answer(plan), decision=Decision.TIMED_OUT, by=None)
    told = record_answer(world.journal, plan.id, timed_out, Approval(by=("group:gone",)))
    assert told.reason == "nobody answered in time"


def test_an_answer_is_used_up_and_a_second_one_is_refused(world: Any) -> None:
    plan = redelivery(world, above_actions=0)
    record_answer(world.journal, plan.id, answer(plan), Approval())
    second = replace(answer(plan), by="viewer", decision=Decision.REJECTED)

    assert refusal(lambda: record_answer(world.journal, plan.id, second, Approval())) == (
        f"plan {plan.id} is approved and waits for no answer"
    )
    world.run(plan.id)
    assert refusal(lambda: record_answer(world.journal, plan.id, second, Approval())) == (
        f"plan {plan.id} is done and waits for no answer"
    )
    assert world.journal_sql("select by, decision from makewhole.approval") == [("oncall", "approved")]
    assert len(world.replayed()) == 3


def test_an_approval_works_for_one_run_and_not_for_another_plan(world: Any) -> None:
    plan = redelivery(world, above_actions=0)
    record_answer(world.journal, plan.id, answer(plan), Approval())
    world.run(plan.id)
    later = world.freeze([world.finding(number, Verdict.MISSING) for number in range(3)]).plan

    assert later.id == f"{plan.id}-r2"
    assert refusal(lambda: world.run(later.id)) == f"plan {later.id} is awaiting_approval"
    assert len(world.replayed()) == 3


# A plan for another pipeline


def test_a_plan_of_another_pipeline_does_not_run_here(world: Any) -> None:
    plan = redelivery(world)
    there = world.pipeline.points["flights"]
    elsewhere = replace(world.pipeline, name="other", points={"flights": replace(there, topic=f"{there.topic}-other")})

    assert refusal(lambda: compensate(world.journal, plan.id, targets_of(elsewhere, world.connections))) == (
        f"flights is kafka:{there.topic}-other now and was kafka:{there.topic} when the plan was frozen; open a new "
        "revision of the window"
    )
    assert world.replayed() == []


def test_an_answer_is_not_taken_for_the_plan_of_another_pipeline(world: Any) -> None:
    """Who may say yes differs: what a run shows and records is the plan of its own window and revision."""
    plan = redelivery(world, above_actions=0)
    with connect_journal(world.journal) as journal:
        require_own_plan(journal, (world.pipeline.name, 1, 1), plan.id)
        for window, own in (
            ((world.pipeline.name, 1, 2), "which has none"),
            (("other", 1, 1), "which has none"),
            ((world.pipeline.name, 1, 1), f"whose plan is {plan.id}"),
        ):
            asked = f"{plan.id}x" if window == (world.pipeline.name, 1, 1) else plan.id
            assert refusal(lambda window=window, asked=asked: require_own_plan(journal, window, asked)) == (
                f"plan {asked} is not for window {window[1]} (revision {window[2]}) of {window[0]}, {own}; the answer "
                "is not taken"
            )


# Foreign targets


@pytest.mark.parametrize(
    ("point", "changes", "was", "now"),
    [
        ("flights", {"topic": "payments"}, "kafka:{topic}", "kafka:payments"),
        ("flights", {"connection": "pg"}, "kafka:{topic}", "pg:{topic}"),
        ("warehouse", {"table": "public.users"}, "pg:dw.departures", "pg:public.users"),
    ],
)
def test_a_pipeline_file_that_was_edited_since_redirects_nothing(
    world: Any, point: str, changes: dict[str, str], was: str, now: str
) -> None:
    world.send(range(2))
    world.load_again("K1", copies=2)
    findings = [world.finding(0, Verdict.MISSING), world.finding(1, Verdict.DUPLICATE)]
    plan = world.freeze(findings).plan
    edited = replace(world.pipeline.points[point], **changes)
    targets = targets_of(replace(world.pipeline, points={**world.pipeline.points, point: edited}), world.connections)

    assert refusal(lambda: compensate(world.journal, plan.id, targets)) == (
        f"{point} is {now.format(topic=world.topic)} now and was {was.format(topic=world.topic)} when the plan was "
        "frozen; open a new revision of the window"
    )
    assert (world.replayed(), world.sql("select count(*) from dw.departures")) == ([], [(2,)])


@pytest.mark.parametrize("kind", ["redeliver_to", "reverse"])
def test_a_topic_that_was_taken_out_of_the_file_is_not_written(world: Any, kind: str) -> None:
    plan = redelivery(world, to="retry") if kind == "redeliver_to" else reversal(world)
    name = "retry" if kind == "redeliver_to" else "reversals"
    points = {point: known for point, known in world.pipeline.points.items() if point != name}

    targets = targets_of(replace(world.pipeline, points=points), world.connections)

    assert refusal(lambda: compensate(world.journal, plan.id, targets)) == (
        f"the plan writes to {name}, which is no point of the pipeline or has no connection; open a new revision of "
        "the window"
    )
    assert world.consume(world.pipeline.points[name].topic) == []


def test_a_target_that_is_no_point_is_refused_before_anything_is_written(world: Any) -> None:
    plan = redelivery(world)
    world.journal_sql(
        "update makewhole.planned_action set target = 'payments', before = '{\"place\":\"kafka:payments\"}'"
    )

    assert refusal(lambda: world.run(plan.id)) == changed(plan)
    assert world.replayed() == []


# Forged lineage headers


@pytest.mark.parametrize("named", ["own plan, a key that it has not", "a plan of another pipeline", "no plan"])
def test_a_forged_lineage_header_is_not_vouched_for(world: Any, named: str) -> None:
    plan = redelivery(world)
    world.run(plan.id)
    others = "other-1-0123456789ab"
    forged = {"own plan, a key that it has not": plan.id, "a plan of another pipeline": others, "no plan": "x' or 1=1"}
    known = replayed_keys(world.journal, world.pipeline.name, [forged[named]])

    assert (forged[named], f"{99:032x}") not in known.rows()
    assert len(known) == (3 if forged[named] == plan.id else 0)
    assert replayed_keys(world.journal, "another", [plan.id]).is_empty()


def test_a_record_that_claims_to_be_a_reversal_reverses_nothing(world: Any) -> None:
    """Verify asks the journal for the receipt and the topic for the record: either alone is a claim."""
    plan = reversal(world)
    topic = world.pipeline.points["reversals"].topic
    forge(
        world.bootstrap,
        topic,
        [("makewhole-plan", plan.id), ("makewhole-seq", "0"), ("makewhole-reverses", "warehouse/dw.departures/(0,2)")],
    )
    context = context_of(world)

    assert marked_since(context, "reversals", Since(offsets={})).found == {(plan.id, 0)}
    (item,) = judged(world, context)
    assert (item.outcome, item.reason) == ("open", "1 of its extra copies at warehouse were not taken back")

    world.journal_sql(
        "insert into makewhole.chunk (plan, target, chunk, actions, place) values (%s, 'reversals', 0, 1, 'forged')",
        plan.id,
    )
    forged = Since(offsets={"reversals": dict.fromkeys(range(3), 1)})
    (item,) = judged(world, context, forged)
    assert (item.outcome, item.reason) == (
        "open",
        f"no committed reversal by plan {plan.id} (action 0) is in reversals",
    )


@pytest.mark.parametrize("seq", ["٣", "-1", "0x0", " 0", "", "9" * 50, "\x1b[2J"])
def test_headers_that_are_no_numbers_are_no_marks(world: Any, seq: str) -> None:
    plan = reversal(world)
    topic = world.pipeline.points["reversals"].topic
    forge(world.bootstrap, topic, [("makewhole-plan", plan.id), ("makewhole-seq", seq)])

    found = marked_since(context_of(world), "reversals", Since(offsets={})).found
    assert (plan.id, 0) not in found


def test_lineage_headers_of_an_original_are_not_repeated_with_it(world: Any) -> None:
    world.send([1])
    position, record = next(iter(world.originals.items()))
    forged = [("makewhole-plan", b"x"), ("makewhole-reverses", b"y"), ("makewhole-seq", b"7"), ("note", b"kept")]
    world.originals[position] = replace(record, headers=tuple(forged))
    plan = world.freeze([world.finding(1, Verdict.MISSING)]).plan
    world.run(plan.id)

    (message,) = world.replayed()
    assert [name for name, _ in message.headers()] == [
        "note",
        "makewhole-plan",
        "makewhole-window",
        "makewhole-seq",
        "makewhole-origin",
        "makewhole-chunk",
    ]
    assert dict(message.headers())["makewhole-plan"] == plan.id.encode()


# Templates


@pytest.mark.parametrize(
    ("leaf", "told"),
    [
        (
            "{{ ''.__class__.__mro__[1].__subclasses__() }}",
            "unfit: the template \"{{ ''.__class__.__mro__[1].__subclasses__() }}\" calls something. Write fields of "
            "data, such as {{ row.amount }}",
        ),
        (
            "{{ row.__class__ }}",
            "unfit: the template '{{ row.__class__ }}' asks for '__class__'. Name a field of data: there is nothing "
            "else to reach",
        ),
        (
            "{% for x in row %}{{ x }}{% endfor %}",
            "unfit: the template '{% for x in row %}{{ x }}{% endfor %}' has a statement. Write fields of data, such "
            "as {{ row.amount }}",
        ),
        (
            "{{ lipsum.__globals__ }}",
            "unfit: the template '{{ lipsum.__globals__ }}' asks for '__globals__'. Name a field of data: there is "
            "nothing else to reach",
        ),
        (
            "{{ row | attr('__class__') }}",
            "unfit: the template \"{{ row | attr('__class__') }}\" uses the filter 'attr'. Allowed: abs, default, "
            "lower, string, trim, upper",
        ),
    ],
)
@pytest.mark.parametrize("place", ["key", "value", "headers"])
def test_a_template_that_reaches_out_is_refused_however_it_came_here(
    world: Any, leaf: str, told: str, place: str
) -> None:
    """The check of the file refuses it, too: tests/unit/config/test_reverse.py."""
    changes = {"key": leaf, "value": {"a": [{"b": leaf}]}, "headers": (("h", leaf),)}
    world.load_again("K1", copies=2)
    prepare(world, replace(COUPON, **{place: changes[place]}))
    frozen = world.freeze([duplicate(world, "K1")])

    assert (frozen.plan, [found.reason for found in frozen.refusals]) == (None, [told])


HOSTILE = [
    "{{ 7 * 7 }}",
    "{% raw %}{{ key.__class__ }}{% endraw %}",
    "{# gone? #}",
    "\x1b[31mred\x1b[2J",
    'a\r\nmakewhole-plan: x","delay":-9999,"x":"',
    "‮gnirts",
    "</script><script>alert(1)</script>",
    "=cmd()|' /C calc'!A0",
]


def test_data_are_written_as_data_wherever_the_template_puts_them(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In keys, values and headers: never rendered, never evaluated, never the end of a field or of a line."""
    value = {"id": "{{ key }}", "delay": "{{ row.delay }}", "note": "{{ row.note }}", "all": "<{{ row.note }}>"}
    topic = prepare(world, replace(COUPON, value=value, headers=(("note", "{{ row.note }}"),)))
    for key in HOSTILE:
        world.load_again(key, copies=2)
        world.sql("update dw.departures set note = id where id = %s", key)
    frozen = world.freeze([duplicate(world, key) for key in HOSTILE])
    world.run(frozen.plan.id)

    messages = world.consume(topic)
    assert frozen.refusals == ()
    assert sorted(message.key().decode() for message in messages) == sorted(HOSTILE)
    for message in messages:
        key = message.key().decode()
        assert json.loads(message.value()) == {"id": key, "delay": 1.0, "note": key, "all": f"<{key}>"}
        assert dict(message.headers())["note"].decode() == key
        assert [name for name, _ in message.headers()] == [
            "note",
            "makewhole-reverses",
            "makewhole-plan",
            "makewhole-window",
            "makewhole-seq",
            "makewhole-origin",
            "makewhole-chunk",
        ]
        assert not any(byte < 32 for byte in message.value())

    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", world.journal)
    shown = CliRunner().invoke(app, ["plan", "show", frozen.plan.id]).stdout
    assert "x1b" in shown
    assert not {"\x1b", "\r", "‮"} & set(shown)


def test_a_refusal_tells_the_template_and_no_data(world: Any, caplog: pytest.LogCaptureFixture) -> None:
    prepare(world, replace(COUPON, value={"id": "{{ row.gone }}"}))
    world.load_again("SECRET-KEY", copies=2)
    frozen = world.freeze([duplicate(world, "SECRET-KEY")])

    assert [found.reason for found in frozen.refusals] == [
        "unfit: the template '{{ row.gone }}' names what the data do not have, or have not of that kind"
    ]
    assert "SECRET" not in caplog.text


# What the tests do


def refusal(attempt: Callable[[], object], kind: type[MakewholeError] = RefusedError) -> str:
    with pytest.raises(kind) as caught:
        attempt()
    return str(caught.value)


def redelivery(world: Any, *, above_actions: int = 1_000, to: str | None = None) -> Plan:
    """A plan that redelivers K0, K1 and K2."""
    if to is not None:
        world.add_topic(to)
        world.change_hop(HOP, redeliver_to=to)
    world.pipeline = replace(world.pipeline, approval=Approval(above_actions=above_actions))
    world.send(range(3))
    plan = world.freeze([world.finding(number, Verdict.MISSING) for number in range(3)]).plan
    assert isinstance(plan, Plan)
    assert plan.state is (PlanState.AWAITING_APPROVAL if above_actions < 3 else PlanState.FROZEN)
    return plan


def prepare(world: Any, reverse: Reverse) -> str:
    topic: str = world.add_topic("reversals")
    world.change_hop(HOP, reverse=reverse)
    world.remedies(HOP, duplicate=Remedy.REVERSE)
    return topic


def reversal(world: Any) -> Plan:
    """A plan that takes back the second row of K1."""
    prepare(world, COUPON)
    world.load_again("K1", copies=2)
    plan = world.freeze([duplicate(world, "K1")]).plan
    assert isinstance(plan, Plan)
    return plan


def duplicate(world: Any, key: str) -> Finding:
    number = sum(key.encode())
    finding = world.finding(number, Verdict.DUPLICATE)
    return replace(finding, key=key, evidence={**finding.evidence, "target_copies": 2})


def answer(plan: Plan) -> Answer:
    return Answer(sha256=plan.sha256, decision=Decision.APPROVED, by="oncall")


def forge(bootstrap: str, topic: str, headers: list[tuple[str, str]]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(
        topic, key="K1", value="{}", partition=0, headers=[(name, value.encode()) for name, value in headers]
    )
    assert producer.flush(30) == 0


def context_of(world: Any) -> WindowContext:
    return WindowContext(
        pipeline=world.pipeline,
        window=world.window,
        connections=world.connections,
        storage=Storage(root=str(world.storage)),
    )


def judged(world: Any, context: WindowContext, since: Since | None = None) -> list[JudgedFinding]:
    finding = duplicate(world, "K1")
    with connect_journal(world.journal) as journal:
        past = reversals_of(journal, world.pipeline, 1, [finding.key_hash])
    return verify(context, [JudgedFinding(finding=finding)], since or Since(offsets={}), 0.0, past=past)
