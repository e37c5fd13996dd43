"""Run copiers from topic to topic that read too much or too little, or that nothing fences (rows 114 to 118)."""

from dataclasses import replace

from makewhole.journal.database import connect
from makewhole.journal.results import hop_results
from makewhole.kafka.offsets import high_watermarks
from makewhole.kafka.open_transactions import open_transactions
from makewhole.model.window import WindowState
from makewhole.window.readers.partitions_missing import PARTITIONS, partitions_sentence
from tests.lab import naive
from tests.lab.copied import BATCH, COPY_HOP, open_copied
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.copiers import CERTIFIED, GAPS, deaths, expected_of
from tests.world.consumer import read_all
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP
from tests.world.topics import producer

_LONG_MS = 900_000


@scenario(
    row=114,
    name="A copier that reads what was not committed",
    happens=(
        "A copier reads with `isolation.level=read_uncommitted`, Java's default, and copies the records of aborted "
        "transactions into committed ones: orders that never were."
    ),
    made=f"Transactions of {BATCH} orders, four of them aborted, and a copier that reads all of them.",
    why="No committed record of the first topic has these keys, and aborted ones do: that is the cause.",
)
def copied_uncommitted(lab: Lab) -> Outcome:
    copied = open_copied(lab)
    copied.finish(copied.copying(isolation="read_uncommitted"))
    keys = [order["id"] for order in copied.cancelled]
    verdicts = dict.fromkeys(keys, ("unexpected", "read_uncommitted"))
    return Outcome(
        truth=f"Here {len(copied.made)} orders were committed and copied, and {len(keys)} cancelled ones, too.",
        naive=(Naive(answer=copied.counted(), expected=f"{len(keys)} repeated"),),
        windows=(Window(judged=lab.shop.day(), expected=expected_of(copied, verdicts, state=GAPS, reason="")),),
    )


@scenario(
    row=115,
    name="A copier without transactions, whose consumer commits by itself",
    happens=(
        "A copier has no transactional.id, and its consumer commits its offsets by itself from time to time. It dies "
        "between two of these, and what it had copied since the last one is copied again."
    ),
    made=f"A copier of {BATCH} records at a time is killed twice before its consumer has committed anything.",
    why="Each of these records was written by several producer sessions: reported by name, whatever idempotence did.",
)
def copied_without_transactions(lab: Lab) -> Outcome:
    copied, shop = open_copied(lab), lab.shop
    copying = copied.copying(transactional_id=None, offsets="auto")
    doubled = set[str]()
    for times in deaths(lab)[:2]:
        copier = copied.start(copying)
        copier.until("sent", times)
        copier.kill()
        doubled |= set(copier.sent)
    copied.finish(copying)
    verdicts = dict.fromkeys(sorted(doubled), ("duplicate", "written_before_committed"))
    return Outcome(
        truth=f"Here {len(copied.made)} orders were committed, and {len(doubled)} of them copied more than once.",
        naive=(Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),),
        windows=(Window(judged=shop.day(), expected=expected_of(copied, verdicts, state=GAPS, reason="")),),
    )


@scenario(
    row=116,
    name="A paused copier comes back, and has another transactional.id than its successor",
    happens=(
        "Each start of a copier takes a new transactional.id, so that no copier fences another. One is paused with its "
        "transaction open, another takes its place, and then the first goes on and commits."
    ),
    made=f"A copier of {BATCH} records is paused (SIGSTOP) until a second has copied everything, its offsets outside.",
    why="The records of that transaction are in two committed ones. They are reported by name.",
)
def copied_by_two(lab: Lab) -> Outcome:
    copied = open_copied(lab)
    copying = copied.copying(offsets="after")
    first = copied.start(copying)
    doubled = first.until("sent", deaths(lab)[0])
    first.pause()
    copied.finish(copying)
    first.resume()
    first.until("committed")
    first.kill()
    verdicts = dict.fromkeys(doubled, ("duplicate", "written_before_committed"))
    return Outcome(
        truth=f"Here {len(copied.made)} orders were committed, and {len(doubled)} of them copied by both.",
        naive=(Naive(answer=copied.counted(), expected=f"{len(doubled)} repeated"), copied.lag()),
        windows=(Window(judged=lab.shop.day(), expected=expected_of(copied, verdicts, state=GAPS, reason="")),),
    )


