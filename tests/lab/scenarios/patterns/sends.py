"""Send in the ways in which producers send, and lose by it (rows 80 to 83, 85)."""

from collections.abc import Sequence
from dataclasses import replace

from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.processes.sender import NOTICE, SENT, Way, send
from tests.lab.processes.steps import END, Step
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import (
    IN_ONE_REQUEST,
    NOT_TRIED_AGAIN,
    batches_of_a_day,
    each,
    fail,
    flat,
    lag,
    reports,
    whole_day,
)
from tests.lab.servers.proxy import Api, Fault, Rule
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP

_WITHOUT_ACKS = Way(settings={**IN_ONE_REQUEST, "acks": 0})

_WAYS = {
    f"acks={acks}, {'sync' if is_awaited else 'async'}": Way(settings={"acks": acks}, is_awaited=is_awaited)
    for acks in ("0", "1", "all")
    for is_awaited in (True, False)
} | {
    "idempotent, sync": Way(settings={"enable_idempotence": True}),
    "idempotent, async": Way(settings={"enable_idempotence": True}, is_awaited=False),
}


def _lost(made: Sequence[Order], lost: Sequence[Order], cause: str) -> Judged:
    """Return a day of which some orders never came into the topic, and were produced from the ledger."""
    there = [order for order in made if order not in lost]
    return replace(
        whole_day(there),
        found={LEDGER_HOP: each(lost, "missing", cause)},
        messages=(f"{LEDGER_HOP}: {len(lost)} repaired",),
    )


def _repaired(shop: LabShop) -> Judged:
    """Judge the day, produce what is missing, load it, and judge again; nothing else is in the store then."""
    context = shop.judge_and_repair(0)
    shop.settle_transactions()
    shop.load()
    judged = shop.verified_with_outcomes(context)
    assert shop.sql("select id from warehouse order by id") == shop.sql("select id from outbox order by id")
    return judged


