"""Test that a run waits for a pipeline that Airflow is about to read, and for none that it refuses."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from makewhole.cli.airflow_api import AirflowApi
from makewhole.cli.runs import pipeline_dags
from makewhole.cli.runs.pipeline_dags import wait_for_pipeline
from makewhole.model.errors import ConfigurationError, TransientError

pytestmark = pytest.mark.unit

TRACE = "Traceback …\nmakewhole.model.errors.ConfigurationError: bad.yaml: hops: is not set. Write hops"


@dataclass
class Airflow:
    """Answers as Airflow's API does. `after_parsing`: the pipelines that it knows once it was asked to read files."""

    names: list[str]
    after_parsing: list[str] | None = None
    errors: list[dict[str, str]] = field(default_factory=list)
    may_ask: bool = True
    asked: list[str] = field(default_factory=list)
    parsed: int = 0
    own_form: bool | None = None
    """Whether the form of `new` alone is stale; None: there is none."""
    has_dags: bool = True
    other_dags: int = 0
    processor_began: timedelta | None = None
    """How long ago; None: the user may not see it."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.startswith("/parseDagFile/"):
            if not self.may_ask:
                return httpx.Response(403, text="no")
            self.asked.append(path.rpartition("/")[2])
            self.parsed += 1
            self.names = self.names if self.after_parsing is None else self.after_parsing
            return httpx.Response(201, json={})
        if not self.has_dags:
            return self._without_dags(path)
        answers: dict[str, Any] = {
            "/dags/makewhole_oncall/details": {"params": {"pipeline": {"schema": {"enum": self.names}}}},
            "/importErrors": {"import_errors": self.errors, "total_entries": len(self.errors)},
            "/dags": {
                "dags": [
                    {"dag_id": dag, "fileloc": f"/d/{dag}.py", "file_token": dag, "last_parsed_time": str(self.parsed)}
                    for dag in ("makewhole_oncall", "makewhole_undo", "makewhole_reconcile")
                ]
                + self._own_form()
            },
        }
        if path == "/dags":
            return httpx.Response(200, json=self._page(answers[path]["dags"], int(request.url.params["offset"])))
        return httpx.Response(200, json=answers[path])

    def _page(self, dags: list[dict[str, Any]], offset: int) -> dict[str, Any]:
        """Return as many as Airflow sends at once, whatever is asked for."""
        others = [{**dags[0], "dag_id": f"makewhole_ask_p{number}"} for number in range(self.other_dags)]
        return {"dags": [*others, *dags][offset : offset + 100], "total_entries": len(others) + len(dags)}

    def _without_dags(self, path: str) -> httpx.Response:
        if path == "/jobs":
            if self.processor_began is None:
                return httpx.Response(403, text="no")
            began = (datetime.now(UTC) - self.processor_began).isoformat()
            return httpx.Response(200, json={"jobs": [{"start_date": began}]})
        answers = {
            "/dags": {"dags": [], "total_entries": 0},
            "/importErrors": {"import_errors": self.errors, "total_entries": len(self.errors)},
        }
        return httpx.Response(200, json=answers[path]) if path in answers else httpx.Response(404, text="no such DAG")

    def _own_form(self) -> list[dict[str, Any]]:
        dag = {"dag_id": "makewhole_oncall_new", "fileloc": "/d/makewhole_oncall.py", "file_token": "makewhole_oncall"}
        return [] if self.own_form is None else [{**dag, "last_parsed_time": "0", "is_stale": self.own_form}]


Wait = Callable[..., None]


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wait]:
    """Wait for the pipeline `new`, with a clock that each look moves on by a second."""
    seconds = iter(range(10_000))
    monkeypatch.setattr("makewhole.cli.runs.pipeline_dags.time.monotonic", lambda: float(next(seconds)))
    monkeypatch.setattr("makewhole.cli.runs.pipeline_dags.time.sleep", lambda _: None)
    monkeypatch.setattr(pipeline_dags, "_file_of", lambda name: f"{name}.yaml")

    def run(server: Airflow, dag: str = "makewhole_oncall") -> None:
        with httpx.Client(base_url="http://airflow.example", transport=httpx.MockTransport(server)) as client:
            wait_for_pipeline(AirflowApi(client), "new", dag)

    yield run


def error(file: str, text: str) -> dict[str, str]:
    return {"filename": f"/dags/{file}", "stack_trace": text, "timestamp": "now"}


def test_a_pipeline_with_a_form_of_its_own_is_known_by_it_alone(wait: Wait) -> None:
    wait(Airflow(names=[], own_form=False), "makewhole_oncall_new")
    for server in (Airflow(names=["new"], own_form=True), Airflow(names=["new"])):
        with pytest.raises(ConfigurationError, match=r"makewhole_oncall_new: has no pipeline new; it has none\."):
            wait(server, "makewhole_oncall_new")


def test_a_form_is_found_behind_more_dags_than_airflow_sends_at_once(wait: Wait) -> None:
    wait(Airflow(names=[], own_form=False, other_dags=250), "makewhole_oncall_new")


def test_a_pipeline_that_is_known_is_not_asked_for_again(wait: Wait) -> None:
    server = Airflow(names=["new"])
    wait(server)
    assert server.asked == []


def test_the_files_that_name_pipelines_are_read_now(wait: Wait) -> None:
    server = Airflow(names=["old"], after_parsing=["old", "new"])
    wait(server)
    assert server.asked == ["makewhole_oncall", "makewhole_reconcile"]


def test_a_dag_file_that_airflow_refuses_is_shown_and_not_waited_for(wait: Wait) -> None:
    server = Airflow(names=["old"], errors=[error("makewhole_oncall.py", TRACE)], may_ask=False)
    with pytest.raises(ConfigurationError, match=r"is refused, with this import error: .*hops: is not set") as caught:
        wait(server)
    assert "Traceback" not in str(caught.value)


def test_the_file_of_another_pipeline_that_is_wrong_stops_no_run(wait: Wait) -> None:
    other = error("makewhole_pipeline_files.py", TRACE)
    wait(Airflow(names=["old"], after_parsing=["old", "new"], errors=[other]))
    own = error("makewhole_pipeline_files.py", TRACE.replace("bad.yaml", "/airflow/new.yaml"))
    with pytest.raises(ConfigurationError, match=r"Airflow: makewhole_pipeline_files.py: is refused"):
        wait(Airflow(names=["old"], errors=[own]))


def test_a_pipeline_that_only_this_machine_has_is_not_waited_for(wait: Wait) -> None:
    server = Airflow(names=["old"], after_parsing=["old"])
    with pytest.raises(ConfigurationError, match=r"has no pipeline new; it has old\. Put the pipeline file"):
        wait(server)


def test_an_airflow_that_has_no_dag_of_makewhole_is_not_waited_for(wait: Wait) -> None:
    server = Airflow(names=[], has_dags=False, processor_began=timedelta(minutes=2))
    with pytest.raises(ConfigurationError, match=r"has none of makewhole.*MakewholeBundle"):
        wait(server)


@pytest.mark.parametrize("began", [None, timedelta(seconds=5)])
def test_an_airflow_that_may_be_about_to_read_them_is(wait: Wait, began: timedelta | None) -> None:
    with pytest.raises(TransientError, match="has not read its DAG files for 120 s"):
        wait(Airflow(names=[], has_dags=False, processor_began=began))


def test_a_dag_file_of_makewhole_that_is_refused_is_there(wait: Wait) -> None:
    refused = error("makewhole_oncall.py", TRACE)
    server = Airflow(names=[], has_dags=False, processor_began=timedelta(minutes=2), errors=[refused])
    with pytest.raises(ConfigurationError, match="is refused, with this import error"):
        wait(server)
