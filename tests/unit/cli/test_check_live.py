"""Test what `check --live` makes of an Airflow elsewhere: what this machine cannot see there is not asked, and not
missing.

Airflow is played by a server on this machine; real ones are asked in tests/e2e and tests/integration/stack.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.unit.cli.played_airflow import CUT_OFF, Answer, PlayedAirflow
from tests.world.unconfigured import ORDERS_FILE

pytestmark = pytest.mark.unit

NONE = Answer(404, {"detail": "not found"})
REFUSED = Answer(403, {"detail": "Forbidden"})


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played_airflow: PlayedAirflow) -> Path:
    """A good file whose connections are not here, and an Airflow elsewhere."""
    for name in ("SIGNING_KEY", "CONNECTIONS", "AIRFLOW_TOKEN"):
        monkeypatch.delenv(f"MAKEWHOLE_{name}", raising=False)
    for name in ("SHOP", "KAFKA_MAIN", "SPARK_DEFAULT"):
        monkeypatch.delenv(f"AIRFLOW_CONN_{name}", raising=False)
    monkeypatch.setenv("MAKEWHOLE_AIRFLOW_URL", played_airflow.url)
    played_airflow.answers["/"] = REFUSED
    written = tmp_path / "orders.yaml"
    written.write_text(ORDERS_FILE)
    return written


@pytest.fixture
def checked(invoke: Callable[..., Result], file: Path) -> Callable[[], dict[str, Any]]:
    def check() -> dict[str, Any]:
        result = invoke("check", "--live", str(file), "--json")
        assert result.exit_code == 2, result.stderr  # journal and storage are not here
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    return check


def missing(document: dict[str, Any]) -> set[str]:
    """Return the connections and keys that are called missing."""
    of_connections = ("AIRFLOW_CONN_", "MAKEWHOLE_SIGNING_KEY", "spark_default")
    return {problem["path"] for problem in document["problems"] if problem["path"].startswith(of_connections)}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (REFUSED, "not here, and Airflow does not say whether it has it (HTTP 403)"),
        (Answer(500, {"detail": "broken"}), "not here, and Airflow does not say whether it has it (HTTP 500)"),
        (
            NONE,
            "not here, and Airflow's database has it not; a secrets backend, or AIRFLOW_CONN_{} of its workers, may",
        ),
    ],
    ids=["forbidden", "broken", "another backend"],
)
def test_a_connection_that_may_be_elsewhere_is_not_missing(
    played_airflow: PlayedAirflow, checked: Callable[[], dict[str, Any]], answer: Answer, why: str
) -> None:
    played_airflow.answers["/connections/"] = answer
    document = checked()
    assert missing(document) == set()
    assert {
        f"connection shop: {why.format('SHOP')}",
        f"connection kafka_main: {why.format('KAFKA_MAIN')}",
        f"connection spark_default: {why.format('SPARK_DEFAULT')}",
        "signing key, as the password of connection makewhole_signing: " + why.format("MAKEWHOLE_SIGNING"),
    } <= {*document["not_asked"]}


def test_a_connection_that_airflow_shows_is_elsewhere(
    played_airflow: PlayedAirflow, checked: Callable[[], dict[str, Any]]
) -> None:
    played_airflow.answers["/connections/"] = Answer(200, {"conn_type": "spark", "host": "no-master"})
    document = checked()
    assert missing(document) == {"spark_default"}
    assert "connection shop: Airflow has it, and this machine does not" in document["not_asked"]


def test_what_this_user_may_not_see_is_not_away(
    played_airflow: PlayedAirflow, checked: Callable[[], dict[str, Any]]
) -> None:
    played_airflow.answers["/connections/"] = NONE
    document = checked()
    assert document["away"] == []
    hidden = {f"{thing}: Airflow does not show it to this user (HTTP 403)" for thing in ("pools", "DAG of orders")}
    assert hidden <= {*document["not_asked"]}
    assert "pools" not in document["asked"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(200, "<html>Log in</html>"), "answers 200 with text/html, and no JSON"),
        (Answer(302), "answers 302"),
    ],
    ids=["login page", "redirect"],
)
def test_what_is_no_airflow_is_one_line_beside_all_others(
    played_airflow: PlayedAirflow, checked: Callable[[], dict[str, Any]], answer: Answer, why: str
) -> None:
    played_airflow.answers["/"] = answer
    document = checked()
    at_airflow = [problem for problem in document["problems"] if problem["path"] == "MAKEWHOLE_AIRFLOW_URL"]
    assert [problem["found"] for problem in at_airflow] == [f"is not Airflow's API ({why})"]
    assert {"MAKEWHOLE_JOURNAL_DSN", "MAKEWHOLE_STORAGE"} <= {problem["path"] for problem in document["problems"]}


def test_an_airflow_that_goes_away_in_the_middle_leaves_the_rest_of_the_list(
    played_airflow: PlayedAirflow, checked: Callable[[], dict[str, Any]]
) -> None:
    played_airflow.answers |= {"/dags": REFUSED, "/connections/": CUT_OFF, "/pools": CUT_OFF}
    document = checked()
    assert [(problem["file"], problem["found"]) for problem in document["away"]] == [
        (
            "pools",
            f"Airflow at {played_airflow.url} does not answer; look whether its API server runs (of a local stack: "
            "`makewhole status`)",
        )
    ]
    assert "connection shop: not here, and Airflow, which may have it, cannot be asked" in document["not_asked"]
    assert {"MAKEWHOLE_JOURNAL_DSN", "MAKEWHOLE_STORAGE"} <= {problem["path"] for problem in document["problems"]}
