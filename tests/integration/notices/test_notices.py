"""Test what is sent to people, how often, and what happens where it cannot be sent: with Airflow's notifiers, a server
of mail, one of webhooks, and a real journal."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from makewhole.journal import continuations, notices, step_failures, windows
from makewhole.journal.database import connect
from makewhole.journal.step_failures import StepPlace
from makewhole.model.errors import RefusedError
from makewhole.model.people.notices import Channel, Waits
from makewhole.model.pipeline import Pipeline
from makewhole.model.window import WindowState
from makewhole.orchestration.notices import notify as notifying
from makewhole.orchestration.notices.compose import Message
from makewhole.orchestration.notices.notify import notify
from makewhole.orchestration.notices.send import send
from tests.world.noticed_shop import (
    AROUND,
    HOOK,
    MAIL,
    SLACK,
    URL,
    certified,
    commit_gaps,
    end_of,
    gaps,
    opened,
    shop,
    texts,
)
from tests.world.people import TakenMail, TakenPosts

pytestmark = pytest.mark.integration


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
    end = end_of(2)
    lines = alert["text"].splitlines()
    assert lines[0].startswith(f"- shop window 2 has 3 open findings, since {days_since_the_end()} d ")
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


@pytest.mark.parametrize("is_judged_again", [True, False])
def test_nothing_is_over_while_a_window_is_judged_again_or_repaired(hook: TakenPosts, is_judged_again: bool) -> None:
    """A look at what waits falls between two revisions, and then into the repair of the new one."""
    pipeline = shop_with_sent_gaps()
    with connect() as journal:
        again = opened(journal, 2, WindowState.OPEN, revision=2)
        if not is_judged_again:
            commit_gaps(journal, again, 3)
    notify(pipeline, AROUND)
    assert len(hook.posts) == 1

    with connect() as journal:
        windows.close(journal, again, WindowState.CERTIFIED, None)
    notify(pipeline, AROUND)
    assert texts(hook)[1:] == [text for text in texts(hook) if text.startswith("All clear")]
    assert len(hook.posts) == 2


@pytest.mark.parametrize("is_continued", [True, False])
def test_nothing_is_over_while_a_window_that_was_never_compared_is_tried_again(
    hook: TakenPosts, is_continued: bool
) -> None:
    """By a run that goes on with it, or by a new revision."""
    with connect() as journal:
        window = opened(journal, 2, WindowState.ERROR, reason="snapshot did not end well")
    notify(shop(HOOK), AROUND)
    with connect() as journal:
        if is_continued:
            [unfinished] = continuations.unfinished(journal, "shop", window.end)
            continuations.put(journal, unfinished, "tonight", "tonight")
            continuations.reopen(journal, window)
        else:
            window = opened(journal, 2, WindowState.OPEN, revision=2)
    notify(shop(HOOK), AROUND)
    assert len(hook.posts) == 1

    with connect() as journal:
        windows.close(journal, window, WindowState.CERTIFIED, None)
    notify(shop(HOOK), AROUND)
    assert [text.startswith("All clear") for text in texts(hook)] == [False, True]


def test_a_window_that_finds_the_same_again_says_nothing_new(hook: TakenPosts) -> None:
    pipeline = shop_with_sent_gaps()
    with connect() as journal:
        again = opened(journal, 2, WindowState.OPEN, revision=2)
    notify(pipeline, AROUND)
    with connect() as journal:
        commit_gaps(journal, again, 3)
        windows.close(journal, again, WindowState.GAPS, "3 keys missing")
    notify(pipeline, AROUND)
    assert len(hook.posts) == 1


def test_a_new_window_keeps_nothing_back(hook: TakenPosts) -> None:
    pipeline = shop_with_sent_gaps()
    with connect() as journal:
        certified(journal, 2, revision=2)
        opened(journal, 3, WindowState.OPEN)
    notify(pipeline, AROUND)
    assert [text.startswith("All clear") for text in texts(hook)] == [False, True]


def shop_with_sent_gaps() -> Pipeline:
    """Return a shop whose window 2 has gaps, of which people know."""
    pipeline = shop(HOOK)
    with connect() as journal:
        gaps(journal, 2)
    notify(pipeline, AROUND)
    return pipeline


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
    assert again.startswith(f"Still waits:\n- shop window 2 has 3 open findings, since {days_since_the_end(3)} d ")


def days_since_the_end(hours: float = 0) -> int:
    return (datetime.now(UTC) + timedelta(hours=hours) - end_of(2)).days


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


def test_a_channel_of_some_kinds_gets_no_all_clear_while_another_kind_waits(hook: TakenPosts) -> None:
    pipeline = shop(replace(HOOK, kinds=(Waits.ERROR,)))
    with connect() as journal:
        gaps(journal, 2)
        opened(journal, 3, WindowState.ERROR, reason="snapshot broke")
    notify(pipeline, AROUND)
    with connect() as journal:
        certified(journal, 3, revision=2)
    notify(pipeline, AROUND)
    notify(pipeline, AROUND)

    _, last = texts(hook)
    assert last.splitlines()[:4] == [
        "What this channel was sent is over; still waiting of other kinds: 1 thing",
        "- shop window 2 has 3 open findings: 3 keys missing",
        "Over by now:",
        "- shop window 3 is in error: a step broke: snapshot broke",
    ]
    assert [post["clear"] for _, post in hook.posts] == ["False", "False"]


def test_a_window_whose_kind_is_another_one_now_is_not_over(hook: TakenPosts) -> None:
    pipeline = shop(replace(HOOK, kinds=(Waits.ERROR,)))
    with connect() as journal:
        opened(journal, 3, WindowState.ERROR, reason="snapshot broke")
    notify(pipeline, AROUND)
    with connect() as journal:
        gaps(journal, 3, revision=2)
    notify(pipeline, AROUND)
    assert "- shop window 3 has 3 open findings: 3 keys missing" in texts(hook)[1]
    assert [post["clear"] for _, post in hook.posts] == ["False", "False"]


def test_a_channel_that_fails_keeps_no_other_from_its_message_and_is_tried_again(
    mail: TakenMail, hook: TakenPosts
) -> None:
    mail.refuses = True
    with connect() as journal:
        gaps(journal, 2)
    pipeline = shop(MAIL, HOOK)

    failed = notify(pipeline, AROUND)
    assert list(failed) == ["first"]
    assert failed["first"] == f"{MAIL.notifier} did not send: SMTPDataError (451)"
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