@scenario(
    row=116,
    name="A paused copier comes back, and is no member of its group any more",
    happens=(
        "The same, with the offsets in the transactions, and by members of the group: Kafka refuses the offsets of who "
        "is no member any more, and so the transaction."
    ),
    made="A copier is paused until the group has given its partitions to a second one, which copies everything.",
    why="The transaction of the first is aborted. Every order is there once.",
)
def copied_by_members(lab: Lab) -> Outcome:
    copied = open_copied(lab)
    copying = copied.copying(is_member=True)
    first = copied.start(copying)
    first.until("sent", deaths(lab)[0])
    first.pause()
    copied.finish(copying)
    first.resume()
    ended = first.finish()
    assert ended in ("UNKNOWN_MEMBER_ID", "_FENCED", "ILLEGAL_GENERATION"), ended
    first.kill()
    lab.cluster.wait("no open transaction", lambda: not open_transactions(lab.cluster.connection, copied.target))
    return Outcome(
        truth=f"Here {len(copied.made)} orders were committed, and each copied once, by one of two copiers.",
        naive=(Naive(answer=copied.counted(), expected=naive.WELL), copied.lag()),
        windows=(Window(judged=lab.shop.day(), expected=expected_of(copied)),),
    )


@scenario(
    row=117,
    name="A dead copier's transaction hides what its successor copied",
    happens=(
        "A copier with a new transactional.id at each start dies with its transaction open. Nothing ends it before its "
        "timeout, and no read_committed consumer is given anything behind it: all that the next copier commits there."
    ),
    made=(
        "A copier is killed in mid-transaction, whose timeout is long; a second one copies the rest, then an operator "
        "ends the transaction of the first by its transactional.id."
    ),
    why=(
        "What lies behind an open transaction is in flight, and not missing: it is handed over by name, and is there "
        "when the transaction has ended."
    ),
)
def copies_hidden(lab: Lab) -> Outcome:
    copied, shop = open_copied(lab), lab.shop
    copying = copied.copying(timeout_ms=_LONG_MS)
    first = copied.start(copying)
    caught = first.until("sent", deaths(lab)[0])
    first.kill()
    copied.finish(copying)
    done = {*first.sent} - {*caught}
    held = {order["number"] % shop.partitions for order in copied.made if order["id"] in caught}
    behind = [order for order in copied.made if order["number"] % shop.partitions in held]
    hidden = [order["id"] for order in behind if order["id"] not in done]
    answers = (Naive(answer=copied.counted(), expected=f"{len(hidden)} lost"), copied.lag())
    verdicts = dict.fromkeys(hidden, ("pending", "in_flight"))
    ends = high_watermarks(lab.cluster.connection, copied.target)
    incidents = tuple(
        ("open_transaction", transaction.partition, transaction.first_offset, ends[transaction.partition])
        for transaction in open_transactions(lab.cluster.connection, copied.target)
    )
    before = Window(
        label="while it is open", judged=shop.day(), expected=expected_of(copied, verdicts, incidents=incidents)
    )
    _end_transaction(lab, copied.target)
    following = orders(range(5000, 5000 + BATCH), 1)
    shop.write("outbox", following)
    shop.send(following)
    copied.finish(copying)
    after = Window(
        label="when it has ended",
        judged=shop.day(1),
        expected=Judged(
            state=CERTIFIED,
            accounting={"span": BATCH, "data": BATCH},
            matched={LEDGER_HOP: BATCH, COPY_HOP: BATCH + len(hidden)},
        ),
    )
    truth = f"Here {len(copied.made)} orders were committed, each copied once, and {len(hidden)} of these hidden."
    return Outcome(truth=truth, naive=answers, windows=(before, after))


