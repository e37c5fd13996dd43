"""Publish the records of windows once for everyone: what stands in the folder and in the topic, and what does not."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pytest

from makewhole.compute.judge.survivors import ChosenSurvivors
from makewhole.journal.database import connect
from makewhole.model.errors import CorruptionError, RefusedError
from makewhole.publishing.layout import manifest_path
from makewhole.publishing.place import root_of
from makewhole.window.context import WindowContext
from makewhole_spark.publish import choose_records
from makewhole_spark.publish.publish_window import publish_windows
from tests.integration.spark.conftest import NewShop
from tests.world.consumer import Record
from tests.world.orders import at_day, orders
from tests.world.pipeline_file import topic
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

Manifest = Mapping[str, Any]
TOLERANT = {"duplicate": "9", "conflict": "9", "unexpected": "9", "mismatched": "9"}


def publishing(shop: ReconciledShop, into: str | None = None, **settings: Any) -> Path:
    """Describe the shop with a folder in which its topic is published, and a topic; return the folder."""
    folder = shop.folder / "once"
    shop.format = {"publish": f"{{path: {folder}{', topic: once' if into else ''}}}"}
    points = {"once": topic("log", into)} if into else {}
    shop.describe(is_observing=True, tolerance=TOLERANT, more_points=points, **settings)
    return folder


def publish(shop: ReconciledShop, context: WindowContext) -> list[Manifest]:
    """Publish what is due; return the manifests that are new, as they stand in the folder."""
    with connect(shop.journal) as journal:
        done = publish_windows(shop.carrier, journal, context)
    root = Path(root_of(context.pipeline, context.pipeline.publish[0], context.storage)) if done else shop.folder
    paths = [root / manifest_path(window.number, window.revision) for point in done for window in point.windows]
    return [json.loads(path.read_text()) for path in paths]


def add_versions(shop: ReconciledShop) -> None:
    """Make the tables of a shop again, with a column of versions."""
    shop.more_columns = {"version": "bigint"}
    shop.sql("drop table outbox; drop table warehouse")
    shop.make_tables(", version bigint")


def certified(shop: ReconciledShop, day: int = 0) -> WindowContext:
    """Take a window to its certificate."""
    context, closed = shop.whole_way(day)
    assert closed.state.value == "certified", closed.reason
    return context


def manifests(folder: Path) -> dict[int, Manifest]:
    """Return the newest manifest of each window."""
    documents = [json.loads(path.read_text()) for path in sorted((folder / "manifests").glob("*.json"))]
    return {manifest["window"]: manifest for manifest in documents}


def standing(folder: Path, newest: Mapping[int, Manifest] | None = None) -> pl.DataFrame:
    """Read what is published, as the documentation has it."""
    known = manifests(folder) if newest is None else newest
    files = [folder / file["path"] for manifest in known.values() for file in manifest["files"]]
    last = pl.read_parquet(files).sort("revision").unique(["window", "partition", "offset"], keep="last")
    return last.filter(pl.col("change") == "publish").sort("window", "partition", "offset")


def keys(folder: Path) -> list[str]:
    return standing(folder)["key"].to_list()


def sent(shop: ReconciledShop, name: str) -> list[tuple[str, str]]:
    """Return key and change of each record that a read_committed consumer sees."""
    return [(record.key_text, changed(record)) for record in shop.read(name)]


def changed(record: Record) -> str:
    return record.header_texts["makewhole-published"]


def left_out(shop: ReconciledShop, manifest: Manifest) -> dict[str, tuple[str, list[str]]]:
    """Return why keys are left out, and where their records are."""
    rows = pl.concat(pl.read_parquet(file) for file in manifest["left_out_files"])
    return {row["key"]: (row["why"], row["places"]) for row in rows.to_dicts()}


def test_window_is_published_with_each_key_once_and_its_conflicts_listed(shop: ReconciledShop) -> None:
    folder = publishing(shop, has_ledger=False)
    made = orders(range(5))
    client = shop.begin_transaction([made[2]])
    shop.end_transaction(client, is_committed=False)
    shop.send([*made, made[1], made[1], {**made[4], "amount": "77.00"}], headers={"source": "till"})
    shop.write("warehouse", made)
    context = certified(shop)
    [manifest] = publish(shop, context)
    rows = standing(folder)
    assert rows["key"].to_list() == ["O0", "O1", "O2", "O3"]
    assert [json.loads(value) for value in rows["value"]] == json.loads(json.dumps(made[:4]))
    assert rows["headers"].to_list() == [[{"key": "source", "value": b"till"}]] * 4
    assert rows["offset"].to_list() == [2, 3, 4, 5]
    assert (manifest["records"], manifest["published"], manifest["withdrawn"], manifest["state"]) == (
        4,
        4,
        0,
        "certified",
    )
    assert manifest["sent_again"] == {"records": 2, "keys_of_other_windows": 0}
    assert manifest["left_out"] == {"conflict": 1}
    assert left_out(shop, manifest) == {"O4": ("conflict", ["0:6", "0:9"])}
    assert [(part["partition"], part["lo"], part["hi"]) for part in manifest["offsets"]] == [(0, 0, 10)]
    assert publish(shop, context) == []
    assert manifests(folder) == {1: json.loads(json.dumps(manifest))}


def test_key_is_published_with_the_window_of_its_first_record_alone(shop: ReconciledShop) -> None:
    folder = publishing(shop, has_ledger=False)
    first, second = orders(range(4)), orders(range(10, 12), day=1)
    shop.send(first)
    shop.write("warehouse", [*first, *second])
    publish(shop, certified(shop))
    shop.send([*second, at_day(1.1, first[0]), {**at_day(1.1, first[1]), "amount": "77.00"}])
    [manifest] = publish(shop, certified(shop, day=1))
    assert keys(folder) == ["O0", "O1", "O2", "O3", "O10", "O11"]
    assert manifest["sent_again"] == {"records": 0, "keys_of_other_windows": 1}
    assert left_out(shop, manifest) == {"O1": ("conflict", ["0:7"])}


def test_revision_publishes_only_what_changed_and_a_reader_in_the_middle_reads_rightly(shop: ReconciledShop) -> None:
    name = shop.add_topic()
    folder = publishing(shop, into=name)
    made = orders(range(6))
    shop.trade(made[:5])
    shop.send([made[5]])  # the ledger does not have it yet
    shop.write("warehouse", [made[5]])
    context = certified(shop)
    [first] = publish(shop, context)
    assert keys(folder) == ["O0", "O1", "O2", "O3", "O4"]
    assert left_out(shop, first) == {"O5": ("unverified", ["0:5"])}
    in_the_middle = manifests(folder)
    shop.write("outbox", [made[5]])
    shop.sql("update outbox set amount = 99 where id = 'O1'")  # the record was wrong all along
    [second] = publish(shop, certified(shop))
    assert (second["revision"], second["published"], second["withdrawn"], second["records"]) == (2, 1, 1, 5)
    assert keys(folder) == ["O0", "O2", "O3", "O4", "O5"]
    assert standing(folder, in_the_middle)["key"].to_list() == ["O0", "O1", "O2", "O3", "O4"]
    assert sent(shop, name) == [
        *((f"O{number}", "publish") for number in range(5)),
        ("O1", "withdraw"),
        ("O5", "publish"),
    ]
    withdrawn = shop.read(name)[5]
    assert (withdrawn.value, withdrawn.header_texts["makewhole-published-from"]) == (None, "0:1")
    assert withdrawn.header_texts["makewhole-published-window"] == "1/2"
    shop.sql("update outbox set amount = 1.50 where id = 'O1'")
    [third] = publish(shop, certified(shop))
    assert (third["published"], third["withdrawn"], third["records"]) == (1, 0, 6)
    assert keys(folder) == ["O0", "O1", "O2", "O3", "O4", "O5"]
    assert sent(shop, name)[-1] == ("O1", "publish")


def test_window_waits_in_a_topic_for_the_one_before_it_and_not_in_a_folder(new_shop: NewShop) -> None:
    """Two shops: a folder alone, and a topic, too."""
    for has_topic in (False, True):
        shop = new_shop()
        name = shop.add_topic() if has_topic else None
        folder = publishing(shop, into=name, has_ledger=False)
        days = [orders(range(day * 10, day * 10 + 2), day=day) for day in range(3)]
        for day in days:
            shop.send(day)
        shop.write("warehouse", [*days[0], days[1][0], *days[2]])
        publish(shop, certified(shop))
        _, closed = shop.whole_way(1)
        assert closed.state.value == "gaps"
        publish(shop, certified(shop, day=2))
        of_days = ["O0", "O1", "O20", "O21"]
        assert keys(folder) == (of_days[:2] if has_topic else of_days)
        shop.write("warehouse", [days[1][1]])
        publish(shop, certified(shop, day=1))
        assert keys(folder) == ["O0", "O1", "O10", "O11", "O20", "O21"]
        if name is not None:
            assert [key for key, _ in sent(shop, name)] == keys(folder)


def test_event_that_a_later_window_published_stays_there(shop: ReconciledShop) -> None:
    folder = publishing(shop)
    made = orders(range(2))
    shop.send(made)
    shop.write("warehouse", made)
    shop.write("outbox", made[1:])
    publish(shop, certified(shop))
    assert keys(folder) == ["O1"]
    # As if the first window had been read when the key stood elsewhere in its records.
    shop.journal_sql("update makewhole.key_run set files = '{}'")
    shop.send([at_day(1.1, made[0])])
    shop.write("outbox", [made[0]])
    publish(shop, certified(shop, day=1))
    assert keys(folder) == ["O1", "O0"]
    [manifest] = publish(shop, certified(shop))
    assert (manifest["revision"], manifest["published"]) == (2, 0)
    assert manifest["sent_again"]["keys_of_other_windows"] == 1
    assert keys(folder) == ["O1", "O0"]


def test_latest_version_of_each_key_is_published_and_a_deletion_is(shop: ReconciledShop) -> None:
    add_versions(shop)
    folder = publishing(shop, has_ledger=False, is_upsert=True, has_version=True)
    made = [{**order, "version": 2} for order in orders(range(4))]
    shop.send([*made, {**made[1], "version": 1, "amount": "9.00"}, {**made[2], "version": 3, "amount": "8.00"}])
    shop.write("warehouse", [*made[:2], {**made[2], "version": 3, "amount": "8.00"}, made[3]])
    [manifest] = publish(shop, certified(shop))
    rows = standing(folder)
    assert dict(zip(rows["key"], rows["offset"], strict=True)) == {"O0": 0, "O1": 1, "O2": 5, "O3": 3}
    assert manifest["semantics"] == "upsert"
    late = [at_day(1.1, order) for order in (made[0], {**made[3], "version": 5, "amount": "7.00"})]
    shop.send(late)
    shop.sql("update warehouse set version = 5, amount = 7 where id = 'O3'")
    [manifest] = publish(shop, certified(shop, day=1))
    assert standing(folder).filter(pl.col("window") == 2)["key"].to_list() == ["O3"]
    assert manifest["sent_again"]["keys_of_other_windows"] == 1


@pytest.mark.in_process
def test_revision_sends_nothing_of_a_key_whose_later_version_is_in_the_topic(shop: ReconciledShop) -> None:
    add_versions(shop)
    name = shop.add_topic()
    folder = publishing(shop, into=name, has_ledger=False, is_upsert=True, has_version=True)
    first = [{**order, "version": 1} for order in orders(range(2))]
    shop.send(first)
    shop.write("warehouse", first)
    with choosing(lambda survivors: survivors.filter(pl.col("key") == "O0")):
        publish(shop, certified(shop))
    later = [at_day(1.1, {**order, "version": 2}) for order in first]
    shop.send(later)
    shop.sql("update warehouse set version = 2")
    publish(shop, certified(shop, day=1))
    with choosing(lambda survivors: survivors.filter(pl.col("key") == "O1")):
        [manifest] = publish(shop, certified(shop))
    assert (manifest["revision"], manifest["published"], manifest["withdrawn"], manifest["records"]) == (2, 0, 1, 0)
    assert standing(folder).select("window", "key").rows() == [(2, "O0"), (2, "O1")]
    assert sent(shop, name) == [("O0", "publish"), ("O0", "publish"), ("O1", "publish")]


@contextmanager
def choosing(change: Callable[[pl.DataFrame], pl.DataFrame]) -> Iterator[None]:
    """Have other records chosen, as when a window is judged by what was not known before."""
    real = choose_records._choose
    with mock.patch.object(choose_records, "_choose", lambda task: changed_choice(real(task), change)):
        yield


def changed_choice(chosen: ChosenSurvivors, change: Callable[[pl.DataFrame], pl.DataFrame]) -> ChosenSurvivors:
    return replace(chosen, survivors=change(chosen.survivors))


# Who else is there


def test_folder_and_topic_of_another_publication_are_refused(new_shop: NewShop) -> None:
    """Two shops with journals of their own, which know nothing of each other."""
    shop = new_shop()
    name = shop.add_topic()
    folder = publishing(shop, into=name, has_ledger=False)
    made = orders(range(2))
    shop.send(made)
    shop.write("warehouse", made)
    context = certified(shop)
    publish(shop, context)
    before = sorted(path.name for path in folder.rglob("*"))
    other = new_shop()
    other.format = {"publish": f"{{path: {folder}}}"}
    other.describe(is_observing=True, has_ledger=False)
    other.send(made)
    other.write("warehouse", made)
    with pytest.raises(RefusedError, match=r"owner\.json says that something else is published there"):
        publish(other, certified(other))
    assert sorted(path.name for path in folder.rglob("*")) == before
    other.format = {"publish": f"{{path: {other.folder / 'own'}, topic: once}}"}
    other.describe(is_observing=True, has_ledger=False, more_points={"once": topic("log", name)})
    with pytest.raises(RefusedError, match=f"topic {name} is not empty"):
        publish(other, certified(other))
    assert len(sent(shop, name)) == 2


def test_published_file_that_is_gone_is_noticed_before_a_revision_names_it(shop: ReconciledShop) -> None:
    folder = publishing(shop, has_ledger=False)
    made = orders(range(2))
    shop.send(made)
    shop.write("warehouse", made)
    [manifest] = publish(shop, certified(shop))
    (folder / manifest["files"][0]["path"]).unlink()
    with pytest.raises(CorruptionError, match="was published and is not there; nothing was changed"):
        publish(shop, certified(shop))
    (folder / "owner.json").unlink()
    with pytest.raises(RefusedError, match=r"owner\.json is gone, though windows were published there"):
        publish(shop, certified(shop))
