"""Kill copiers from topic to topic that commit offsets in, before and after their transactions (rows 111 to 113)."""

from collections.abc import Collection, Mapping
from typing import Any

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.copied import BATCH, COPY_HOP, CopiedTopic, open_copied
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.world.consumer import read_all
from tests.world.shop import LEDGER_HOP

CERTIFIED, GAPS = WindowState.CERTIFIED.value, WindowState.GAPS.value
_DEATHS = 3


@scenario(
    row=111,
    name="A copier with its offsets in its transactions",
    happens=(
        "A process reads a topic and writes another one, with the offsets of its group in the same transactions, and "
        "dies again and again. The transaction that it had open is aborted, and done once more."
    ),
    made=(
        f"Transactions of {BATCH} orders, four of them aborted, and a copier that is killed three times: with its "
        "records sent, and right after a commit."
    ),
    why=(
        "Aborted copies are no copies, and markers explain the offsets that lie between. Every order is there once, in "
        "both topics."
    ),
)
def copied_exactly(lab: Lab) -> Outcome:
    copied = open_copied(lab)
    copying = copied.copying(transactional_id=f"copier-{lab.shop.topic}")
    first, *others = deaths(lab)
    copied.die(copying, "committed", first)
    copied.die_and_finish(copying, "sent", others)
    return Outcome(
        truth=f"Here {len(copied.made)} orders were committed and copied, and {len(copied.cancelled)} cancelled.",
        naive=(Naive(answer=copied.counted(), expected=naive.WELL),),
        windows=(Window(judged=lab.shop.day(), expected=expected_of(copied)),),
    )


@scenario(
    row=112,
    name="A copier that commits its offsets before its transaction",
    happens=(
        "A copier commits the offsets of its group first, and dies before it commits its transaction. What that held "
        "is aborted, and the next copier goes on behind it: lost, with no lag."
    ),
    made=(
        f"A copier of {BATCH} records at a time is killed three times between the two commits. `missing: redeliver`."
    ),
    why=(
        "The records are in the first topic, and only in aborted transactions of the second. They are sent into the "
        "first again, the copier copies them, and the window is certified when they are in the second."
    ),
)
def copied_after_the_offsets(lab: Lab) -> Outcome:
    copied = open_copied(lab)
    copying = copied.copying(offsets="before", transactional_id=f"copier-{lab.shop.topic}")
    lost = copied.die_and_finish(copying, "offsets", deaths(lab))
    answers = (
        Naive(answer=copied.counted(), expected=f"{len(lost)} lost"),
        copied.lag(),
    )
    verdicts = dict.fromkeys(lost, ("missing", "committed_before_written"))
    return Outcome(
        truth=f"Here {len(copied.made)} orders were committed, and {len(lost)} of them never copied.",
        naive=answers,
        windows=(
            Window(
                judged=copied.repaired(copying),
                expected=expected_of(
                    copied, verdicts, state=CERTIFIED, messages=(f"{COPY_HOP}: {len(lost)} repaired",)
                ),
            ),
        ),
    )


@scenario(
    row=113,
    name="A copier that commits its offsets after its transaction",
    happens=(
        "A copier commits its transaction first, and dies before it commits the offsets of its group. The next copier "
        "begins before it, and copies the same records in another transaction."
    ),
    made=(
        f"A copier of {BATCH} records at a time is killed three times between the two commits. `duplicate: reverse`, "
        "into a third topic."
    ),
    why=(
        "Each of these records is in two committed transactions. What is in a topic cannot be taken out: for each copy "
        "too many an event is sent that takes it back, once, and the window is certified when it is there. Without "
        "`reverse` they are reported by name."
    ),
)
def copied_before_the_offsets(lab: Lab) -> Outcome:
    copied = open_copied(lab, has_reversals=True)
    copying = copied.copying(offsets="after", transactional_id=f"copier-{lab.shop.topic}")
    caught = copied.die_and_finish(copying, "committed", deaths(lab))
    doubled = list(dict.fromkeys(caught))  # one batch may be caught again and again
    verdicts = dict.fromkeys(doubled, ("duplicate", "written_before_committed"))
    answers = (Naive(answer=copied.counted(), expected=f"{len(caught)} repeated"), copied.lag())
    judged = copied.repaired(copying)
    assert len(read_all(lab.shop.bootstrap, copied.reversals)) == len(caught)
    return Outcome(
        truth=(
            f"Here {len(copied.made)} orders were committed, and {len(doubled)} of them copied again: {len(caught)} "
            "copies too many."
        ),
        naive=answers,
        windows=(
            Window(
                judged=judged,
                expected=expected_of(copied, verdicts, messages=(f"{COPY_HOP}: {len(doubled)} reversed",)),
            ),
        ),
    )


def deaths(lab: Lab) -> list[int]:
    """In which of its batches each copier dies; together they do not come to the end."""
    return [lab.random.randint(1, 3) for _ in range(_DEATHS)]


def expected_of(
    copied: CopiedTopic, verdicts: Mapping[str, tuple[str, str]] | None = None, *, state: str = CERTIFIED, **more: Any
) -> Judged:
    """Return a window of which these findings are at the copies, and everything else is right."""
    made, markers = len(copied.made), _markers(copied)
    wrong: Collection[str] = [key for key in verdicts or {} if key in {order["id"] for order in copied.made}]
    return Judged(
        state=state,
        accounting={
            "span": made + len(copied.cancelled) + markers,
            "data": made,
            "control": markers,
            "aborted": len(copied.cancelled),
        },
        matched={LEDGER_HOP: made, COPY_HOP: made - len(wrong)},
        found={COPY_HOP: dict(verdicts)} if verdicts else {},
        **more,
    )


def _markers(copied: CopiedTopic) -> int:
    """A batch of orders has records in every partition, and so has its transaction."""
    return (len(copied.made) + len(copied.cancelled)) // BATCH * copied.shop.partitions
