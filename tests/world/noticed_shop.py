"""A shop whose windows wait for people, and the channels that they are reached by."""

from datetime import UTC, datetime, timedelta
from typing import Any

from makewhole.journal import windows
from makewhole.journal.results import hop_results
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.people.notices import Channel, Notify
from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Window, WindowState
from makewhole.orchestration.notices.notify import Surroundings
from makewhole.orchestration.notices.send import send
from makewhole.sql import PgConnection
from tests.world.people import TakenPosts

NOW = datetime.now(UTC)
URL = "http://airflow.example"
MAIL = Channel(
    notifier="airflow.providers.smtp.notifications.smtp.SmtpNotifier",
    arguments={
        "from_email": "makewhole@example.org",
        "to": ["oncall@example.org"],
        "subject": "{{ makewhole.subject }}",
        "html_content": "{{ makewhole.html }}",
    },
)
HOOK = Channel(
    notifier="airflow.providers.http.notifications.HttpNotifier",
    arguments={"endpoint": "alerts", "json": {"text": "{{ makewhole.text }}", "clear": "{{ makewhole.is_all_clear }}"}},
)
SLACK = Channel(
    notifier="airflow.providers.slack.notifications.slack_webhook.SlackWebhookNotifier",
    arguments={"text": "{{ makewhole.subject }}\n{{ makewhole.text }}"},
)


def log_url(dag: str | None, run: str | None, task: str | None) -> str | None:
    return f"{URL}/dags/{dag}/runs/{run}/tasks/{task}" if dag and run and task else None


AROUND = Surroundings(send=send, connections={}, log_url=log_url, link=f"{URL}/dags/makewhole_reconcile_shop")


def shop(*channels: Channel, **more: Any) -> Pipeline:
    names = ("first", "second", "third")
    through = dict(zip(names, channels, strict=False))
    return Pipeline(name="shop", points={}, hops=(), schedule="@daily", notify=Notify(channels=through, **more))


def end_of(number: int) -> datetime:
    """Return when a window ends: as many days ago as its number counts back from a hundred."""
    return datetime(NOW.year, NOW.month, NOW.day, tzinfo=UTC) - timedelta(days=100 - number)


def opened(journal: PgConnection, number: int, state: WindowState, **more: Any) -> Window:
    """Write a window of a day."""
    end = end_of(number)
    window = Window(
        pipeline=more.get("pipeline", "shop"),
        number=number,
        revision=more.get("revision", 1),
        start=more.get("start", end - timedelta(days=1)),
        end=end,
        opened_at=end,
        ranges={},
    )
    windows.insert(journal, window, request=f"{number} {window.revision}", plan_only=False, configuration={})
    if state is not WindowState.OPEN:
        windows.close(journal, window, state, more.get("reason"))
    return window


def gaps(journal: PgConnection, number: int, missing: int = 3, **more: Any) -> Window:
    window = opened(journal, number, WindowState.GAPS, reason=f"{missing} keys missing", **more)
    commit_gaps(journal, window, missing)
    return window


def commit_gaps(journal: PgConnection, window: Window, missing: int) -> None:
    counts = HopCounts(source_keys=9, matched=9 - missing, missing=missing)
    result = HopResult(hop="outbox→orders", counts=counts, digest="0")
    hop_results.commit_results(journal, window, hop_results.RECONCILED, [result])


def certified(journal: PgConnection, number: int, revision: int) -> None:
    opened(journal, number, WindowState.CERTIFIED, revision=revision)


def texts(taken: TakenPosts) -> list[str]:
    return [str(post["text"]) for _, post in taken.posts]
