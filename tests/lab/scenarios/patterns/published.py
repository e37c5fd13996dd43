"""Publish a day once for everyone, beside consumers that each deduplicate in their own way (row 130)."""

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from makewhole.window.context import WindowContext
from tests.lab.judged import Judged
from tests.lab.naive import WELL, NaiveAnswer, compared
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import CERTIFIED, batches_of_a_day, each, flat
from tests.lab.scenarios.patterns.publishing_runs import KILLS, once_topic, open_publishing, publish, publish_and_end
from tests.lab.shop import LabShop
from tests.world.orders import Order
from tests.world.shop import LEDGER_HOP, STORE_HOP

_REMEMBERED = 3
_OBSERVING: Mapping[str, Any] = {"hop": {"compensation": "{missing: report}"}, "is_observing": True}


@scenario(
    row=130,
    name="Records that were sent again, published once for everyone",
    happens=(
        "An application sends orders again, long after their first record. Consumers deduplicate, each for as many "
        "keys as it can remember; what they do not remember counts twice. makewhole publishes the day once for all of"
        " them: into a folder, and from there into a topic."
    ),
    made=(
        "A batch is sent again at the end of the day, and what a transaction holds of an order is aborted. The store "
        "has each order once. `publish: {path, topic}`; the run that publishes is ended once before and once behind a"
        " write, by the seed, and runs again."
    ),
    why=(
        "Each key is published with its first committed record, whoever sent it again. One row of the journal decides"
        " what stands, and a transaction holds the marker of what was sent: nothing is there twice, and nothing half."
    ),
    covered_by=("tests/integration/spark/test_published.py", "tests/integration/spark/test_published_killed.py"),
)
def published_once(lab: Lab) -> Outcome:
    shop, batches = open_publishing(lab, **_OBSERVING), batches_of_a_day(lab, least=4)
    made, again = flat(batches), batches[0]
    shop.transactions([[made[-1]]], lambda _: False)
    _sell(shop, made)
    shop.send(again)
    context = shop.open()
    judged = shop.close(context)
    for is_after in (False, True):
        publish_and_end(shop, context, lab.random.choice(KILLS), is_after=is_after)
    messages = _publish(shop, context)
    records = len(made) + len(again)
    expected = Judged(
        state=CERTIFIED,
        accounting={"span": records + 2, "data": records, "aborted": 1, "control": 1},
        matched={LEDGER_HOP: len(made) - len(again), STORE_HOP: len(made)},
        found={LEDGER_HOP: each(again, "duplicate", "retry_without_idempotence")},
        messages=_published(len(made), again=len(again), conflicts=0),
    )
    return Outcome(
        truth=f"Here {len(made)} orders were sent, and {len(again)} of them again behind all others.",
        naive=(_own_dedup(shop, made, f"{len(again)} repeated"), _of_published(shop, made)),
        windows=(Window(judged=replace(judged, messages=messages), expected=expected),),
    )


@scenario(
    row=130,
    name="Records that say something else, and are published by none",
    happens=(
        "Among the orders that are sent again some have another amount. A consumer that deduplicates takes the first "
        "or the last, and no two of them need agree."
    ),
    made="As before; some amounts are other ones in the second record. `tolerance: {conflict: …}`.",
    why=(
        "Nothing says which record is right. The keys are left out of what is published, and listed with the places "
        "of their records: a person decides."
    ),
    covered_by=("tests/integration/spark/test_published.py",),
)
def contradicted_records(lab: Lab) -> Outcome:
    shop, batches = open_publishing(lab, **_OBSERVING), batches_of_a_day(lab)
    made, again = flat(batches), batches[0]
    changed = again[: max(1, len(again) // 2)]
    _sell(shop, made)
    shop.send([{**order, "amount": "999.00"} if order in changed else order for order in again])
    context = shop.open()
    judged = shop.close(context)
    messages = _publish(shop, context)
    records = len(made) + len(again)
    expected = Judged(
        state=CERTIFIED,
        accounting={"span": records, "data": records},
        matched={LEDGER_HOP: len(made) - len(again), STORE_HOP: len(made) - len(changed)},
        found={
            LEDGER_HOP: each(again, "duplicate", "retry_without_idempotence"),
            STORE_HOP: each(changed, "conflict", "source_contradicts_itself"),
        },
        messages=_published(len(made) - len(changed), again=len(again) - len(changed), conflicts=len(changed)),
    )
    return Outcome(
        truth=f"Here {len(changed)} of the {len(again)} orders that were sent again have another amount.",
        naive=(_of_published(shop, [order for order in made if order not in changed]),),
        windows=(Window(judged=replace(judged, messages=messages), expected=expected),),
    )


def _sell(shop: LabShop, made: list[Order]) -> None:
    shop.write("outbox", made)
    shop.send(made)
    shop.write("warehouse", made)


def _publish(shop: LabShop, context: WindowContext) -> tuple[str, ...]:
    """Publish what is left; return what stands in the folder and in the topic."""
    publish(shop, context)
    folder = shop.folder / "once"
    [manifest] = (json.loads(path.read_text()) for path in (folder / "manifests").glob("*.json"))
    rows = pl.concat([pl.read_parquet(folder / file["path"]) for file in manifest["files"]])
    keys = sorted(rows["key"])
    in_topic = sorted(record.key_text for record in shop.read(once_topic(shop)))
    assert len(keys) == len(set(keys)) == manifest["records"]
    assert in_topic == keys
    again, conflicts = manifest["sent_again"]["records"], manifest["left_out"].get("conflict", 0)
    return _published(len(keys), again=again, conflicts=conflicts)


def _published(records: int, *, again: int, conflicts: int) -> tuple[str, ...]:
    return (
        f"published: {records} records in the folder and in the topic, {again} sent again, {conflicts} left out as "
        "a conflict",
    )


def _own_dedup(shop: LabShop, made: list[Order], expected: str) -> Naive:
    """Count what a consumer books that reads the topic and remembers the last few keys."""
    seen: OrderedDict[str, None] = OrderedDict()
    booked = 0
    for record in shop.read():
        if record.key_text not in seen:
            booked += 1
        seen[record.key_text] = None
        seen.move_to_end(record.key_text)
        while len(seen) > _REMEMBERED:
            seen.popitem(last=False)
    text = f"{booked} orders booked, {len(made)} were sold"
    check = f"a consumer that remembers the last {_REMEMBERED} keys, against the orders that were sold"
    return Naive(answer=NaiveAnswer(check=check, text=text, conclusion=compared(len(made), booked)), expected=expected)


def _of_published(shop: LabShop, right: list[Order]) -> Naive:
    """Count what a consumer books that reads what is published, without any dedup."""
    booked = len(shop.read(once_topic(shop)))
    text = f"{booked} orders booked, {len(right)} are without doubt"
    check = "a consumer of the published topic, without any dedup, against the orders without doubt"
    return Naive(answer=NaiveAnswer(check=check, text=text, conclusion=compared(len(right), booked)), expected=WELL)
