"""Test that every answer of what should be Airflow ends a command with a message: pages, redirects, cut connections."""

from collections.abc import Callable

import pytest
from typer.testing import Result

from makewhole.cli.airflow_api import Access, AirflowRefusedError, airflow
from makewhole.model.errors import ConfigurationError, TransientError
from tests.unit.cli.played_airflow import CUT_OFF, Answer, PlayedAirflow

pytestmark = pytest.mark.unit

PAGE = "<html>Log in</html>"
REMEDY = "Set it to the address at which Airflow's own pages open, without /api/v2, and past any other login page"


def access_to(url: str) -> Access:
    return Access(url=url, user="anna", password="secret")


@pytest.mark.parametrize("path", ["/auth/token", "/dags"])
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(200, PAGE), "answers 200 with text/html, and no JSON"),
        (Answer(302, PAGE), "answers 302 with a page"),
        (Answer(404, PAGE), "answers 404 with a page"),
    ],
    ids=["page", "redirect", "not found"],
)
def test_what_is_no_airflow_is_a_wrong_address(
    played_airflow: PlayedAirflow, path: str, answer: Answer, why: str
) -> None:
    played_airflow.answers[path] = answer
    with pytest.raises(ConfigurationError) as raised, airflow(access_to(played_airflow.url)) as api:
        api.get("/dags")
    assert str(raised.value) == f"environment: MAKEWHOLE_AIRFLOW_URL: is not Airflow's API ({why}). {REMEDY}"


@pytest.mark.parametrize(
    ("path", "document", "why"),
    [
        ("/auth/token", {"status": "ok"}, "answers without 'access_token'"),
        ("/dags", {"status": "ok"}, "answers without 'dags'"),
        ("/dags", {"dags": [{"id": 1}]}, "answers without 'dag_id'"),
        ("/dags", ["ok"], "answers 200 with another JSON than an object"),
    ],
)
def test_the_json_of_another_server_is_none_of_airflow(
    played_airflow: PlayedAirflow, path: str, document: object, why: str
) -> None:
    played_airflow.answers[path] = Answer(200, document)
    with pytest.raises(ConfigurationError) as raised, airflow(access_to(played_airflow.url)) as api:
        assert api.get("/dags")["dags"][0]["dag_id"]
    assert str(raised.value) == f"environment: MAKEWHOLE_AIRFLOW_URL: is not Airflow's API ({why}). {REMEDY}"


@pytest.mark.parametrize("url", ["", "airflow.example:8080", "http://", "http://[::1", "http://airflow.example:port"])
def test_what_is_no_address_is_a_wrong_address(url: str) -> None:
    with (
        pytest.raises(
            ConfigurationError, match=r"^environment: MAKEWHOLE_AIRFLOW_URL: is not Airflow's API \(does not"
        ),
        airflow(access_to(url)),
    ):
        pass


def test_an_answer_that_is_cut_off_is_an_absence(played_airflow: PlayedAirflow) -> None:
    played_airflow.answers["/dags"] = CUT_OFF
    with pytest.raises(TransientError) as raised, airflow(access_to(played_airflow.url)) as api:
        api.get("/dags")
    assert (
        str(raised.value)
        == f"Airflow at {played_airflow.url} does not answer; look whether its API server runs (of a local stack: "
        "`makewhole status`)"
    )


def test_the_page_of_a_proxy_is_not_in_the_message(played_airflow: PlayedAirflow) -> None:
    played_airflow.answers["/dags"] = Answer(503, PAGE)
    with pytest.raises(AirflowRefusedError) as raised, airflow(access_to(played_airflow.url)) as api:
        api.get("/dags")
    assert str(raised.value) == "Airflow answered 503 to GET /api/v2/dags: a page"


@pytest.mark.parametrize("lost", [CUT_OFF, Answer(504, PAGE)], ids=["cut off", "timeout of a proxy"])
def test_a_run_that_may_have_begun_is_not_asked_for_twice(played_airflow: PlayedAirflow, lost: Answer) -> None:
    played_airflow.answers["/dags/oncall/dagRuns"] = lost
    with pytest.raises(TransientError) as raised, airflow(access_to(played_airflow.url)) as api:
        api.trigger("oncall", {})
    assert str(raised.value) == (
        f"Airflow at {played_airflow.url} went away while it was asked for a run of oncall, and may have begun one: "
        f"look at {played_airflow.url}/dags/oncall before you ask again"
    )


def test_a_command_ends_with_one_line(
    invoke: Callable[..., Result], played_airflow: PlayedAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", "postgresql://x@nowhere/x")
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_URL", played_airflow.url)
    monkeypatch.delenv("MAKEWHOLE_AIRFLOW_TOKEN", raising=False)
    played_airflow.answers["/auth/token"] = Answer(200, PAGE)
    result = invoke("notify", "flights")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "could not: environment: MAKEWHOLE_AIRFLOW_URL: is not Airflow's API (answers 200 with text/html, and no "
        f"JSON). {REMEDY}\n"
    )


def test_a_run_without_an_end_leaves_it_to_the_clock_of_its_task(
    invoke: Callable[..., Result], played_airflow: PlayedAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", "postgresql://x@nowhere/x")
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_URL", played_airflow.url)
    monkeypatch.delenv("MAKEWHOLE_AIRFLOW_TOKEN", raising=False)
    form = {"params": {"pipeline": {"schema": {"enum": ["flights"]}}}}
    played_airflow.answers |= {
        "/dags": Answer(200, {"dags": []}),
        "/dags/makewhole_oncall": Answer(200, {"is_paused": False}),
        "/dags/makewhole_oncall/details": Answer(200, form),
        "/dags/makewhole_oncall/dagRuns": Answer(200, {"dag_run_id": "tonight"}),
    }
    for times in ({}, {"from": "2026-01-31T00:00:00+00:00"}, {"to": "2026-01-31T02:00:00+00:00"}):
        options = [f"--{name}={text}" for name, text in times.items()]
        assert invoke("run", "flights", "--no-follow", *options).exit_code == 0
        asked = played_airflow.sent[-1]["conf"]
        assert {name: asked[name] for name in ("from", "to")} == {"from": None, "to": None} | times
