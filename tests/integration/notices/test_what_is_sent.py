"""Test which things are sent: revoked certificates, what is late, questions, tests; and notifiers that are unfit."""

import json
import traceback
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from airflow.sdk import BaseNotifier

from makewhole.journal import certificates, plans
from makewhole.journal.certificates import ChainEntry, EntryKind
from makewhole.journal.database import connect
from makewhole.journal.plans import StoredPlan
from makewhole.model.plan import Plan, PlanState
from makewhole.model.window import Window, WindowState
from makewhole.orchestration.notices import notify as notifying
from makewhole.orchestration.notices.compose import message_of_test
from makewhole.orchestration.notices.late import late_item
from makewhole.orchestration.notices.notify import notify
from makewhole.orchestration.notices.send import NotSentError, send
from makewhole.stack.ports import LOOPBACK, free_ports
from tests.world.environment import set_connection
from tests.world.noticed_shop import AROUND, HOOK, NOW, URL, end_of, gaps, opened, shop, texts
from tests.world.people import TakenPosts

pytestmark = pytest.mark.integration


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


@pytest.mark.parametrize("later", [None, WindowState.CERTIFIED, WindowState.GAPS])
def test_a_first_window_without_a_beginning_is_late_once_its_end_was_due(later: WindowState | None) -> None:
    """Also where later windows are certified, and not before its own end was due."""
    pipeline = shop(HOOK, certify_by=timedelta(hours=4))
    with connect() as journal:
        first = opened(journal, 98, WindowState.NOT_KNOWN, start=None)
        early = late_item(journal, pipeline, first.end + timedelta(hours=3))
        if later is not None:
            opened(journal, 99, later)
        late = late_item(journal, pipeline, end_of(99) + timedelta(hours=5))
    assert early is None
    assert late is not None
    assert late.what.startswith("is late: not certified from its beginning on, and was to be up to ")


def test_what_stays_late_is_sent_once(hook: TakenPosts, monkeypatch: pytest.MonkeyPatch) -> None:
    """With each day another window is due."""
    pipeline = shop(HOOK, certify_by=timedelta(hours=4), remind=timedelta(days=7))
    with connect() as journal:
        opened(journal, 98, WindowState.CERTIFIED)
    moments = [end_of(99) + timedelta(hours=5), end_of(99) + timedelta(hours=29)]
    for moment in moments:
        at(monkeypatch, moment)
        notify(pipeline, AROUND)
    [text] = texts(hook)
    assert "is late: certified up to" in text


def at(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    clock = type("Clock", (datetime,), {"now": classmethod(lambda *_: moment)})
    monkeypatch.setattr(notifying, "datetime", clock)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"notifier": "no.such.Notifier"}, "no.such.Notifier cannot be imported"),
        ({"notifier": "json.JSONDecoder"}, "json.JSONDecoder is no notifier of Airflow"),
        ({"arguments": {"no_such": "{{ makewhole.text }}"}}, "does not take these arguments (TypeError)"),
        ({"arguments": {"endpoint": "a", "method": "{{ makewhole.text }}"}}, "renders no template in: method"),
        ({"arguments": {"json": {"text": "{{ makewhole.text"}}}, "has an argument that cannot be rendered"),
    ],
)
def test_a_notifier_that_cannot_be_used_is_named(hook: TakenPosts, change: dict[str, Any], reason: str) -> None:
    with connect() as journal:
        gaps(journal, 2)
    reasons = notify(shop(replace(HOOK, **change)), AROUND)
    assert reason in reasons["first"]
    assert "notify.through.first" in reasons["first"]
    assert hook.posts == []


def test_a_test_goes_through_a_channel_or_says_why_not(hook: TakenPosts) -> None:
    message = message_of_test("shop", link=URL, now=NOW)
    send(HOOK, message, "notify.through.first")
    [text] = texts(hook)
    assert text.startswith("This is a test of the channels of shop")
    hook.status = 500
    with pytest.raises(NotSentError, match=r" did not send: \w+ \(500\)$"):
        send(HOOK, message, "notify.through.first")


@pytest.mark.parametrize("channel", ["http", "slack", "posts itself"])
@pytest.mark.parametrize("is_there", [True, False])
def test_the_secret_of_a_webhook_is_in_no_reason(
    hook: TakenPosts, monkeypatch: pytest.MonkeyPatch, channel: str, is_there: bool
) -> None:
    """A webhook's path is its password."""
    hook.status = 404
    port = hook.port if is_there else free_ports(1)[0]
    root = f"http://{LOOPBACK}:{port}"
    set_connection(monkeypatch, "http_default", json.dumps({"conn_type": "http", "host": LOOPBACK, "port": port}))
    slack = {"conn_type": "slackwebhook", "host": root, "password": "T0/B0/xoxb"}
    set_connection(monkeypatch, "slack_default", json.dumps(slack))
    arguments: dict[str, dict[str, Any]] = {
        "http": {"endpoint": "services/T0/B0/xoxb", "json": {"text": "{{ makewhole.text }}"}},
        "slack": {"slack_webhook_conn_id": "slack_default", "text": "{{ makewhole.text }}"},
        "posts itself": {"url": f"{root}/services/T0/B0/xoxb"},
    }
    notifiers = {
        "http": HOOK.notifier,
        "slack": "airflow.providers.slack.notifications.slack_webhook.SlackWebhookNotifier",
        "posts itself": f"{__name__}.PostingNotifier",
    }
    through = replace(HOOK, notifier=notifiers[channel], arguments=arguments[channel])

    with pytest.raises(NotSentError) as raised:
        send(through, message_of_test("shop", link=URL, now=NOW), "notify.through.first")

    shown = "".join(traceback.format_exception(raised.value))
    assert "did not send" in shown and "xoxb" not in shown
    assert str(raised.value).endswith(" (404)") is is_there


class PostingNotifier(BaseNotifier):
    """A notifier of people's own, that posts to the URL of a webhook."""

    template_fields = ()

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    def notify(self, context: Any) -> None:
        requests.post(self._url, json={}, timeout=10).raise_for_status()


def test_no_all_clear_is_sent_before_a_question_is_put(hook: TakenPosts) -> None:
    pipeline = shop(HOOK)
    with connect() as journal:
        gaps(journal, 2)
    notify(pipeline, AROUND)
    with connect() as journal:
        opened(journal, 2, WindowState.CERTIFIED, revision=2)
        window = opened(journal, 3, WindowState.OPEN)
        plan = awaiting(window)
        plans.put_plan(journal, StoredPlan(plan=plan, payload_sha256=None), [])
    notify(pipeline, AROUND)
    assert len(hook.posts) == 1


def test_a_question_is_sent_when_it_is_put_with_the_time_that_is_left(hook: TakenPosts) -> None:
    pipeline = shop(HOOK)
    with connect() as journal:
        window = opened(journal, 1, WindowState.OPEN)
        plan = awaiting(window)
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


def awaiting(window: Window) -> Plan:
    return Plan(
        id=f"shop-{window.number}-plan",
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
