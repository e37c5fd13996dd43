"""Read `notify` of a pipeline file: what is sent to people, and through which of Airflow's notifiers."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from makewhole.config import values
from makewhole.config.tree import Section, YamlPlace, is_empty, key_text
from makewhole.config.values import UnfitError, allowed, shown
from makewhole.model.people.notices import Channel, Notify, Waits

_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_TEMPLATE = re.compile(r"\{\{[^}]*\bmakewhole\b")
_EXAMPLE = (
    "{mail: {notifier: airflow.providers.smtp.notifications.smtp.SmtpNotifier, arguments: {to: oncall@example.org, "
    "subject: '{{ makewhole.subject }}', html_content: '{{ makewhole.html }}'}}}"
)
_SCALARS: Mapping[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": values.boolean}


def read_notify(top: Section, schedule: str | None) -> Notify | None:
    """Return what the pipeline sends; None: nothing. What is wrong is noted."""
    place = top.get("notify")
    section = place.section() if place else None
    if section is None:
        return None
    section.only("through", "remind", "certify_by")
    remind, certify_by = section.get("remind"), section.get("certify_by")
    if certify_by is not None and schedule is None:
        certify_by.complain(
            "needs a schedule: without one no window is due", "Write 'schedule', or take 'certify_by' out"
        )
    through = section.need("through", f"Name the ways to people, for example {_EXAMPLE}")
    channels = through.section() if through else None
    return Notify(
        channels={name: _read_channel(name, channel) for name, channel in channels or ()},
        remind=(remind.text(values.positive_duration) if remind else None) or Notify.remind,
        certify_by=certify_by.text(values.positive_duration) if certify_by else None,
    )


def usable(notify: Notify | None) -> Notify | None:
    """Return what a pipeline whose file has problems sends: through the channels that are whole; None: there is none.
    Its schedule may be one of the problems, so that nothing of it is late."""
    known = {} if notify is None else notify.channels
    channels = {name: channel for name, channel in known.items() if channel.notifier and _has_news(channel.arguments)}
    return replace(notify, channels=channels, certify_by=None) if notify is not None and channels else None


def _read_channel(name: str, place: YamlPlace) -> Channel:
    try:
        values.name(name)
    except UnfitError as unfit:
        place.complain(unfit.found, unfit.remedy)
    section = place.section()
    if section is None:
        return Channel(notifier="", arguments={})
    section.only("notifier", "arguments", "kinds")
    notifier = section.need("notifier", "Name the class of a notifier, with its module")
    arguments = section.need("arguments", "Give the notifier its arguments; at least one has what is to be sent")
    kinds = section.get("kinds")
    given = _value(arguments) if arguments else {}
    if arguments is not None:
        _check_arguments(arguments, given)
    return Channel(
        notifier=(notifier.text(_class_name) if notifier else None) or "",
        arguments=given if isinstance(given, dict) else {},
        kinds=(kinds.words(_kind) if kinds else None) or (),
    )


def _check_arguments(place: YamlPlace, given: object) -> None:
    if not isinstance(given, dict):
        place.section()
    elif not _has_news(given):
        place.complain(
            "has nothing of what is to be sent",
            "Write '{{ makewhole.text }}' (or subject, html, link) in at least one of the arguments",
        )


def _has_news(arguments: object) -> bool:
    """Return whether something of what is to be sent stands in the arguments."""
    return any(_TEMPLATE.search(text) for text in _texts(arguments))


def _class_name(text: str) -> str:
    if not _CLASS.fullmatch(text):
        raise UnfitError(f"{shown(text)} is no class with its module", "Write it as 'package.module.Class'")
    return text


def _kind(text: str) -> Waits:
    if text not in set(Waits):
        raise UnfitError(f"{shown(text)} is not a kind of what is sent", allowed(text, [kind.value for kind in Waits]))
    return Waits(text)


def _texts(given: object) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    elif isinstance(given, dict | list):
        for inner in given.values() if isinstance(given, dict) else given:
            yield from _texts(inner)


def _value(place: YamlPlace) -> Any:
    """Return a value as YAML has it: mappings, lists, texts, numbers, booleans, null; anything else is noted."""
    node = place.node
    if isinstance(node, MappingNode):
        return {
            key_text(key): _value(place.child(key_text(key), inner, inner.start_mark.line + 1))
            for key, inner in node.value
        }
    if isinstance(node, SequenceNode):
        return [_value(element) for element in place.elements()]
    if is_empty(node):
        return None
    assert isinstance(node, ScalarNode)
    kind = node.tag.rpartition(":")[2]
    try:
        return _SCALARS[kind](node.value) if kind in _SCALARS else node.value
    except ValueError:
        place.complain(f"{shown(node.value)} is a number that is not read", "Put it in quotes")
        return None