@scenario(
    row=118,
    name="A copier takes a part of the partitions, and its group is known",
    happens=(
        "A copier names its partitions itself (`assign`), and one is on no list. Its group has no offset there, and "
        "lag is counted where a group has offsets: there is none."
    ),
    made="A copier takes the first of two partitions alone. The hop names its group.",
    why="Where a group has no offset nothing distinguishes late from lost: not known, and the incident says where.",
    covered_by=("tests/integration/spark/test_waiting.py",),
)
def copied_in_part(lab: Lab) -> Outcome:
    copied = open_copied(lab)
    copied.finish(copied.copying(only=(0,)))
    left = [order["id"] for order in copied.made if order["number"] % lab.shop.partitions]
    first, end = _span(lab, 1)
    return Outcome(
        truth=f"Here {len(left)} of {len(copied.made)} orders are in the partition that the copier does not take.",
        naive=(Naive(answer=copied.counted(), expected=f"{len(left)} lost"),),
        windows=(
            Window(
                judged=lab.shop.day(),
                expected=expected_of(
                    copied,
                    dict.fromkeys(left, ("pending", "not_yet_consumed")),
                    state=WindowState.NOT_KNOWN.value,
                    incidents=(("group_unknown", 1, first, end),),
                    reason="",
                ),
            ),
        ),
    )


@scenario(
    row=118,
    name="A copier takes a part of the partitions, and its group is not known",
    happens="The same, and nothing says whose group the copier's is: all that its list leaves out is missing.",
    made="A copier takes the first of two partitions alone. The hop names no group.",
    why="All records of one partition are missing, and none of the other: the result of the hop says so.",
    covered_by=("tests/integration/spark/test_partly_read_topics.py",),
)
def copied_in_part_by_an_unknown_group(lab: Lab) -> Outcome:
    copied = open_copied(lab, has_group=False)
    copied.finish(copied.copying(only=(0,)))
    left = [order["id"] for order in copied.made if order["number"] % lab.shop.partitions]
    context = lab.shop.judge_and_ask_the_gate()
    with connect(lab.shop.journal) as journal:
        partitions = hop_results.results(journal, context.window)[COPY_HOP].files[PARTITIONS]
    sentence = partitions_sentence("orders", "copies", partitions)
    others = len(copied.made) - len(left)
    right = (
        f"nothing of partition 1 of orders is in copies ({len(left)} records), and 0 of {others} records of the others "
        "are missing: does its reader take all partitions?"
    )
    return Outcome(
        truth=f"Here {len(left)} of {len(copied.made)} orders are in the partition that the copier does not take.",
        naive=(Naive(answer=copied.counted(), expected=f"{len(left)} lost"),),
        windows=(
            Window(
                judged=replace(lab.shop.certify_and_collect(context), messages=(sentence,)),
                expected=expected_of(
                    copied,
                    dict.fromkeys(left, ("missing", "never_produced")),
                    state=GAPS,
                    messages=(right,),
                    reason="",
                ),
            ),
        ),
    )


def _span(lab: Lab, partition: int) -> tuple[int, int]:
    """Return the first offset of a committed record in a partition of the orders, and its end."""
    read = (message for message in read_all(lab.shop.bootstrap, lab.shop.topic) if message.partition() == partition)
    end = high_watermarks(lab.cluster.connection, lab.shop.topic)[partition]
    return min(message.offset() or 0 for message in read), end


def _end_transaction(lab: Lab, topic: str) -> None:
    """Do what the next start of a copier with a name of its own does: init_transactions with it."""
    (name,) = {transaction.transactional_id for transaction in open_transactions(lab.cluster.connection, topic)}
    client = producer(lab.shop.bootstrap, transactional_id=name, log_level=0)
    client.init_transactions(60)
    lab.cluster.wait("no open transaction", lambda: not open_transactions(lab.cluster.connection, topic))
