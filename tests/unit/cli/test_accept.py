"""Test `makewhole accept`: what is wrong usage, who is turned away, what is listed, and which code it ends with."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from typer.testing import Result

from makewhole.cli import accept
from makewhole.cli.airflow_api import Access, AirflowRefusedError
from makewhole.cli.documents import acceptance_document
from makewhole.compensation.acceptance.choose import Chosen
from makewhole.journal import acceptances
from makewhole.model.acceptance import Acceptance, AcceptanceState, Selection, finding_id
from makewhole.model.errors import PermanentError
from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.model.window import Window

pytestmark = pytest.mark.unit

AT = datetime(2026, 3, 7, 2, 0, tzinfo=UTC)
WORD = Acceptance(
    id="0123456789ab",
    pipeline="shop",
    window=3,
    revision=2,
    sha256="f" * 64,
    reason="the \x1b[31mloader is gone",
    until=AT,
    findings=2,
    asked_by="anna",
    asked_at=AT,
    state=AcceptanceState.STANDING,
    decided_by="ben",
    decided_at=AT,
    has_expired=True,
)


@pytest.fixture(autouse=True)
def journal(monkeypatch: pytest.MonkeyPatch, invoke: Callable[..., Result]) -> None:
    """A journal that holds one acceptance, whose time is over."""
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", "postgresql://nowhere/x")
    monkeypatch.setattr(accept, "connect", lambda: nullcontext(object()))
    monkeypatch.setattr(acceptances, "of_pipeline", lambda *_: [WORD])
    monkeypatch.setattr(acceptances, "get", lambda *_: WORD)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name the pipeline"),
        (("shop", "--window", "3", "--reason", "x"), "name what is accepted in one way"),
        (("shop", "--window", "3", "--all", "--cause", "value_differs"), "name what is accepted in one way"),
        (("shop", "--window", "3", "--all", "--finding", "a"), "name what is accepted in one way"),
        (("shop", "--all", "--reason", "x"), "name the window of the findings"),
        (("shop", "--approve", "a", "--reject", "b"), "stand alone"),
        (("shop", "--revoke", "a", "--all"), "stand alone"),
        (("shop", "--window", "3", "--cause", "nothing"), "'nothing' is not one of"),
        (("--revoke", "a"), "a revocation needs a reason"),
        (("--approve", "a"), "is standing and waits for no answer"),
    ],
)
def test_wrong_usage_says_what_to_write(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.setattr(accept, "access", lambda: Access(url="http://nowhere", user="anna", password=""))
    monkeypatch.setenv("COLUMNS", "300")
    result = invoke("accept", *words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_form_names_findings_by_ids_and_never_by_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow keeps the form, and no erasure reaches it."""
    window = Window(pipeline="shop", number=3, revision=1, start=None, end=AT, opened_at=AT, ranges={})
    known = [
        Finding(hop=hop, key="anna", key_hash="f" * 32, verdict=Verdict.MISSING, cause=Cause.NEVER_PRODUCED)
        for hop in ("a→b", "b→c")
    ]
    monkeypatch.setattr(accept, "access", lambda: Access(url="http://nowhere", user="anna", password=""))
    monkeypatch.setattr(accept, "find_pipeline", lambda name: Pipeline(name=name, points={}, hops=()))
    monkeypatch.setattr(accept, "check_request", lambda *_: Chosen(window=window, findings=known))

    named = accept._form("shop", 3, Selection(names=("anna",)), "x", None)
    by_cause = accept._form("shop", 3, Selection(cause=Cause.NEVER_PRODUCED), "x", None)

    assert named["findings"] == sorted(finding_id(finding.hop, finding.key_hash) for finding in known)
    assert (by_cause["findings"], by_cause["cause"]) == ([], "never_produced")


