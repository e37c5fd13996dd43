"""Publish a day, repair it, and publish it again, beside consumers that are in the middle of it (row 129)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from makewhole.window.context import WindowContext
from tests.lab.judged import Judged
from tests.lab.naive import WELL, NaiveAnswer, compared
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import CERTIFIED, batches_of_a_day, each, flat, whole_day
from tests.lab.scenarios.patterns.publishing_runs import KILLS, once_topic, open_publishing, publish, publish_and_end
from tests.world.consumer import Record, consumer, read_to_end
from tests.world.orders import Order
from tests.world.shop import LEDGER_HOP, STORE_HOP

_PARTITIONS = 3
_POSITION = ["window", "partition", "offset"]
Manifest = Mapping[str, Any]


@dataclass(kw_only=True)
class FolderReader:
    """A consumer of the folder that reads some files, stops, and goes on when other revisions are there."""

    folder: Path
    manifest: Manifest = field(default_factory=dict)
    rows: list[pl.DataFrame] = field(default_factory=list)

    def begin(self) -> None:
        """Take the newest manifest, and none of its files yet."""
        paths = sorted((self.folder / "manifests").glob("*.json"))
        self.manifest, self.rows = json.loads(paths[-1].read_text()) if paths else {"files": []}, []

    def read(self, files: int | None = None) -> None:
        """Read so many files more of the manifest, or all that are left."""
        left = self.manifest["files"][len(self.rows) :][:files]
        self.rows += [pl.read_parquet(self.folder / file["path"]) for file in left]

    @property
    def keys(self) -> list[str]:
        """The keys of the records that stand, by the rule of a reader."""
        if not self.rows:
            return []
        newest = pl.concat(self.rows).sort("revision").unique(_POSITION, keep="last")
        return sorted(newest.filter(pl.col("change") == "publish")["key"])

    @property
    def keys_without_revisions(self) -> list[str]:
        """The keys that a reader books that knows nothing of revisions."""
        return [] if not self.rows else sorted(pl.concat(self.rows).filter(pl.col("value").is_not_null())["key"])


@dataclass(kw_only=True)
class TopicReader:
    """A consumer of the topic that keeps its offsets with what it booked, by the record's origin."""

    bootstrap: str
    topic: str
    booked: dict[str, str] = field(default_factory=dict)
    without_revisions: list[str] = field(default_factory=list)
    offsets: dict[int, int] = field(default_factory=dict)

    def read(self, most: int | None = None) -> None:
        """Book so many records more, or all that are left."""
        with consumer(self.bootstrap) as client:
            for number, message in enumerate(read_to_end(client, self.topic, self.offsets)):
                if number == most:
                    break
                self._book(Record.of(message))

    def _book(self, record: Record) -> None:
        origin = record.header_texts["makewhole-published-from"]
        if record.header_texts["makewhole-published"] == "withdraw":
            del self.booked[origin]  # fails where it was not booked
        else:
            assert origin not in self.booked
            self.booked[origin] = record.key_text
        self.without_revisions += [record.key_text] if record.value is not None else []
        self.offsets[record.partition] = record.offset + 1

    @property
    def keys(self) -> list[str]:
        """The keys that are booked."""
        return sorted(self.booked.values())


@scenario(
    row=129,
    name="A window that is repaired and published again, while consumers are in the middle of it",
    happens=(
        "A day is certified and published. Then the ledger is put right: orders that it did not have are booked, and "
        "others had another amount all along. The day is judged again, and published again: what a consumer has read "
        "is no longer what stands."
    ),
    made=(
        "The ledger lacks some orders, which are tolerated; the loader lost others, which are repaired. A consumer of "
        "the folder and one of the topic stop after some files and some records, by the seed. The ledger is changed, "
        "the window is judged again, and both consumers go on. Each run that publishes is ended once, by the seed."
    ),
    why=(
        "Files never change, so that the consumer in the middle of the first revision reads it to its end. The second "
        "one has only what changed, each record with its origin: who takes the newest row of each position, or takes "
        "back what is withdrawn, has what stands."
    ),
    covered_by=("tests/integration/spark/test_published.py",),
)
def revised_while_read(lab: Lab) -> Outcome:
    shop = open_publishing(lab, partitions=_PARTITIONS, hop={"compensation": "{missing: upsert, duplicate: report}"})
    made = flat(batches_of_a_day(lab, least=4))
    wrong, late, lost = _drawn(lab, made)
    shop.write("outbox", [order for order in made if order not in late])
    shop.send(made)
    shop.write("warehouse", [order for order in made if order not in lost])
    by_folder = FolderReader(folder=shop.folder / "once")
    by_topic = TopicReader(bootstrap=shop.bootstrap, topic=once_topic(shop))

    context = shop.judge_and_repair(0)
    first = shop.verified_with_outcomes(context)
    _publish_with_an_end(lab, context)
    by_folder.begin()
    in_first = len(made) - len(late)
    by_folder.read(lab.random.randrange(len(by_folder.manifest["files"])))
    by_topic.read(lab.random.randrange(in_first))

    shop.write("outbox", late)
    shop.sql("update outbox set amount = amount + 1 where id = any(%s)", [order["id"] for order in wrong])
    again = shop.judge_and_repair(0)
    second = shop.verified_with_outcomes(again)
    _publish_with_an_end(lab, again, reading=by_topic)

    by_folder.read()
    assert by_folder.keys == _keys(made, but=late)  # the first revision, as it was
    by_folder.begin()
    by_folder.read()
    by_topic.read()
    right = _keys(made, but=wrong)
    assert (by_folder.keys, by_topic.keys) == (right, right)
    assert by_folder.keys_without_revisions == sorted(by_topic.without_revisions) == _keys(made)
    count = len(made)
    tolerated = Judged(
        state=CERTIFIED,
        accounting={"span": count, "data": count},
        matched={LEDGER_HOP: count - len(late), STORE_HOP: count - len(lost)},
        found={
            LEDGER_HOP: each(late, "unexpected", "not_in_source"),
            STORE_HOP: each(lost, "missing", "lost_after_topic"),
        },
        messages=(f"{STORE_HOP}: {len(lost)} repaired", f"{LEDGER_HOP}: {len(late)} open"),
    )
    corrected = replace(
        whole_day(made),
        matched={LEDGER_HOP: count - len(wrong), STORE_HOP: count},
        found={LEDGER_HOP: each(wrong, "mismatched", "value_differs")},
        messages=(f"{LEDGER_HOP}: {len(wrong)} open",),
    )
    return Outcome(
        truth=(
            f"Here {count} orders were sent. Of {len(late)} the ledger knew nothing at first, {len(wrong)} had another "
            f"amount, and {len(lost)} the loader lost."
        ),
        naive=(
            _consumer("the published topic, by its changes", len(right), len(by_topic.keys), WELL),
            _consumer("the published folder, by its newest manifest", len(right), len(by_folder.keys), WELL),
            _consumer(
                "the published topic that books each record with a value and takes nothing back",
                len(right),
                len(by_topic.without_revisions),
                f"{len(wrong)} repeated",
            ),
        ),
        windows=(
            Window(label="the first revision", judged=first, expected=tolerated),
            Window(label="when the ledger is right", judged=second, expected=corrected),
        ),
    )


