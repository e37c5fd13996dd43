"""Test that a command goes on following a run while Airflow's API server is started again."""

import io
from collections.abc import Callable, Iterator

import httpx
import pytest
from rich.console import Console

from makewhole.cli.airflow_api import Access, AirflowApi, AirflowRefusedError
from makewhole.cli.runs import follow as following
from makewhole.model.errors import PermanentError, TransientError

pytestmark = pytest.mark.unit

WHERE = Access(url="http://airflow.test", user="admin", password="")
AWAY = "Airflow does not answer; the run goes on without it, and this waits"


class _Clock:
    """Time that passes only while it is slept."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock()
    monkeypatch.setattr(following, "time", clock)
    return clock


def refused() -> httpx.Response:
    raise httpx.ConnectError("refused")


def of_task(state: str) -> Callable[[], httpx.Response]:
    task = {"task_id": "certify", "state": state, "start_date": "2026", "try_number": 1, "duration": 2.0}
    return lambda: httpx.Response(200, json={"task_instances": [task]})


def of_run(state: str) -> Callable[[], httpx.Response]:
    return lambda: httpx.Response(200, json={"state": state})


def cut_off() -> httpx.Response:
    raise httpx.RemoteProtocolError("Server disconnected without sending a response.")


def status(code: int) -> Callable[[], httpx.Response]:
    return lambda: httpx.Response(code, text="no")


def followed(answers: Iterator[Callable[[], httpx.Response]]) -> list[str]:
    """Follow a run at an Airflow that gives these answers in turn; return what was printed."""
    client = httpx.Client(base_url=WHERE.url, transport=httpx.MockTransport(lambda _: next(answers)()))
    out = io.StringIO()
    api = AirflowApi(client, has_token=True)
    assert following.follow(api, "dag", "run 1", Console(file=out, width=200), WHERE) == "success"
    return [line.strip() for line in out.getvalue().splitlines()]


def test_a_run_is_followed_over_a_restart_of_the_api_server() -> None:
    answers = [of_task("running"), cut_off, refused, status(503), of_task("success"), of_run("success")]
    assert followed(iter(answers)) == [AWAY, "certify: success 2.0 s"]


def test_each_absence_is_reported_once() -> None:
    answers = [refused, refused, of_task("running"), of_run("running"), refused, of_task("success"), of_run("success")]
    assert followed(iter(answers)) == [AWAY, AWAY, "certify: success 2.0 s"]


def test_a_refusal_is_no_absence() -> None:
    with pytest.raises(AirflowRefusedError, match="Airflow answered 404 to GET"):
        followed(iter([status(404)]))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (status(401), "Airflow at http://airflow.test does not take the token: it has expired, was revoked, or is "),
        (status(302), "environment: MAKEWHOLE_AIRFLOW_URL: is not Airflow's API (answers 302). Set it to"),
    ],
    ids=["token expires", "login page"],
)
def test_a_command_that_may_not_look_any_more_says_that_the_run_goes_on(
    answer: Callable[[], httpx.Response], why: str
) -> None:
    with pytest.raises(PermanentError) as raised:
        followed(iter([of_task("running"), answer]))
    assert str(raised.value).startswith(why)
    assert str(raised.value).splitlines()[-1] == (
        "Run run 1 goes on without this command: http://airflow.test/dags/dag/runs/run 1, or `makewhole windows`, says "
        "how it ended"
    )


def test_an_airflow_that_stays_away_ends_the_command_and_not_the_run(clock: _Clock) -> None:
    with pytest.raises(TransientError) as raised:
        followed(iter(lambda: refused, None))
    assert str(raised.value) == (
        "Airflow has not answered for 10 min. Run run 1 goes on without this command: "
        "http://airflow.test/dags/dag/runs/run 1, or `makewhole windows`, says how it ended"
    )
    assert 600 < clock.now < 602