def test_what_was_accepted_is_listed_with_what_became_of_it(invoke: Callable[..., Result]) -> None:
    listed = invoke("accept", "shop").stdout
    assert " ".join(listed.splitlines()[1].split()) == (
        "0123456789ab 3 2 expired anna ben 2026-03-07 02:00 the \\x1b[31mloader is gone"
    )
    (document,) = [json.loads(line) for line in invoke("accept", "shop", "--json").stdout.splitlines()]
    assert document == {
        "id": "0123456789ab",
        "pipeline": "shop",
        "window": 3,
        "revision": 2,
        "sha256": "f" * 64,
        "reason": WORD.reason,
        "until": AT.isoformat(),
        "findings": 2,
        "asked_by": "anna",
        "asked_at": AT.isoformat(),
        "state": "expired",
        "decided_by": "ben",
        "decided_at": AT.isoformat(),
        "revoked_by": None,
        "revoked_at": None,
        "revoked_because": None,
    }


def test_who_may_only_look_is_turned_away_by_name() -> None:
    class Forbidding:
        def trigger(self, *_: object) -> str:
            raise AirflowRefusedError("Airflow answered 403", 403)

    with pytest.raises(PermanentError, match="viewer may not accept anything: Airflow does not let them start"):
        accept._trigger(Forbidding(), Access(url="", user="viewer", password=""), "makewhole_accept", {})


@pytest.mark.parametrize(
    ("state", "window", "is_revocation", "code"),
    [
        (AcceptanceState.STANDING, "certified", False, 0),
        (AcceptanceState.STANDING, "gaps", False, 1),
        (AcceptanceState.STANDING, "not_known", False, 3),
        (AcceptanceState.REJECTED, "gaps", False, 1),
        (AcceptanceState.REVOKED, "gaps", True, 1),
        (AcceptanceState.REVOKED, "certified", True, 0),
        (AcceptanceState.STANDING, "certified", True, 4),
        (None, "certified", False, 4),
    ],
)
def test_the_code_is_that_of_the_window_unless_nothing_was_accepted(
    state: AcceptanceState | None, window: str, is_revocation: bool, code: int
) -> None:
    word: dict[str, Any] | None = None
    if state is not None:
        word = acceptance_document(replace(WORD, state=state, has_expired=False))
    assert accept._exit_of({"acceptance": word, "window": {"state": window}}, is_revocation=is_revocation) == code


def test_a_run_that_was_followed_ends_with_the_code_of_its_window(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Started:
        def wait_for_dag(self, dag: str) -> None:
            assert dag == "makewhole_accept"

        def get(self, path: str) -> dict[str, Any]:
            assert path == "/dags/makewhole_accept"
            return {"is_paused": False}

        def trigger(self, _: str, form: dict[str, Any]) -> str:
            assert (form["revoke"], form["reason"]) == ("0123456789ab", "a mistake")
            return "run"

    word = acceptance_document(replace(WORD, state=AcceptanceState.REVOKED, has_expired=False))
    monkeypatch.setattr(accept, "access", lambda: Access(url="http://nowhere", user="anna", password=""))
    monkeypatch.setattr(accept, "airflow", lambda _: nullcontext(Started()))
    monkeypatch.setattr(accept, "follow", lambda *_: None)
    monkeypatch.setattr(accept, "find_pipeline", lambda name: Pipeline(name=name, points={}, hops=()))
    monkeypatch.setattr(accept, "_document", lambda *_: {"acceptance": word, "window": {"state": "gaps"}})
    monkeypatch.setattr(acceptances, "get", lambda *_: replace(WORD, has_expired=False))

    result = invoke("accept", "--revoke", "0123456789ab", "--reason", "a mistake", "--json")

    assert (result.exit_code, "Traceback" in result.stderr) == (1, False)
    assert json.loads(result.stdout)["acceptance"]["state"] == "revoked"
    assert invoke("accept", "--revoke", "0123456789ab", "--reason", "a mistake", "--no-follow").exit_code == 0