@scenario(
    row=80,
    name="Every way to send, used rightly",
    happens="Applications send with `acks` 0, 1 and all, wait for each batch or only at their end, and nothing fails.",
    made="Eight producers in processes of their own, one after the other, into one topic of several partitions.",
    why="No way to send is a fault by itself: each record is there once, and so is each row.",
)
def every_way_to_send(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(partitions=lab.random.randint(1, 4))
    made, waiting = list[Order](), iter(orders(range(1000)))
    for way in _WAYS.values():
        batches = [[next(waiting) for _ in range(lab.random.randint(1, 5))] for _ in range(2)]
        steps = send(shop, batches, way)
        made += flat(batches)
    shop.load()
    return Outcome(
        truth=f"Here {len(made)} orders were sent in {len(_WAYS)} ways: {'; '.join(_WAYS)}.",
        naive=(reports(steps, naive.WELL),),
        windows=(Window(judged=shop.day(), expected=whole_day(made)),),
    )


@scenario(
    row=81,
    name="acks=0, and the connection is cut",
    happens=(
        "A producer that asks for no answer sends a batch, and its connection breaks on the way. For the client a "
        "record is sent when it is written into the socket: all its reports are good."
    ),
    made=("`acks=0`; a proxy cuts the connection at one produce request. `missing: produce`."),
    why=(
        "The ledger's rows have no record in the log, not even an aborted one: they were never produced, whatever the "
        "producer was given to believe. They are produced from the ledger, once."
    ),
)
def cut_without_acks(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    batches = batches_of_a_day(lab)
    hit = lab.random.randrange(len(batches))
    rule = lab.cluster.proxy.add(Rule(api=Api.PRODUCE, fault=Fault.CUT, first=hit + 1))

    def at(step: Step) -> str | None:
        if (step.batch, step.name) != (hit, SENT):
            return None
        rule.wait_until_done()
        return NOTICE

    steps = send(shop, batches, _WITHOUT_ACKS, bootstrap=lab.cluster.proxied_bootstrap, at=at)
    _wait_for_records(shop, len(flat(batches)) - len(batches[hit]))
    shop.load()
    made, lost = flat(batches), batches[hit]
    return Outcome(
        truth=f"Here {len(made)} orders were sent, and {len(lost)} of them were on the way when the connection broke.",
        naive=(reports(steps, naive.WELL), lag(shop)),
        windows=(Window(judged=_repaired(shop), expected=_lost(made, lost, "never_produced")),),
    )


@scenario(
    row=82,
    name="acks=0, and the broker dies",
    happens=(
        "A leader hangs and dies. Until the client notices, it goes on writing into its socket: records that no broker "
        "will ever read, and all reports of them are good."
    ),
    made="`acks=0`; SIGSTOP of the leader before some batches and SIGKILL after them; the rest goes to the new leader.",
    why=(
        "The rows have no record, and the leader has changed meanwhile: that is the cause as far as the log shows it. "
        "They are produced from the ledger, once."
    ),
)
def dead_broker_without_acks(lab: Lab) -> Outcome:
    shop, cluster = lab.shop.open_shop(), lab.cluster
    batches = batches_of_a_day(lab, least=4)
    first = lab.random.randint(1, len(batches) - 3)
    last = lab.random.randint(first, len(batches) - 2)
    state = cluster.wait_for_leader(shop.topic)

    def at(step: Step) -> str | None:
        if (step.batch, step.name) == (first - 1, SENT):
            _wait_for_records(shop, len(flat(batches[:first])))
            cluster.pause(state.leader)
        if (step.batch, step.name) != (last, SENT):
            return None
        cluster.kill(state.leader)
        cluster.wait_for_leader(shop.topic, after_epoch=state.leader_epoch)
        return NOTICE

    steps = send(shop, batches, _WITHOUT_ACKS, at=at)
    cluster.heal()
    _wait_for_records(shop, len(flat(batches)) - len(flat(batches[first : last + 1])))
    shop.load()
    made, lost = flat(batches), flat(batches[first : last + 1])
    before = len(flat(batches[:first]))
    expected = _lost(made, lost, "leader_changed")
    expected = replace(expected, incidents=(("leader_changed", 0, before, len(made) - len(lost)),))
    return Outcome(
        truth=f"Here {len(made)} orders were sent, and {len(lost)} of them to a leader that was dying.",
        naive=(reports(steps, naive.WELL), lag(shop)),
        windows=(Window(judged=_repaired(shop), expected=expected),),
    )


@scenario(
    row=83,
    name="Failed sends that the application ignores",
    happens=(
        "An application sends asynchronously and gives no callback. Two batches fail: one was never written, of the "
        "other only the answer was lost. It would have known of both, and of neither whether it is in the log."
    ),
    made=(
        "`acks=1` or `all` by the seed, without retries; a proxy cuts the connection at one produce request, and loses "
        "the answer to another one. `missing: produce`."
    ),
    why=(
        "A report of a failure is no proof of an absence, and none of a success was read. What counts is the log: one "
        "of the two batches is in it. The other is produced from the ledger, once."
    ),
)
def ignored_failures(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    size, acks = lab.random.randint(2, 20), lab.random.choice(["1", "all"])
    made = orders(range(size * lab.random.randint(4, 7)))
    batches = [made[first : first + size] for first in range(0, len(made), size)]
    cut, unanswered = lab.random.sample(range(len(batches)), 2)
    faults = dict(zip((cut, unanswered), fail(lab, cut + 1, unanswered + 1), strict=True))
    answered = lab.cluster.proxy.add(Rule(api=Api.PRODUCE, fault=Fault.NOTE, times=None))
    way = Way(settings={**NOT_TRIED_AGAIN, "acks": acks, "batch_num_messages": size}, is_awaited=False)

    def at(step: Step) -> str | None:
        """Let no batch be on its way when the connection of another one is cut."""
        if step.name != SENT:
            return None
        if step.batch not in faults:
            answered.wait_until_done(step.batch + 1 - sum(hit < step.batch for hit in faults))
            return None
        faults[step.batch].wait_until_done()
        return NOTICE

    steps = send(shop, batches, way, bootstrap=lab.cluster.proxied_bootstrap, at=at)
    shop.load()
    lost = batches[cut]
    failed = len(lost) + len(batches[unanswered])
    assert len(steps[-1].notes["failed"]) == failed
    return Outcome(
        truth=f"Here {failed} of {len(made)} orders are reported as failed; {len(lost)} of these are not in the topic.",
        naive=(reports(steps, f"{failed} lost"), lag(shop)),
        windows=(Window(judged=_repaired(shop), expected=_lost(made, lost, "never_produced")),),
    )


def _wait_for_records(shop: LabShop, count: int) -> None:
    """Wait for records of which the producer does not know when they have arrived."""
    shop.cluster.wait(f"{count} records", lambda: len(shop.read()) == count)


@scenario(
    row=85,
    name="A producer that is never flushed",
    happens=(
        "An application sends asynchronously and ends, or is killed, without a flush. What its client had not sent by "
        "then is gone with it, and no report was bad."
    ),
    made=(
        "A producer that sends when a batch is full; the process ends by itself, or by SIGKILL (by the seed), with the "
        "rest in its queue. `missing: produce`."
    ),
    why="The rows were written before the records were handed to the client: the ledger knows what should have come.",
)
def never_flushed(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    size, left = lab.random.randint(3, 20), lab.random.randint(1, 2)
    made = orders(range(size * lab.random.randint(2, 6) + left))
    sent, lost = made[:-left], made[-left:]
    acks, is_killed = lab.random.choice(["0", "1", "all"]), lab.random.random() < 0.5
    settings = {**IN_ONE_REQUEST, "acks": acks, "batch_num_messages": size}

    def at(step: Step) -> None:
        if step.name == END:
            _wait_for_records(shop, len(sent))

    way = Way(settings=settings, is_awaited=False, is_flushed=False)
    steps = send(shop, [made], way, killed_at=(1, END) if is_killed else None, at=at)
    shop.load()
    ended = "is killed" if is_killed else "ends"
    return Outcome(
        truth=f"Here the producer of {len(made)} orders {ended} with {len(lost)} of them in its queue.",
        naive=(Naive(answer=naive.reports(steps[-1].notes["delivered"], 0), expected=naive.WELL), lag(shop)),
        windows=(Window(judged=_repaired(shop), expected=_lost(made, lost, "never_produced")),),
    )
