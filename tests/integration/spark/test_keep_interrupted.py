"""Test removals that were decided and not carried out to their end, and windows that are judged again meanwhile."""

from typing import Any

import pytest

from makewhole.compensation.sources.original_records import WindowRecords
from makewhole.journal.results.snapshot_manifests import NOT_REUSED
from makewhole.journal.retention import removable
from makewhole.lake.storage import Storage
from makewhole.model.window import WindowState
from tests.integration.spark.test_keep import age, archived, chain_problems, days, keep
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def killed_at_removal(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Decide to remove archives, and be killed when so many files are gone."""
    remove, left = Storage.remove, iter(range(number))

    def dies(storage: Storage, path: str) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt(path)
        remove(storage, path)

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "remove", dies)
        with pytest.raises(KeyboardInterrupt):
            keep(shop)


@pytest.mark.parametrize("kind", ["archives", "findings"])
def test_nothing_goes_of_a_window_that_is_opened_again_before_it_is_decided(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    shop.describe(keep={kind: "30d"})
    days(shop, 2)
    age(shop)
    listed = removable.removable_windows

    def opened_since(*values: Any) -> Any:
        answer = listed(*values)
        shop.open(0)
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(removable, "removable_windows", opened_since)
        assert keep(shop) == []
    assert len(archived(Storage.from_environment(), 1)) == 2
    assert shop.journal_sql("select count(*) from makewhole.removal") == [(0,)]


def test_a_window_that_is_judged_again_names_no_archive_that_is_being_removed(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(keep={"archives": "30d"})
    days(shop, 2)
    age(shop)
    killed_at_removal(shop, monkeypatch, 0)
    assert len(archived(Storage.from_environment(), 1)) == 2

    again, closed = shop.whole_way(0)

    assert closed.state is WindowState.CERTIFIED
    manifest = shop.manifests(again)["orders"]
    because = "the archive of revision 1 was kept as long as the file says, and is removed"
    assert (manifest["archive"], manifest[NOT_REUSED]) == ("shop/window=1/revision=2/orders/archive", because)
    assert len(list(WindowRecords(again).records("orders", [(0, 0)]))) == 1
    age(shop)
    assert [leftover.amount.files for leftover in keep(shop)] == [4]
    assert (archived(Storage.from_environment(), 1), chain_problems(shop)) == ([], [])


def test_a_removal_that_was_interrupted_goes_on_under_another_policy(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(keep={"archives": "30d"})
    first, _ = days(shop, 2)
    age(shop)
    killed_at_removal(shop, monkeypatch, 1)
    shop.describe(keep={"archives": "20d"})
    assert [leftover.amount.files for leftover in keep(shop)] == [1]
    assert archived(Storage.from_environment(), 1) == []
    records = WindowRecords(first)
    assert list(records.records("orders", [(0, 0)])) == []
    assert "records were kept 30d, and removed at" in (records.removed("orders") or "")
    assert (keep(shop), chain_problems(shop)) == ([], [])
