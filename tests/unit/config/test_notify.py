"""Test what `notify` of a pipeline file may say: channels, reminders, the promise to certify in time."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline, read_file
from makewhole.model.errors import ConfigurationError
from makewhole.model.people.notices import Channel, Notify, Waits
from makewhole.window.configuration import configuration_document

pytestmark = pytest.mark.unit

Write = Callable[[str], Path]
MAIL = """
notify:
  remind: 12h
  certify_by: 4h
  through:
    mail:
      notifier: airflow.providers.smtp.notifications.smtp.SmtpNotifier
      arguments:
        to: [a@example.org, b@example.org]
        subject: "{{ makewhole.subject }}"
        html_content: "{{ makewhole.html }}"
    page:
      notifier: ops.pager.Pager
      arguments: {retries: 3, urgent: true, share: 0.5, body: {text: "{{makewhole.text}}", team: null}}
      kinds: [error, question]
"""


def with_notify(minimal: str, text: str) -> str:
    return minimal.replace("version: 2", 'version: 2\nschedule: "@daily"', 1) + text


def problems(file: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(file)
    return [f"{problem.path}: {problem.found}. {problem.remedy}" for problem in caught.value.problems]


def test_a_file_with_problems_keeps_the_channels_that_are_whole(write: Write, minimal: str) -> None:
    text = with_notify(minimal, MAIL.replace("ops.pager.Pager", "Pager")) + "settle: soon\n"
    stand_in = read_file(write(text)).stand_in
    assert stand_in is not None and stand_in.notify is not None
    assert ([*stand_in.notify.channels], stand_in.notify.remind) == (["mail"], timedelta(hours=12))
    assert stand_in.notify.certify_by is None  # its schedule may be one of the problems

    nothing = read_file(write(with_notify(minimal, "notify: {through: {page: {notifier: Pager}}}\n"))).stand_in
    assert nothing is not None and nothing.notify is None


def test_channels_are_read_with_their_arguments(write: Write, minimal: str) -> None:
    pipeline = load_pipeline(write(with_notify(minimal, MAIL)))
    assert pipeline.notify == Notify(
        remind=timedelta(hours=12),
        certify_by=timedelta(hours=4),
        channels={
            "mail": Channel(
                notifier="airflow.providers.smtp.notifications.smtp.SmtpNotifier",
                arguments={
                    "to": ["a@example.org", "b@example.org"],
                    "subject": "{{ makewhole.subject }}",
                    "html_content": "{{ makewhole.html }}",
                },
            ),
            "page": Channel(
                notifier="ops.pager.Pager",
                arguments={
                    "retries": 3,
                    "urgent": True,
                    "share": 0.5,
                    "body": {"text": "{{makewhole.text}}", "team": None},
                },
                kinds=(Waits.ERROR, Waits.QUESTION),
            ),
        },
    )


def test_who_is_to_know_is_no_part_of_what_decides(write: Write, minimal: str) -> None:
    plain = load_pipeline(write(with_notify(minimal, "")))
    with_it = load_pipeline(write(with_notify(minimal, MAIL)))
    assert with_it.notify is not None
    assert configuration_document(with_it) == configuration_document(plain)


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("notify: {}", [
            "notify.through: is missing. Name the ways to people, for example {mail: {notifier: "
            "airflow.providers.smtp.notifications.smtp.SmtpNotifier, arguments: {to: oncall@example.org, subject: "
            "'{{ makewhole.subject }}', html_content: '{{ makewhole.html }}'}}}",
        ]),
        ("notify: {through: {mail: {notifier: Smtp, arguments: {to: x}, of: [gaps]}}}", [
            "notify.through.mail.of: is not a key here. Allowed: arguments, kinds, notifier",
            "notify.through.mail.notifier: 'Smtp' is no class with its module. Write it as 'package.module.Class'",
            "notify.through.mail.arguments: has nothing of what is to be sent. Write '{{ makewhole.text }}' (or "
            "subject, html, link) in at least one of the arguments",
        ]),
        ("notify: {through: {m: {notifier: a.B, arguments: {x: '{{ makewhole.text }}'}, kinds: [gap]}}}", [
            "notify.through.m.kinds[0]: 'gap' is not a kind of what is sent. Allowed: error, gaps, late, not_known, "
            "not_opened, not_sent, question, refused, repair_stopped, revoked, self_check. Did you mean 'gaps'?",
        ]),
        ("notify: {remind: 0s, through: {m: {notifier: a.B, arguments: [x]}}}", [
            "notify.remind: '0s' is no time at all. Write a duration above zero, for example '4h'",
            "notify.through.m.arguments: is a list, not a mapping. Write 'key: value' lines below it, or {key: value}",
        ]),
    ],
)  # fmt: skip
def test_mistakes_are_named(write: Write, minimal: str, text: str, messages: list[str]) -> None:
    lines = problems(write(with_notify(minimal, f"\n{text}\n")))
    assert sorted(re.sub(r" \(line \d+\):", ":", line, count=1) for line in lines) == sorted(messages)


def test_a_promise_needs_a_schedule(write: Write, minimal: str) -> None:
    file = write(
        minimal + "\nnotify: {certify_by: 4h, through: {m: {notifier: a.B, arguments: {x: '{{ makewhole.text }}'}}}}\n"
    )
    [problem] = problems(file)
    assert "needs a schedule: without one no window is due" in problem
