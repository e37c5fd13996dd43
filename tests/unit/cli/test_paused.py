"""Test that no run is started which would wait behind a paused DAG without a word."""

from typing import Any

import httpx
import pytest

from makewhole.cli.airflow_api import Access, AirflowApi
from makewhole.cli.runs.paused import require_released
from makewhole.model.errors import RefusedError

pytestmark = pytest.mark.unit

WHERE = Access(url="http://airflow.example", user="anna", password="")


def asked(*, is_paused: bool, **options: Any) -> list[str]:
    """Return the methods that Airflow was asked by."""
    methods: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        methods.append(request.method)
        return httpx.Response(200, json={"is_paused": is_paused})

    with httpx.Client(base_url="http://airflow.example", transport=httpx.MockTransport(answer)) as client:
        require_released(AirflowApi(client), WHERE, "makewhole_oncall", **options)
    return methods


@pytest.mark.parametrize("release", [None, True, False])
def test_a_dag_that_is_not_paused_is_left_as_it_is(release: bool | None) -> None:
    assert asked(is_paused=False, release=release) == ["GET"]


def test_a_paused_dag_is_released_where_that_is_asked_for() -> None:
    assert asked(is_paused=True, release=True) == ["GET", "PATCH"]


@pytest.mark.parametrize(("options", "is_offered"), [({}, False), ({"release": False}, True)])
def test_a_paused_dag_is_refused_with_the_ways_to_release_it(options: dict[str, Any], is_offered: bool) -> None:
    with pytest.raises(RefusedError, match=r"makewhole_oncall is paused, .* nothing was started") as caught:
        asked(is_paused=True, **options)
    assert "`airflow dags unpause makewhole_oncall`" in str(caught.value)
    assert ("--release" in str(caught.value)) == is_offered
