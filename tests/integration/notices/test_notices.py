"""Test what is sent to people, how often, and what happens where it cannot be sent: with Airflow's notifiers, a server
of mail, one of webhooks, and a real journal."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from makewhole.journal import certificates, notices, plans, step_failures, windows
from makewhole.journal.certificates import ChainEntry, EntryKind
from makewhole.journal.database import connect
from makewhole.journal.plans import StoredPlan
from makewhole.journal.results import hop_results
from makewhole.journal.results.hop_results import HopResult
from makewhole.journal.step_failures import StepPlace
from makewhole.model.errors import RefusedError
from makewhole.model.notices import Channel, Notify, Waits
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import Plan, PlanState
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Window, WindowState
from makewhole.orchestration.notices import notify as notifying
from makewhole.orchestration.notices.compose import Message, message_of_test
from makewhole.orchestration.notices.late import late_item
from makewhole.orchestration.notices.notify import Surroundings, notify
from makewhole.orchestration.notices.send import NotSentError, send
from makewhole.sql import PgConnection
from makewhole.stack.ports import LOOPBACK
from tests.world.people import TakenMail, TakenPosts, mail_server, webhook_server

pytestmark = pytest.mark.integration

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


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> Iterator[TakenMail]:
    with mail_server() as taken:
        connection = {
            "conn_type": "smtp",
            "host": LOOPBACK,
            "port": taken.port,
            "extra": {"disable_ssl": True, "disable_tls": True},
        }
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
        yield taken


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[TakenPosts]:
    with webhook_server() as taken:
        http = {"conn_type": "http", "host": LOOPBACK, "port": taken.port}
        monkeypatch.setenv("AIRFLOW_CONN_HTTP_DEFAULT", json.dumps(http))
        slack = {"conn_type": "slackwebhook", "host": f"http://{LOOPBACK}:{taken.port}", "password": "T0/B0/secret"}
        monkeypatch.setenv("AIRFLOW_CONN_SLACK_DEFAULT", json.dumps(slack))
        yield taken


@pytest.fixture(autouse=True)
def _own_journal(journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", journal)


def log_url(dag: str | None, run: str | None, task: str | None) -> str | None:
    return f"{URL}/dags/{dag}/runs/{run}/tasks/{task}" if dag and run and task else None


AROUND = Surroundings(send=send, connections={}, log_url=log_url, link=f"{URL}/dags/makewhole_reconcile_shop")


def shop(*channels: Channel, **more: Any) -> Pipeline:
    names = ("first", "second", "third")
    through = dict(zip(names, channels, strict=False))
    return Pipeline(name="shop", points={}, hops=(), schedule="@daily", notify=Notify(channels=through, **more))


def opened(journal: PgConnection, number: int, state: WindowState, **more: Any) -> Window:
    """Write a window of a day, whose end is as many days ago as its number counts back from a hundred."""
    end = datetime(NOW.year, NOW.month, NOW.day, tzinfo=UTC) - timedelta(days=100 - number)
    window = Window(
        pipeline=more.get("pipeline", "shop"),
        number=number,
        revision=more.get("revision", 1),
        start=end - timedelta(days=1),
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
    counts = HopCounts(source_keys=9, matched=9 - missing, missing=missing)
    result = HopResult(hop="outbox→orders", counts=counts, digest="0")
    hop_results.commit_results(journal, window, hop_results.RECONCILED, [result])
    return window


def certified(journal: PgConnection, number: int, revision: int) -> None:
    opened(journal, number, WindowState.CERTIFIED, revision=revision)


def texts(taken: TakenPosts) -> list[str]:
    return [str(post["text"]) for _, post in taken.posts]


def test_a_gap_is_sent_once_through_every_channel_with_its_command_and_interval(
    mail: TakenMail, hook: TakenPosts
) -> None:
    with connect() as journal:
        gaps(journal, 2)
        gaps(journal, 2, pipeline="another")
    pipeline = shop(MAIL, HOOK, SLACK)

    assert notify(pipeline, AROUND) == {}
    assert notify(pipeline, AROUND) == {}

    [letter] = mail.mails
    assert (letter["Subject"], letter["To"]) == (
        "[makewhole] shop: window 2 has 3 open findings: 3 keys missing",
        "oncall@example.org",
    )
    page = letter.get_body(("html",))
    assert page is not None
    assert "next: makewhole findings shop --window 2" in page.get_content()
    (alert_path, alert), (slack_path, posted) = hook.posts
    assert (alert_path, slack_path) == ("/alerts", "/T0/B0/secret")
    end = datetime(NOW.year, NOW.month, NOW.day, tzinfo=UTC) - timedelta(days=98)
    lines = alert["text"].splitlines()
    assert lines[0].startswith("- shop window 2 has 3 open findings, since 98 d ")
    assert lines[0].endswith(": 3 keys missing")
    assert lines[1:] == [
        f"   from {end - timedelta(days=1):%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC",
        "   next: makewhole findings shop --window 2",
        "",
        f"All that waits: makewhole todo; in Airflow: {URL}/dags/makewhole_reconcile_shop",
    ]
    assert posted["text"].startswith(f"{letter['Subject']}\n- shop window 2")


def test_what_says_something_else_is_sent_and_all_clear_comes_once(hook: TakenPosts) -> None:
    pipeline = shop(HOOK)
    with connect() as journal:
        gaps(journal, 2)
        gaps(journal, 3)
    notify(pipeline, AROUND)
    with connect() as journal:
        gaps(journal, 2, missing=5, revision=2)
        certified(journal, 3, revision=2)
    notify(pipeline, AROUND)
    with connect() as journal:
        certified(journal, 2, revision=3)
    notify(pipeline, AROUND)
    notify(pipeline, AROUND)

    both, changed, clear = texts(hook)

    assert both.count("\n- ") + both.startswith("- ") == 2
    assert changed.startswith("- shop window 2 has 5 open findings")
    assert "Over by now:\n- shop window 3 has 3 open findings: 3 keys missing\n" in changed
    assert clear.startswith("All clear: nothing waits for a person any more.\nOver by now:\n- shop window 2 has 5 open")
    assert [post["clear"] for _, post in hook.posts] == ["False", "False", "True"]


def test_what_ends_while_something_else_waits_is_not_sent_alone(hook: TakenPosts) -> None:
    with connect() as journal:
        gaps(journal, 2)
        gaps(journal, 3)
    notify(shop(HOOK), AROUND)
    with connect() as journal:
        certified(journal, 3, revision=2)
    notify(shop(HOOK), AROUND)
    assert len(hook.posts) == 1


def test_a_night_that_fails_for_the_same_reason_says_nothing_new(hook: TakenPosts) -> None:
    for run in ("first night", "second night"):
        with connect() as journal:
            place = StepPlace(pipeline="shop", step="open_window", dag="d", run=run)
            step_failures.put(journal, place, RefusedError("connection shop_db is not there"))
        notify(shop(HOOK), AROUND)
    [text] = texts(hook)
    assert "could open no window in run first night" in text
    assert f"   log:  {URL}/dags/d/runs/first night/tasks/open_window" in text


def test_what_still_waits_is_sent_again_after_the_time_of_the_file(
    hook: TakenPosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect() as journal:
        gaps(journal, 2)
    pipeline = shop(HOOK, remind=timedelta(hours=2))
    notify(pipeline, AROUND)
    for hours in (1, 3, 4):
        at_hours(monkeypatch, hours)
        notify(pipeline, AROUND)
    first, again = texts(hook)
    assert first.startswith("- shop window 2")
    assert again.startswith("Still waits:\n- shop window 2 has 3 open findings, since 98 d")


def at_hours(monkeypatch: pytest.MonkeyPatch, hours: float) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(hours=hours)

    monkeypatch.setattr(notifying, "datetime", Clock)


def test_a_channel_takes_the_kinds_that_it_names(hook: TakenPosts) -> None:
    with connect() as journal:
        gaps(journal, 2)
        opened(journal, 3, WindowState.ERROR, reason="snapshot broke")
    only = replace(HOOK, kinds=(Waits.ERROR,))
    notify(shop(only), AROUND)
    [text] = texts(hook)
    assert text.startswith("- shop window 3 is in error")
    assert "window 2" not in text


def test_a_channel_that_fails_keeps_no_other_from_its_message_and_is_tried_again(
    mail: TakenMail, hook: TakenPosts
) -> None:
    mail.refuses = True
    with connect() as journal:
        gaps(journal, 2)
    pipeline = shop(MAIL, HOOK)

    failed = notify(pipeline, AROUND)
    assert list(failed) == ["first"]
    assert failed["first"].startswith(f"{MAIL.notifier} did not send: SMTPDataError: ")
    with connect() as journal:
        [channel] = notices.failing(journal)
    assert (channel.channel, channel.reason) == ("first", failed["first"])
    notify(pipeline, AROUND)
    [news] = texts(hook)
    assert "- shop window 2 has 3 open findings" in news
    assert "- shop cannot send through first, since 0 min: " in news
    assert "   next: makewhole notify shop" in news

    mail.refuses = False
    assert notify(pipeline, AROUND) == {}
    [letter] = mail.mails
    assert letter["Subject"] == "[makewhole] shop: window 2 has 3 open findings: 3 keys missing"
    with connect() as journal:
        assert notices.failing(journal) == []


def test_who_is_killed_behind_sending_sends_once_more_and_loses_nothing(hook: TakenPosts) -> None:
    class KilledError(BaseException):
        pass

    def killed(channel: Channel, message: Message, place: str) -> None:
        send(channel, message, place)
        raise KilledError

    with connect() as journal:
        gaps(journal, 2)
    with pytest.raises(KilledError):
        notify(shop(HOOK), replace(AROUND, send=killed))
    notify(shop(HOOK), AROUND)
    notify(shop(HOOK), AROUND)
    first, second = texts(hook)
    assert first.splitlines()[1:] == second.splitlines()[1:]


def test_two_that_send_at_once_send_once(hook: TakenPosts) -> None:
    with connect() as journal:
        gaps(journal, 2)
    inner: list[dict[str, str]] = []

    def beside(channel: Channel, message: Message, place: str) -> None:
        inner.append(notify(shop(HOOK), AROUND))  # another task, while this one has the channel
        send(channel, message, place)

    notify(shop(HOOK), replace(AROUND, send=beside))
    assert (inner, len(hook.posts)) == ([{}], 1)


def test_a_certificate_that_was_revoked_is_sent_until_another_one_stands(hook: TakenPosts) -> None:
    with connect() as journal:
        first = opened(journal, 1, WindowState.CERTIFIED)
        certificates.insert(journal, "shop", entry(first, 1))
        second = gaps(journal, 1, revision=2)
        certificates.insert(journal, "shop", entry(second, 2, revokes=1))
    notify(shop(HOOK), AROUND)
    with connect() as journal:
        third = opened(journal, 1, WindowState.CERTIFIED, revision=3)
        certificates.insert(journal, "shop", entry(third, 3))
    notify(shop(HOOK), AROUND)
    revoked, clear = texts(hook)
    assert revoked.startswith("- shop window 1 has its certificate 1 revoked, since 0 min")
    assert clear.startswith("All clear")


def entry(window: Window, ordinal: int, revokes: int | None = None) -> ChainEntry:
    return ChainEntry(
        ordinal=ordinal,
        number=window.number,
        revision=1 if revokes else window.revision,
        digest="0",
        body={},
        previous=None,
        sha256=str(ordinal),
        uri="",
        kind=EntryKind.REVOCATION if revokes else EntryKind.CERTIFICATE,
        revokes=revokes,
    )


@pytest.mark.parametrize(
    ("state", "hours", "is_late"),
    [
        (WindowState.CERTIFIED, 3, False),
        (WindowState.CERTIFIED, 30, True),
        (WindowState.GAPS, 3, False),
        (WindowState.GAPS, 5, True),
    ],
)
def test_a_window_that_is_not_certified_in_time_is_late(state: WindowState, hours: float, is_late: bool) -> None:
    """Late also where no run opened the next window at all."""
    pipeline = shop(HOOK, certify_by=timedelta(hours=4))
    with connect() as journal:
        assert late_item(journal, pipeline, NOW) is None
        window = opened(journal, 100, state)
        late = late_item(journal, pipeline, window.end + timedelta(hours=hours))
    assert (late is not None) is is_late
    if late is not None and window.start is not None:
        known = window.end if state is WindowState.CERTIFIED else window.start
        due = window.end if hours < 24 else window.end + timedelta(days=1)
        assert late.what == (
            f"is late: certified up to {known:%Y-%m-%d %H:%M} UTC, and was to be up to {due:%Y-%m-%d %H:%M} UTC by "
            f"{due + timedelta(hours=4):%Y-%m-%d %H:%M} UTC"
        )


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"notifier": "no.such.Notifier"}, "no.such.Notifier cannot be imported"),
        ({"notifier": "json.JSONDecoder"}, "json.JSONDecoder is no notifier of Airflow"),
        ({"arguments": {"no_such": "{{ makewhole.text }}"}}, "does not take these arguments (TypeError)"),
        ({"arguments": {"endpoint": "a", "method": "{{ makewhole.text }}"}}, "renders no template in: method"),
        ({"arguments": {"json": {"text": "{{ makewhole.text"}}}, "has an argument that cannot be rendered"),
    ],
)
def test_a_notifier_that_cannot_be_used_is_named(hook: TakenPosts, change: dict[str, Any], found: str) -> None:
    with connect() as journal:
        gaps(journal, 2)
    reasons = notify(shop(replace(HOOK, **change)), AROUND)
    assert found in reasons["first"]
    assert "notify.through.first" in reasons["first"]
    assert hook.posts == []


def test_a_test_goes_through_a_channel_or_says_why_not(hook: TakenPosts) -> None:
    message = message_of_test("shop", link=URL, now=NOW)
    send(HOOK, message, "notify.through.first")
    [text] = texts(hook)
    assert text.startswith("This is a test of the channels of shop")
    hook.status = 500
    with pytest.raises(NotSentError):
        send(HOOK, message, "notify.through.first")


def test_a_question_is_sent_when_it_is_put_with_the_time_that_is_left(hook: TakenPosts) -> None:
    pipeline = shop(HOOK)
    with connect() as journal:
        window = opened(journal, 1, WindowState.OPEN)
        plan = Plan(
            id="shop-1-plan",
            pipeline="shop",
            window=window.number,
            revision=window.revision,
            sha256="f" * 64,
            payload_uri=None,
            counts={"produce": 3},
            state=PlanState.AWAITING_APPROVAL,
            reason=None,
            undoes=None,
        )
        plans.put_plan(journal, StoredPlan(plan=plan, payload_sha256=None), [])
    notify(pipeline, AROUND)
    assert hook.posts == []
    with connect() as journal:
        plans.note_question(journal, plan.id, datetime.now(UTC) + timedelta(hours=4, seconds=30))
    notify(pipeline, AROUND)
    [text] = texts(hook)
    assert text.startswith(
        "- shop window 1 waits for an answer to plan shop-1-plan (3 actions), since 0 min, 4 h 0 min left"
    )
