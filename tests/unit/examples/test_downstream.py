"""Test the example of a consumer: it computes what is proven, again where that was revoked, and nothing otherwise."""

from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from examples.downstream.delays_of_proven_days import CERTIFIED, REVOKED, interval_to_compute
from makewhole.orchestration.task_ids import certified_asset, revoked_asset

pytestmark = pytest.mark.unit

FIRST, SECOND, THIRD, FOURTH = (f"2013-01-0{day}T05:00:00+00:00" for day in (1, 2, 3, 4))


def proven(until: str | None, head: int) -> dict[str, Any]:
    return {"verified_until": until, "head": head}


def revoked(until: str | None, head: int, since: str | None) -> dict[str, Any]:
    return {**proven(until, head), "since": since}


def done(until: str, head: int) -> dict[str, Any]:
    return {"start": None, "until": until, "head": head}


def test_assets_are_those_of_the_pipeline() -> None:
    assert [(asset.name, asset.uri) for asset in (CERTIFIED, REVOKED)] == [
        certified_asset("flights"),
        revoked_asset("flights"),
    ]


@pytest.mark.parametrize(
    ("certified", "revocations", "computed", "start", "until"),
    [
        pytest.param(proven(SECOND, 1), [], None, None, SECOND, id="first"),
        pytest.param(proven(THIRD, 2), [], done(SECOND, 1), SECOND, THIRD, id="goes-on"),
        pytest.param(proven(FOURTH, 5), [revoked(FIRST, 3, FIRST)], done(THIRD, 2), FIRST, FOURTH, id="again"),
        pytest.param(proven(THIRD, 4), [revoked(FIRST, 3, FIRST)], done(THIRD, 2), FIRST, THIRD, id="again-alone"),
        pytest.param(proven(THIRD, 4), [revoked(None, 3, None)], done(THIRD, 2), None, THIRD, id="from-the-beginning"),
        pytest.param(proven(FOURTH, 5), [revoked(FIRST, 3, FIRST)], done(THIRD, 4), THIRD, FOURTH, id="done-since"),
        pytest.param(proven(THIRD, 2), [revoked(SECOND, 3, SECOND)], None, None, SECOND, id="revoked-before-the-first"),
    ],
)
def test_what_is_proven_and_not_computed_as_it_is_now_is_computed(
    certified: dict[str, Any],
    revocations: list[dict[str, Any]],
    computed: dict[str, Any] | None,
    start: str,
    until: str,
) -> None:
    chosen = interval_to_compute(certified, revocations, computed)
    head = max(event["head"] for event in (certified, *revocations))
    assert chosen == {"start": start, "until": until, "head": head}


def test_it_is_red_while_what_it_computed_is_not_proven() -> None:
    with pytest.raises(
        AirflowFailException, match=r"computed until 2013-01-03 .*, and flights is proven until 2013-01-02"
    ):
        interval_to_compute(proven(THIRD, 2), [revoked(SECOND, 3, SECOND)], done(THIRD, 2))
    with pytest.raises(AirflowFailException, match="first window of flights is not certified"):
        interval_to_compute(proven(None, 4), [revoked(SECOND, 3, SECOND)], done(THIRD, 2))


def test_it_is_skipped_where_nothing_is_new() -> None:
    with pytest.raises(AirflowSkipException, match="delays are computed until 2013-01-03"):
        interval_to_compute(proven(THIRD, 4), [revoked(FIRST, 3, FIRST)], done(THIRD, 4))
