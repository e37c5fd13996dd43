"""Test the exit code of a job, by which the task of Airflow knows whether to try again."""

from contextlib import nullcontext
from unittest.mock import MagicMock

import pytest

from makewhole.model.errors import RefusedError, TransientError
from makewhole_spark import job

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TransientError("away"), job.EXIT_TRANSIENT),
        (RefusedError("no"), job.EXIT_PERMANENT),
        (KeyError("column"), job.EXIT_PERMANENT),
        (TypeError("not a number"), job.EXIT_PERMANENT),
    ],
)
def test_a_job_is_tried_again_only_when_that_may_help(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    journal = MagicMock()
    monkeypatch.setattr(job, "connect", lambda: nullcontext(journal))
    for name in ("windows", "window_context", "session"):
        monkeypatch.setattr(job, name, MagicMock())
    monkeypatch.setattr("sys.argv", ["job", "--pipeline", "shop", "--window", "1", "--revision", "1"])

    def run(_: job.Job) -> str:
        assert journal.commit.called, "no transaction is open while the job works"
        raise error

    with pytest.raises(SystemExit) as ended:
        job.main("a job", run)
    assert ended.value.code == code
