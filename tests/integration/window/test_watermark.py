"""Test how far a pipeline is proven, and the event of its revocations, on certificates in a real journal."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import AssetAlias
from airflow.sdk.exceptions import AirflowSkipException

from makewhole.journal import certificates
from makewhole.journal.certificates import Watermark
from makewhole.journal.database import connect
from makewhole.orchestration.steps import watermark
from makewhole.orchestration.steps.asset_events import asset_of
from makewhole.orchestration.task_ids import REVOKED_ALIAS, certified_asset, revoked_asset
from tests.world.certified import BEGINNING, CertifiedPipeline

pytestmark = pytest.mark.integration

REVOKED = asset_of(revoked_asset("demo"))
SECOND, THIRD, FOURTH = (f"2013-01-0{day}T00:00:00+00:00" for day in (2, 3, 4))


@pytest.fixture
def demo(journal: str, tmp_path: Path) -> CertifiedPipeline:
    return CertifiedPipeline(journal=journal, folder=tmp_path)


def mark(demo: CertifiedPipeline) -> Watermark | None:
    with connect(demo.journal) as journal:
        return certificates.watermark(journal, "demo")


def far(demo: CertifiedPipeline) -> tuple[int | None, str | None]:
    newest = mark(demo)
    return (None, None) if newest is None else (newest.window, newest.until.isoformat() if newest.until else None)


class Events(dict[Any, Any]):
    """The events of assets as a task gets and gives them: what it puts in is the newest event of its asset."""

    def __missing__(self, asset: Any) -> Any:
        self[asset] = SimpleNamespace(extra=None, added=[])
        self[asset].add = lambda event, extra: self[asset].added.append((event, extra))
        return self[asset]


class Reported(list[Any]):
    """The events of an asset, oldest first, as Airflow shows them to a task."""

    def ascending(self, ascending: bool) -> "Reported":
        return Reported(self if ascending else self[::-1])

    def limit(self, most: int) -> "Reported":
        return Reported(self[:most])


def reported(
    monkeypatch: pytest.MonkeyPatch, events: Reported, demo: CertifiedPipeline, **run: Any
) -> Mapping[str, Any]:
    """Run the task, and note its event as Airflow does; return what the event says."""
    outlets = Events()
    context = {
        "ti": SimpleNamespace(xcom_pull=lambda **_: None, dag_id=run.get("dag", "makewhole_reconcile_demo")),
        "params": run.get("params", {}),
        "inlet_events": {REVOKED: events},
        "outlet_events": outlets,
    }
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", demo.journal)
    monkeypatch.setattr(watermark, "get_current_context", lambda: context)
    watermark.report(has_certificates=False)
    extra: Mapping[str, Any] = outlets[REVOKED].extra
    assert outlets[AssetAlias(name=REVOKED_ALIAS)].added == [(REVOKED, extra)]
    events.append(SimpleNamespace(extra=extra))
    return extra


def test_every_window_up_to_the_watermark_is_certified(demo: CertifiedPipeline) -> None:
    assert mark(demo) is None
    demo.close(1)
    assert far(demo) == (1, SECOND)
    demo.close(2, missing=2)
    demo.close(3)
    assert far(demo) == (1, SECOND)
    demo.close(2, 2)
    assert far(demo) == (3, FOURTH)


def test_first_window_with_gaps_leaves_nothing_proven(demo: CertifiedPipeline) -> None:
    demo.close(1, missing=1)
    demo.close(2)
    assert far(demo) == (None, None)


def test_window_that_is_judged_again_stays_proven_until_it_is_revoked(demo: CertifiedPipeline) -> None:
    demo.close(1)
    demo.close(2)
    again = demo.judge(1, 2, missing=1)
    assert far(demo) == (2, THIRD)  # the certificate of the first revision stands
    demo.certify(again)
    assert far(demo) == (None, None)
    assert (newest := mark(demo)) is not None
    assert (newest.head, newest.sha256) == (3, demo.entries()[-1].sha256)


def test_certificate_takes_window_interval_counts_and_watermark_to_its_asset(
    demo: CertifiedPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", demo.journal)
    demo.close(1)
    demo.close(2, missing=1)
    third = demo.close(3).certificate
    assert third is not None
    outlets = Events()
    watermark.announce(outlets, "demo", third)
    extra = outlets[asset_of(certified_asset("demo"))].extra
    assert extra == {
        "pipeline": "demo",
        "window": 3,
        "revision": 1,
        "start": THIRD,
        "end": FOURTH,
        "keys": {"a→b": 5},
        "handed_over": 0,
        "accepted": 0,
        "ordinal": 2,
        "sha256": third.sha256,
        "signed_by": third.signed_by,
        "signature": third.signature,
        "uri": third.uri,
        "head": 2,
        "verified_window": 1,
        "verified_until": SECOND,
    }


def test_each_revocation_is_reported_once_and_takes_the_watermark_back(
    demo: CertifiedPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = Reported()
    for number in (1, 2, 3):
        demo.close(number)
    with pytest.raises(AirflowSkipException, match="no certificate of demo was revoked since entry 0 of its chain"):
        reported(monkeypatch, events, demo)
    demo.close(3, 2, missing=1)
    demo.close(2, 2, missing=1)

    extra = reported(monkeypatch, events, demo)

    assert [
        (revocation["window"], revocation["revision"], revocation["revokes"], revocation["ordinal"])
        for revocation in extra["revoked"]
    ] == [
        (3, 1, 3, 4),
        (2, 1, 2, 5),
    ]
    assert (extra["since"], extra["verified_window"], extra["verified_until"]) == (SECOND, 1, SECOND)
    assert (extra["ordinal"], extra["head"], extra["left_out"]) == (5, 5, 0)
    assert extra["revoked"][0]["because"] == {"revision": 2, "state": "gaps", "reason": extra_reason(demo, 4)}
    with pytest.raises(AirflowSkipException, match="since entry 5 of its chain"):
        reported(monkeypatch, events, demo)
    demo.close(1, 2, missing=1)
    assert [revocation["window"] for revocation in reported(monkeypatch, events, demo)["revoked"]] == [1]
    assert events[-1].extra["since"] == BEGINNING.isoformat()


def extra_reason(demo: CertifiedPipeline, ordinal: int) -> str:
    reason: str = demo.entries()[ordinal - 1].body["because"]["reason"]
    return reason


def test_pipeline_is_that_of_the_form_where_the_dag_serves_several(
    demo: CertifiedPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo.close(1)
    demo.close(1, 2, missing=1)
    extra = reported(monkeypatch, Reported(), demo, dag="makewhole_accept", params={"pipeline": "demo"})
    assert extra["verified_until"] is None
    with pytest.raises(AirflowSkipException, match="the run names no pipeline"):
        reported(monkeypatch, Reported(), demo, dag="nightly", params={})


def test_event_describes_the_newest_revocations_and_says_how_many_it_leaves_out(
    demo: CertifiedPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watermark, "_MOST", 1)
    demo.close(1)
    demo.close(2)
    demo.close(1, 2, missing=1)
    demo.close(2, 2, missing=1)
    extra = reported(monkeypatch, Reported(), demo)
    assert ([revocation["window"] for revocation in extra["revoked"]], extra["left_out"]) == ([2], 1)
    assert extra["since"] == BEGINNING.isoformat()


def test_certificate_that_no_task_certify_issued_is_reported_once(
    demo: CertifiedPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    certified, events = asset_of(certified_asset("demo")), Reported()
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", demo.journal)

    def report() -> dict[Any, Any]:
        outlets = Events()
        run = SimpleNamespace(xcom_pull=lambda **_: None, dag_id="makewhole_accept")
        inlets = {REVOKED: Reported(), certified: events}
        context = {"ti": run, "params": {"pipeline": "demo"}, "inlet_events": inlets, "outlet_events": outlets}
        monkeypatch.setattr(watermark, "get_current_context", lambda: context)
        watermark.report(has_certificates=True)
        return outlets

    demo.close(1)
    extra = report()[certified].extra
    assert (extra["ordinal"], extra["window"], extra["verified_until"]) == (1, 1, SECOND)
    events.append(SimpleNamespace(extra=extra))
    with pytest.raises(AirflowSkipException):
        report()
    demo.close(1, 2, missing=1)
    assert set(report()) == {REVOKED, AssetAlias(name=REVOKED_ALIAS)}
