"""Test that what older windows leave open stays in sight while newer windows are certified."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.journal.database import connect
from makewhole.model.window import WindowState
from makewhole.orchestration.steps.certifying import run_result
from makewhole.sql import load_queries
from tests.world.certified import BEGINNING, CertifiedPipeline

pytestmark = pytest.mark.integration

NOTHING = {"windows": 0, "findings": 0, "first_window": None, "since": None}
SECOND_DAY = "2013-01-02T00:00:00+00:00"


@pytest.fixture
def demo(journal: str, tmp_path: Path) -> CertifiedPipeline:
    return CertifiedPipeline(journal=journal, folder=tmp_path)


def shown(demo: CertifiedPipeline, *options: str) -> str:
    """Run `makewhole windows demo`."""
    environment = {"MAKEWHOLE_JOURNAL_DSN": demo.journal, "MAKEWHOLE_STORAGE": str(demo.folder), "COLUMNS": "250"}
    result = CliRunner().invoke(app, ["windows", "demo", *options], env=environment, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def documents(demo: CertifiedPipeline) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shown(demo, "--json").splitlines()]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a query's plan."""
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes(below)


def test_a_certificate_says_how_many_older_windows_and_findings_are_open_and_since_when(
    demo: CertifiedPipeline,
) -> None:
    first = demo.close(1)
    demo.close(2, missing=2)
    demo.close(3, missing=3)

    fourth = demo.close(4)

    assert first.certificate is not None and fourth.certificate is not None
    assert first.certificate.body["older_open"] == NOTHING
    left = {"windows": 2, "findings": 5, "first_window": 2, "since": SECOND_DAY}
    assert fourth.certificate.body["older_open"] == left
    assert fourth.older_open is not None
    assert vars(fourth.older_open) == left | {"since": BEGINNING.replace(day=2)}
    assert [document["older_open"]["windows"] for document in documents(demo)] == [0, 0, 1, 2]
    assert documents(demo)[3]["older_open"] == left
    assert documents(demo)[3]["certificate"]["older_open"] == left
    assert run_result(fourth, fourth.certificate) == {
        "digest": fourth.certificate.digest,
        "certificate": fourth.certificate.uri,
        "handed_over": 0,
        "reach": "ledger",
        "cannot_exclude": ["not_in_ledger"],
        "accepted": 0,
        "older_open": {"windows": 2, "findings": 5},
    }
    assert demo.verify().problems == []


def test_older_windows_are_reported_to_people_below_the_newest(demo: CertifiedPipeline) -> None:
    demo.close(1, missing=1)
    demo.close(2)

    message = "2 older"
    assert message not in shown(demo)
    assert "1 older window is open, since 2013-01-01 00:00 UTC (window 1): 1 finding" in shown(demo)
    assert "older" not in shown(demo, "--window", "1")


def test_a_window_that_is_certified_later_is_open_no_more(demo: CertifiedPipeline) -> None:
    demo.close(1, missing=4)
    demo.close(2)
    assert documents(demo)[1]["older_open"]["findings"] == 4

    demo.close(1, 2)

    assert documents(demo)[1]["older_open"] == NOTHING
    assert documents(demo)[1]["certificate"]["older_open"]["findings"] == 4  # as it was when it was issued


def test_a_revision_that_is_on_its_way_opens_no_window_whose_certificate_stands(demo: CertifiedPipeline) -> None:
    demo.close(1)
    demo.close(2)
    demo.judge(1, 2)
    assert documents(demo)[1]["older_open"] == NOTHING

    demo.close(1, 3, missing=1)

    assert documents(demo)[1]["older_open"] == {
        "windows": 1,
        "findings": 1,
        "first_window": 1,
        "since": BEGINNING.isoformat(),
    }


def test_a_window_from_the_beginning_of_time_is_open_since_then(demo: CertifiedPipeline) -> None:
    demo.close(1, missing=1)
    demo.close(2, missing=1)
    demo.sql("update makewhole.window set start_time = null where number = 1")
    demo.close(3)

    assert documents(demo)[2]["older_open"] == {"windows": 2, "findings": 2, "first_window": 1, "since": None}
    assert "2 older windows are open, since the beginning (window 1): 2 findings" in shown(demo)


def test_a_window_that_is_not_known_without_a_gap_is_open_all_the_same(demo: CertifiedPipeline) -> None:
    demo.close(1)
    demo.judge(2)
    demo.sql("update makewhole.window set state = 'not_known' where number = 2")
    demo.sql(
        """update makewhole.hop_result set counts = counts || '{"undecidable": 3, "matched": 2}' where number = 2"""
    )

    closed = demo.close(3)

    assert closed.state is WindowState.CERTIFIED
    assert documents(demo)[2]["older_open"] == {
        "windows": 1,
        "findings": 3,
        "first_window": 2,
        "since": SECOND_DAY,
    }


def test_a_year_of_certified_windows_is_not_read_for_it(demo: CertifiedPipeline) -> None:
    demo.judge(1, missing=1)
    demo.sql(
        "insert into makewhole.window (pipeline, number, revision, start_time, end_time, state, request, configuration)"
        " select 'demo', n, 1, now() - interval '2 days' , now(), 'certified', n::text, '{}'"
        " from generate_series(2, 20000) as n"
    )
    demo.sql("analyze makewhole.window")
    scope = {"pipeline": "demo", "number": 20_000, "verdicts": ["missing"]}
    with connect(demo.journal) as journal, journal.cursor() as cursor:
        cursor.execute(load_queries("window")["older_open"], scope)
        assert cursor.fetchall() == [(1, 1, 1, BEGINNING)]
        cursor.execute("explain (analyze, format json) " + load_queries("window")["older_open"], scope)
        plan = list(nodes(cursor.fetchall()[0][0][0]["Plan"]))

    of_windows = [node for node in plan if node.get("Relation Name") == "window"]
    assert [(node["Node Type"], node["Index Name"]) for node in of_windows] == [("Index Scan", "open_window")]