@scenario(
    row=129,
    name="A publisher that is killed before anything is decided, and a consumer that lists the folder",
    happens=(
        "The run that publishes is killed when its files are written. A consumer that reads whatever lies in the folder"
        " takes them for what is published; the next run writes them again."
    ),
    made="The process is ended right before the row in the journal that decides, as often as the seed says.",
    why=(
        "A file counts when a manifest names it, and no manifest is there before the journal has decided. What the "
        "killed attempt left is removed by the next one."
    ),
    covered_by=("tests/integration/spark/test_published_killed.py",),
)
def listed_while_killed(lab: Lab) -> Outcome:
    shop = open_publishing(lab, partitions=_PARTITIONS, hop={"compensation": "{missing: report}"}, is_observing=True)
    made = flat(batches_of_a_day(lab))
    for table in ("outbox", "warehouse"):
        shop.write(table, made)
    shop.send(made)
    context = shop.open()
    judged = shop.close(context)
    reader = FolderReader(folder=shop.folder / "once")
    for _ in range(lab.random.randint(1, 3)):
        publish_and_end(shop, context, KILLS[0], is_after=False)
        reader.begin()
        reader.read()
        listed = len(_listed(reader.folder))
        assert (reader.keys, listed) == ([], len(made))
    publish(shop, context)
    reader.begin()
    reader.read()
    assert reader.keys == _keys(made) == sorted(_listed(reader.folder))
    return Outcome(
        truth=f"Here {len(made)} orders were sent, and nothing was published when the run was killed.",
        naive=(
            _consumer("whatever lies in the folder, when the run was killed", 0, listed, f"{len(made)} repeated"),
            _consumer("the published folder, when it is published", len(made), len(reader.keys), WELL),
        ),
        windows=(Window(judged=judged, expected=whole_day(made)),),
    )


def _drawn(lab: Lab, made: Sequence[Order]) -> tuple[list[Order], list[Order], list[Order]]:
    """Draw orders that go wrong in three ways, each in one of them."""
    shuffled = lab.random.sample(list(made), len(made))
    most = max(1, len(made) // 4)
    ends = [0]
    for _ in range(3):
        ends.append(ends[-1] + lab.random.randint(1, most))
    wrong, late, lost = (shuffled[lo:hi] for lo, hi in pairwise(ends))
    return wrong, late, lost


def _publish_with_an_end(lab: Lab, context: WindowContext, reading: TopicReader | None = None) -> None:
    """Publish; the process ends once on the way, by the seed. A consumer may read a record more right then."""
    publish_and_end(lab.shop, context, lab.random.choice(KILLS), is_after=lab.random.random() < 0.5)
    if reading is not None:
        reading.read(1)
    publish(lab.shop, context)


def _keys(made: Iterable[Order], but: Sequence[Order] = ()) -> list[str]:
    return sorted(order["id"] for order in made if order not in but)


def _listed(folder: Path) -> list[str]:
    return [key for path in (folder / "data").rglob("*.parquet") for key in pl.read_parquet(path)["key"]]


def _consumer(of: str, right: int, booked: int, expected: str) -> Naive:
    """Return what a consumer of something books, beside what stands."""
    text = f"{booked} orders booked, {right} stand"
    answer = NaiveAnswer(check=f"a consumer of {of}", text=text, conclusion=compared(right, booked))
    return Naive(answer=answer, expected=expected)
