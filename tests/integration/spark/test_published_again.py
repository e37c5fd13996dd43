"""Publish windows again, out of order, beside another run, and into a topic that is not the one of before."""

from typing import Any
from unittest import mock

import pytest

from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.model.errors import LeaseLostError, RefusedError
from makewhole.publishing.published import report_published
from tests.integration.spark.test_erase import erased
from tests.integration.spark.test_keep import age, keep
from tests.integration.spark.test_published import (
    add_versions,
    certified,
    choosing,
    keys,
    manifests,
    publish,
    publishing,
    sent,
)
from tests.integration.spark.test_published_killed import killed
from tests.integration.spark.test_published_revocations import point
from tests.world.orders import at_day, orders
from tests.world.topics import make_topic_again
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300), pytest.mark.in_process]


def test_run_that_another_one_overtook_removes_no_file_that_was_decided(shop: ReconciledShop) -> None:
    folder = publishing(shop, has_ledger=False)
    made = orders(range(3))
    shop.send(made)
    shop.write("warehouse", made)
    context = certified(shop)
    load, overtaken = windows.load, list[Any]()

    def load_when_overtaken(*given: Any) -> Any:
        if not overtaken:
            overtaken.append(given)
            publish(shop, context)
        return load(*given)

    with mock.patch.object(windows, "load", load_when_overtaken), pytest.raises(LeaseLostError):
        publish(shop, context)
    assert keys(folder) == [order["id"] for order in made]


def test_run_that_another_one_overtook_does_not_take_its_marker_for_that_of_another_makewhole(
    shop: ReconciledShop,
) -> None:
    name = shop.add_topic()
    publishing(shop, into=name, has_ledger=False)
    for day in range(2):
        made = orders(range(day * 10, day * 10 + 2), day=day)
        shop.send(made)
        shop.write("warehouse", made)
        context = certified(shop, day)
        with mock.patch("makewhole_spark.publish.publish_window._send"):
            publish(shop, context)
    overtaken = list[Any]()

    def due_when_overtaken(*_: Any) -> list[tuple[int, int]]:
        if not overtaken:
            overtaken.append(context)
            publish(shop, context)
        return []

    with (
        mock.patch("makewhole_spark.publish.publish_window._due", due_when_overtaken),
        pytest.raises(LeaseLostError),
    ):
        publish(shop, context)
    assert len(sent(shop, name)) == 4


def test_key_that_a_later_window_withdrew_is_published_with_its_own_window_again(shop: ReconciledShop) -> None:
    add_versions(shop)
    name = shop.add_topic()
    folder = publishing(shop, into=name, has_ledger=False, is_upsert=True, has_version=True)
    first = [{**order, "version": 1} for order in orders(range(2))]
    shop.send(first)
    shop.write("warehouse", first)
    with choosing(lambda survivors: survivors.clear()):
        publish(shop, certified(shop))
    shop.send([at_day(1.1, {**order, "version": 2}) for order in first])
    shop.sql("update warehouse set version = 2")
    publish(shop, certified(shop, day=1))
    with choosing(lambda survivors: survivors.clear()):
        publish(shop, certified(shop, day=1))
    assert keys(folder) == []
    [manifest] = publish(shop, certified(shop))
    assert (manifest["window"], manifest["published"], manifest["sent_again"]["keys_of_other_windows"]) == (1, 2, 0)
    assert keys(folder) == ["O0", "O1"]
    assert sent(shop, name)[-2:] == [("O0", "publish"), ("O1", "publish")]


def test_event_that_its_own_window_leaves_to_a_later_one_stays_there_in_all_revisions(shop: ReconciledShop) -> None:
    folder = publishing(shop)
    made = orders(range(2))
    shop.send(made)
    shop.write("warehouse", made)
    shop.write("outbox", made[1:])
    publish(shop, certified(shop))
    # As if the first window had been read when the key stood elsewhere in its records.
    shop.journal_sql("update makewhole.key_run set files = '{}'")
    shop.send([at_day(1.1, made[0])])
    shop.write("outbox", [made[0]])
    shop.trade(orders([10], day=1))
    publish(shop, certified(shop, day=1))
    [manifest] = publish(shop, certified(shop))
    assert (manifest["revision"], manifest["published"]) == (2, 0)
    [manifest] = publish(shop, certified(shop, day=1))
    assert (manifest["window"], manifest["revision"], manifest["withdrawn"], manifest["records"]) == (2, 2, 0, 2)
    assert keys(folder) == ["O1", "O0", "O10"]
    [manifest] = publish(shop, certified(shop))
    assert (manifest["revision"], manifest["published"], keys(folder)) == (3, 0, ["O1", "O0", "O10"])


def test_first_window_is_published_when_it_is_certified_though_a_later_one_was_first(shop: ReconciledShop) -> None:
    folder = publishing(shop, has_ledger=False)
    days = [orders(range(day * 10, day * 10 + 2), day=day) for day in range(2)]
    for day in days:
        shop.send(day)
    shop.write("warehouse", [days[0][0], *days[1]])
    _, closed = shop.whole_way()
    assert closed.state.value == "gaps"
    publish(shop, certified(shop, day=1))
    assert (keys(folder), point(shop).complete_through) == (["O10", "O11"], None)
    shop.write("warehouse", [days[0][1]])
    publish(shop, certified(shop))
    assert (keys(folder), point(shop).complete_through) == (["O0", "O1", "O10", "O11"], 2)


