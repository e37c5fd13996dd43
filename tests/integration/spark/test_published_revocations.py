"""Revoke the certificates of published windows: a notice beside them says so, for as long as none stands."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from makewhole.cli.published import published as list_published
from makewhole.journal.database import connect
from makewhole.lake.storage import Storage
from makewhole.model.errors import RefusedError
from makewhole.publishing.published import PublishedPoint, published_points, report_published
from makewhole.publishing.revocations import ChangedNotice, note_revocations
from makewhole.signing.key_files import signing_key_from_environment
from makewhole.window.certifying.certify import certify_again
from makewhole.window.context import WindowContext
from tests.integration.spark.test_published import (
    certified,
    keys,
    manifests,
    publish,
    publishing,
)
from tests.integration.spark.test_published_killed import killed
from tests.world.orders import Order, orders
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

_ORDERS = 12  # more than may be wrong
KEYS = [f"O{number}" for number in range(_ORDERS)]


def sold(shop: ReconciledShop, day: int = 0) -> list[Order]:
    """Send the orders of a day, and have all of them in the store."""
    made = orders(range(20 * day, 20 * day + _ORDERS), day=day)
    shop.send(made)
    shop.write("warehouse", made)
    return made


def notices(folder: Path) -> dict[str, Mapping[str, Any]]:
    """Return the notices that a consumer finds, by their names."""
    return {path.name: json.loads(path.read_text()) for path in (folder / "revoked").glob("*")}


def note(shop: ReconciledShop, context: WindowContext) -> list[ChangedNotice]:
    """Bring the notices up to date, as the task behind `certify` does."""
    with connect(shop.journal) as journal:
        return note_revocations(journal, context.pipeline, Storage.from_environment())


def point(shop: ReconciledShop) -> PublishedPoint:
    """Return what is published of the shop's topic."""
    with connect(shop.journal) as journal:
        [published] = published_points(journal, "shop")
    return published


def judged_with_gaps(shop: ReconciledShop, day: int = 0) -> WindowContext:
    """Change the rows of a day, and judge it again."""
    change(shop, day, by=1)
    context, closed = shop.whole_way(day)
    assert (closed.state.value, [entry.revokes for entry in closed.revoked]) == ("gaps", [day + 1])
    return context


def change(shop: ReconciledShop, day: int, *, by: int) -> None:
    """Change the amounts in the store."""
    statement = "update warehouse set amount = amount + %s where number between %s and %s"
    shop.sql(statement, by, 20 * day, 20 * day + _ORDERS)


def test_notice_is_there_from_the_revocation_until_a_certificate_stands_again(shop: ReconciledShop) -> None:
    folder = publishing(shop, has_ledger=False)
    sold(shop)
    first = certified(shop)
    publish(shop, first)
    assert (note(shop, first), notices(folder), point(shop).complete_through) == ([], {}, 1)

    again = judged_with_gaps(shop)
    [changed] = note(shop, again)
    [(name, document)] = notices(folder).items()
    assert name == "window=00000001.revision=0001.by=000002.json"
    assert (document["window"], document["revision"], document["revocation"]["ordinal"]) == (1, 1, 2)
    assert document["revocation"]["because"]["state"] == "gaps"
    assert (changed.window, changed.revision, changed.to_json_dict()["revoked_by"]) == (1, 1, 2)
    assert "mismatched" in changed.to_json_dict()["because"]
    assert note(shop, again) == []
    assert keys(folder) == KEYS  # nothing is taken away: a reader decides
    assert (point(shop).revoked, point(shop).complete_through) == ([1], None)

    change(shop, 0, by=-1)
    publish(shop, certified(shop))
    assert manifests(folder)[1]["revision"] == 3
    assert (point(shop).revoked, point(shop).complete_through) == ([], 1)
    assert list(notices(folder)) == [name]  # of the first revision, for who is in the middle of it


