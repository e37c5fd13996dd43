"""Publish a day once for everyone, beside consumers that each deduplicate in their own way (row 130)."""

import importlib
import json
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest import mock

import polars as pl

from makewhole.journal.database import connect
from makewhole.window.context import WindowContext
from makewhole_spark.publish.publish_window import publish_windows
from tests.lab.judged import Judged
from tests.lab.naive import WELL, NaiveAnswer, compared
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import CERTIFIED, batches_of_a_day, each, flat
from tests.lab.shop import LabShop
from tests.world.orders import Order
from tests.world.pipeline_file import topic
from tests.world.shop import LEDGER_HOP, STORE_HOP

_REMEMBERED = 3
_KILLS = (
    "makewhole.journal.publications.decide",
    "makewhole.publishing.place.show",
    "makewhole.journal.publications.note_visible",
    "makewhole.kafka.replay.ReplayWriter.write",
    "makewhole.journal.publications.note_sent",
)


class EndedError(BaseException):
    """Stands for the end of the process."""


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
    covered_by=("tests/integration/spark/test_published.py",),
)
def published_once(lab: Lab) -> Outcome:
    shop, batches = _open(lab), batches_of_a_day(lab, least=4)
    made, again = flat(batches), batches[0]
    shop.transactions([[made[-1]]], lambda _: False)
    _sell(shop, made)
    shop.send(again)
    context = shop.open()
    judged = shop.close(context)
    for is_after in (False, True):
        _publish_and_end(shop, context, lab.random.choice(_KILLS), is_after=is_after)
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
    shop, batches = _open(lab), batches_of_a_day(lab)
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


def _open(lab: Lab) -> LabShop:
    """Open a shop whose topic is published to a folder and into a topic."""
    shop = lab.shop
    once = f"{shop.topic}-once"
    lab.cluster.create_topic(once, partitions=1, min_isr=2, settings={})
    lab.ends.callback(lab.cluster.delete_topic, once)
    shop.format = {"publish": f"{{path: {shop.folder / 'once'}, topic: once}}"}
    return shop.open_shop(
        more_points={"once": topic("log", once)},
        tolerance={"duplicate": "1000", "conflict": "1000", "mismatched": "1000"},
        hop={"compensation": "{missing: report}"},
        is_observing=True,
    )


def _sell(shop: LabShop, made: list[Order]) -> None:
    shop.write("outbox", made)
    shop.send(made)
    shop.write("warehouse", made)


def _publish(shop: LabShop, context: WindowContext) -> tuple[str, ...]:
    """Publish what is left; return what stands in the folder and in the topic."""
    with connect(shop.journal) as journal:
        publish_windows(shop.carrier, journal, context)
    folder = shop.folder / "once"
    [manifest] = (json.loads(path.read_text()) for path in (folder / "manifests").glob("*.json"))
    rows = pl.concat([pl.read_parquet(folder / file["path"]) for file in manifest["files"]])
    keys = sorted(rows["key"])
    in_topic = sorted(record.key_text for record in shop.read(f"{shop.topic}-once"))
    assert len(keys) == len(set(keys)) == manifest["records"]
    assert in_topic == keys
    again, conflicts = manifest["sent_again"]["records"], manifest["left_out"].get("conflict", 0)
    return _published(len(keys), again=again, conflicts=conflicts)


def _published(records: int, *, again: int, conflicts: int) -> tuple[str, ...]:
    return (
        f"published: {records} records in the folder and in the topic, {again} sent again, {conflicts} left out as "
        "a conflict",
    )


def _publish_and_end(shop: LabShop, context: WindowContext, place: str, *, is_after: bool) -> None:
    """Publish until a call ends the process; the call may not come any more."""
    owner, _, name = place.rpartition(".")
    target = _resolved(owner)
    real = getattr(target, name)

    def call(*args: object, **kwargs: object) -> None:
        if is_after:
            real(*args, **kwargs)
        raise EndedError

    with mock.patch.object(target, name, call), suppress(EndedError), connect(shop.journal) as journal:
        publish_windows(shop.carrier, journal, context)


def _resolved(name: str) -> Any:
    """Return a module, or a class of one, by its name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, owner = name.rpartition(".")
        return getattr(importlib.import_module(module), owner)


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
    booked = len(shop.read(f"{shop.topic}-once"))
    text = f"{booked} orders booked, {len(right)} are without doubt"
    check = "a consumer of the published topic, without any dedup, against the orders without doubt"
    return Naive(answer=NaiveAnswer(check=check, text=text, conclusion=compared(len(right), booked)), expected=WELL)