def test_topic_that_was_made_again_gets_nothing(shop: ReconciledShop) -> None:
    name = shop.add_topic()
    publishing(shop, into=name, has_ledger=False)
    days = [orders(range(day * 10, day * 10 + 2), day=day) for day in range(2)]
    for day in days:
        shop.send(day)
        shop.write("warehouse", day)
    publish(shop, certified(shop))
    make_topic_again(shop.admin, name)
    with pytest.raises(RefusedError, match=f"topic {name} was made again, and what was sent into it is gone"):
        publish(shop, certified(shop, day=1))
    assert sent(shop, name) == []


def test_topic_that_was_made_again_before_the_journal_knew_of_a_chunk_gets_nothing(shop: ReconciledShop) -> None:
    """The run ends between its first transaction and the journal."""
    name = shop.add_topic()
    publishing(shop, into=name, has_ledger=False)
    made = orders(range(2))
    shop.send(made)
    shop.write("warehouse", made)
    context = certified(shop)
    with killed("makewhole.journal.publications.note_sent", is_after=False):
        publish(shop, context)
    assert len(sent(shop, name)) == 2
    make_topic_again(shop.admin, name)
    with pytest.raises(RefusedError, match=f"topic {name} was made again, and what was sent into it is gone"):
        publish(shop, context)
    assert point(shop).complete_through is None


def test_record_whose_archive_is_without_it_is_withdrawn(shop: ReconciledShop) -> None:
    """As when its key was erased, or compaction took it."""
    name = shop.add_topic()
    folder = publishing(shop, into=name, has_ledger=False)
    made = orders(range(3))
    shop.send(made, headers={"source": "till"})
    shop.write("warehouse", made)
    publish(shop, certified(shop))
    context = certified(shop)
    erased(shop, "O1")
    with choosing(lambda survivors: survivors.filter(survivors["key"] != "O1")):
        [manifest] = publish(shop, context)
    assert (manifest["withdrawn"], manifest["records"]) == (1, 2)
    assert keys(folder) == ["O0", "O2"]
    [withdrawn] = shop.read(name)[3:]
    assert (withdrawn.key_text, withdrawn.value, withdrawn.header_texts["source"]) == ("O1", None, "till")
    assert withdrawn.header_texts["makewhole-published-from"] == "0:1"
    assert manifests(folder)[1]["revision"] == 2


def test_window_that_is_not_in_the_topic_yet_is_not_called_complete(shop: ReconciledShop) -> None:
    name = shop.add_topic()
    publishing(shop, into=name, has_ledger=False)
    for day in range(2):
        made = orders(range(day * 10, day * 10 + 2), day=day)
        shop.send(made)
        shop.write("warehouse", made)
    first = certified(shop)
    publish(shop, first)
    second = certified(shop, day=1)
    with mock.patch("makewhole_spark.publish.publish_window._send"):  # killed before it
        publish(shop, second)
    with connect(shop.journal) as journal:  # the task of the first window is tried again, and has an event
        event = report_published(journal, first.pipeline, first.window, "dag/run")["orders"]
    assert event["complete_through"] == 1
    publish(shop, second)
    assert point(shop).complete_through == 2


def test_archive_of_a_revision_that_is_still_to_be_published_stays(shop: ReconciledShop) -> None:
    folder = publishing(shop, has_ledger=False, keep={"archives": "30d"})
    for day in range(2):
        made = orders(range(day * 10, day * 10 + 2), day=day)
        shop.send(made)
        shop.write("warehouse", made)
    with choosing(lambda survivors: survivors.head(1)):
        publish(shop, certified(shop))
    certified(shop, day=1)
    again = certified(shop)
    age(shop)
    assert keep(shop) == []
    publish(shop, again)
    assert keys(folder) == ["O0", "O1", "O10", "O11"]
    assert [outcome.window for outcome in keep(shop)] == [1]


def test_folder_that_the_file_names_no_more_holds_up_no_removal(shop: ReconciledShop) -> None:
    """Windows 1 in one folder, 2 and 3 in another one, 4 and 5 in none."""
    publishing(shop, has_ledger=False, keep={"archives": "30d"})
    for day in range(5):
        if day == 1:
            shop.format = {"publish": f"{{path: {shop.folder / 'elsewhere'}}}"}
        if day == 3:
            shop.format = {}
        shop.describe(is_observing=True, has_ledger=False, keep={"archives": "30d"})
        made = orders(range(day * 10, day * 10 + 2), day=day)
        shop.send(made)
        shop.write("warehouse", made)
        publish(shop, certified(shop, day=day))
        age(shop)
        assert [outcome.window for outcome in keep(shop)] == [day] * (day > 0)
    assert manifests(shop.folder / "once").keys() == {1}
    assert manifests(shop.folder / "elsewhere").keys() == {2, 3}


def test_large_records_go_in_several_transactions_each_once(shop: ReconciledShop) -> None:
    """Two orders fill one; the run ends behind the first, and is taken up."""
    name = shop.add_topic()
    folder = publishing(shop, into=name, has_ledger=False)
    made = orders(range(5))
    shop.send(made, headers={"bulk": "x" * 1_000})
    shop.write("warehouse", made)
    context = certified(shop)
    with mock.patch("makewhole.publishing.manifest.BYTES_OF_A_CHUNK", 2_500, create=True):
        with killed("makewhole.journal.publications.note_sent", is_after=True):
            publish(shop, context)
        assert len(sent(shop, name)) == 2
    publish(shop, context)  # by the sizes that were decided, whatever they are now
    chunks = [record.header_texts["makewhole-published-chunk"].rpartition("/")[2] for record in shop.read(name)]
    assert chunks == ["0", "0", "1", "1", "2"]
    assert [key for key, _ in sent(shop, name)] == keys(folder) == [order["id"] for order in made]
    assert [file["chunk_rows"] for file in manifests(folder)[1]["files"]] == [[2, 2, 1]]
