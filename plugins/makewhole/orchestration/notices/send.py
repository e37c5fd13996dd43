"""Send a message through a notifier of Airflow."""

import importlib
import json
import re
from typing import Any

from airflow.sdk import BaseNotifier

from makewhole.model.errors import ConfigurationError, Problem, TransientError
from makewhole.model.people.notices import Channel
from makewhole.orchestration.notices.compose import Message

_STATUS = re.compile(r"(?:\A|[Ss]tatus [Cc]ode: ?)([1-5]\d\d)\b")


class NotSentError(TransientError):
    """A notifier did not take a message."""


def send(channel: Channel, message: Message, place: str) -> None:
    """Send a message through a channel. `place` names it for errors. What a notifier says of itself may hold data of
    its own, or the URL of a webhook, which is a secret: only the kind of its error is named, and no error of ours has
    it as its cause, which logs would show.

    Raises:
        ConfigurationError: the class or its arguments cannot be used.
        NotSentError: it could not be sent.
    """
    notifier = _notifier(channel, place)
    context: Any = {"makewhole": message.template_values()}  # of a run there is nothing in it
    try:
        notifier.render_template_fields(context)
    except Exception as error:
        raise _unusable(place, f"has an argument that cannot be rendered ({type(error).__name__})") from None
    _require_rendered(notifier, channel, place)
    try:
        notifier.notify(context)
    except Exception as error:
        raise NotSentError(f"{channel.notifier} did not send: {type(error).__name__}{_status(error)}") from None


def notifier_class(channel: Channel, place: str) -> type[BaseNotifier]:
    """Return the class of a notifier.

    Raises:
        ConfigurationError: it is not there, or is none.
    """
    module, _, name = channel.notifier.rpartition(".")
    try:
        notifier = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise _unusable(place, f"{channel.notifier} cannot be imported") from error
    if not (isinstance(notifier, type) and issubclass(notifier, BaseNotifier)):
        raise _unusable(place, f"{channel.notifier} is no notifier of Airflow")
    return notifier


def _notifier(channel: Channel, place: str) -> BaseNotifier:
    """Make the notifier: arguments that it does not render itself are rendered before it gets them."""
    kind = notifier_class(channel, place)
    try:
        return kind(**channel.arguments)
    except Exception as error:
        raise _unusable(place, f"does not take these arguments ({type(error).__name__})") from None


def _require_rendered(notifier: BaseNotifier, channel: Channel, place: str) -> None:
    """Refuse a notifier that would send a template as it was written."""
    rendered = set(notifier.template_fields)
    plain = [name for name, value in channel.arguments.items() if "{{" in json.dumps(value) and name not in rendered]
    if plain:
        raise _unusable(place, f"renders no template in: {', '.join(sorted(plain))}")


def _status(error: Exception) -> str:
    """Return the status that a server answered with, of HTTP or SMTP, as the end of a message; "" where none is known.
    Airflow's own hooks have it in their text alone."""
    response = getattr(error, "response", None)
    for status in (
        getattr(response, "status_code", None),
        getattr(error, "status", None),
        getattr(error, "smtp_code", None),
    ):
        if isinstance(status, int):
            return f" ({status})"
    in_text = _STATUS.search(str(error))
    return f" ({in_text[1]})" if in_text else ""


def _unusable(place: str, found: str) -> ConfigurationError:
    remedy = "Install its provider where Airflow's tasks run, and write its arguments as its documentation says"
    return ConfigurationError([Problem(file="pipeline file", path=place, found=found, remedy=remedy)])