def test_revision_that_is_certified_again_has_no_notice(shop: ReconciledShop) -> None:
    """As when accepted findings are opened again, and accepted again."""
    folder = publishing(shop, has_ledger=False)
    sold(shop)
    context = certified(shop)
    publish(shop, context)
    shop.journal_sql("update makewhole.window set state = 'gaps', reason = 'open again'")
    revoke(shop, context)
    [changed] = note(shop, context)
    assert changed.revocation is not None
    assert len(notices(folder)) == 1
    with connect(shop.journal) as journal:
        key = signing_key_from_environment()
        closed = certify_again(
            journal, context.pipeline, context.window, Storage.from_environment(), key, "accepted again"
        )
    assert closed.certificate is not None
    [changed] = note(shop, context)
    assert (changed.revocation, notices(folder), point(shop).revoked) == (None, {}, [])
    revoke(shop, context)
    note(shop, context)
    assert list(notices(folder)) == ["window=00000001.revision=0001.by=000004.json"]


def revoke(shop: ReconciledShop, context: WindowContext) -> None:
    """Revoke what stands of a window."""
    from makewhole.model.window import WindowState
    from makewhole.window.certifying.certificate_chain import ChainWriter

    with connect(shop.journal) as journal:
        chain = ChainWriter(journal=journal, storage=Storage.from_environment(), key=signing_key_from_environment())
        chain.begin("shop")
        revoked = chain.revoke(context.window, WindowState.GAPS, "open again")
        journal.commit()
        chain.publish(revoked)


def test_notice_that_a_killed_task_left_out_is_written_by_the_next_window(shop: ReconciledShop) -> None:
    folder = publishing(shop, has_ledger=False)
    sold(shop)
    publish(shop, certified(shop))
    again = judged_with_gaps(shop)
    with killed("makewhole.publishing.revocations.require_own", is_after=True):
        note(shop, again)
    assert notices(folder) == {}
    sold(shop, day=1)
    second = certified(shop, day=1)
    publish(shop, second)
    assert notices(folder) == {}  # a run that publishes has no event of it
    assert [changed.window for changed in note(shop, second)] == [1]
    assert list(notices(folder)) == ["window=00000001.revision=0001.by=000002.json"]
    assert (point(shop).revoked, point(shop).complete_through) == ([1], None)
    with connect(shop.journal) as journal:
        event = report_published(journal, second.pipeline, second.window, "dag/run")["orders"]
    assert (event["records"], event["complete_through"], event["revoked"]) == (_ORDERS, None, [1])


def test_a_later_window_that_is_revoked_ends_what_is_complete(shop: ReconciledShop) -> None:
    publishing(shop, has_ledger=False)
    for day in range(2):
        sold(shop, day)
        publish(shop, certified(shop, day))
    assert point(shop).complete_through == 2
    note(shop, judged_with_gaps(shop, 1))
    assert (point(shop).revoked, point(shop).complete_through) == ([2], 1)


def test_notices_are_not_written_into_a_folder_of_another_owner(shop: ReconciledShop) -> None:
    folder = publishing(shop, has_ledger=False)
    sold(shop)
    publish(shop, certified(shop))
    again = judged_with_gaps(shop)
    (folder / "owner.json").write_text('{"publication": "another"}')
    with pytest.raises(RefusedError, match=r"owner\.json says that something else is published there"):
        note(shop, again)
    assert notices(folder) == {}
    elsewhere = shop.folder / "elsewhere"
    shop.format = {"publish": f"{{path: {elsewhere}}}"}
    shop.describe(is_observing=True, has_ledger=False)
    assert note(shop, shop.open()) == []  # the file does not name the folder any more
    assert notices(folder) == {}


def test_list_of_what_is_published_says_what_is_revoked(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publishing(shop, has_ledger=False)
    sold(shop)
    publish(shop, certified(shop))
    judged_with_gaps(shop)
    list_published("shop", json=True)
    listed = json.loads(capsys.readouterr().out)
    assert (listed["revoked_by"], listed["complete_through"], listed["newest_revision"]) == (2, None, 2)
    list_published("shop")
    text = " ".join(capsys.readouterr().out.split())
    assert "revoked by entry 2:" in text
    assert "the first window is not proven any more" in text
