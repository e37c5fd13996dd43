"""Parse the scalars of a pipeline file: each function turns a text into a value, or says what is wrong."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

from croniter import croniter

from makewhole.model.hops import Reach
from makewhole.model.pipeline import GROUP_PREFIX
from makewhole.model.places.record_paths import STEPS, respelled
from makewhole.model.points import COORDINATES, VALUE_FORMATS, names_of_table
from makewhole.model.value_types import UNITS

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_QUOTED_NAME = re.compile(r'"(?:[^"]|"")+"')
_LONGEST_INTEGER = 18  # digits, a sign among them
_LONGEST_NAME = 63  # bytes; of a longer one PostgreSQL takes the beginning
_NO_COLUMNS = ("kafka.key",)
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_CONNECTION = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_ROLE = re.compile(r"(?=\S)[^\x00-\x1f\x7f]{1,64}(?<=\S)")
_GROUP = re.compile(r"[\x21-\x7e]{1,255}")
_DURATION = re.compile(r"([0-9]{1,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_TIMESTAMP = re.compile(r"timestamp\(\s*([0-6])\s*\)")
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)")
_JSON_PATH = re.compile(rf"(\$)((?:{STEPS}(?:\[\*\])?)+)")
_ARRAY = re.compile(rf"(\$)({STEPS}+\[\*\])")
_RECORD_KEY = re.compile(rf"(kafka\.key)({STEPS}*)")
_EVENT = re.compile(rf"(event:[A-Za-z_][A-Za-z0-9_-]*)({STEPS}*)")
_HEADER = re.compile(r"header:[\x21-\x7e]+")
E = TypeVar("E", bound=StrEnum)
_CRON_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of month", 1, 31),
    ("month", 1, 12),
    ("day of week", 0, 7),
)
_CRON_EXAMPLE = "for example '0 2 * * *' for every day at 02:00 UTC"
PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
TYPES = ("string", "int", "bigint", "double", "boolean", "timestamp", "date", "json")


class UnfitError(ValueError):
    """A text that cannot be the value: what was found, and what to write instead."""

    def __init__(self, found: str, remedy: str) -> None:
        super().__init__(found)
        self.found = found
        self.remedy = remedy


def shown(text: str) -> str:
    """Quote a text for a message: short and on one line."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def allowed(word: str, choices: Iterable[str]) -> str:
    """Return the remedy for a word outside a closed list, with the nearest word in it."""
    names = sorted(choices)
    near = get_close_matches(word, names, n=1)
    return f"Allowed: {', '.join(names)}" + (f". Did you mean {near[0]!r}?" if near else "")


def choice(kind: type[E], what: str) -> Callable[[str], E]:
    """Return a parser that takes one of the words of `kind`; `what` names it in messages (`a kind of point`)."""

    def parse(text: str) -> E:
        try:
            return kind(text)
        except ValueError:
            raise UnfitError(f"{shown(text)} is not {what}", allowed(text, [member.value for member in kind])) from None

    return parse


def _matching(pattern: re.Pattern[str], what: str, remedy: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not pattern.fullmatch(text):
            raise UnfitError(f"{shown(text)} is not {what}", remedy)
        return text

    return parse


name = _matching(
    _NAME, "a name", "Begin with a small letter, go on with small letters, digits and '_', for example 'daily_flights'"
)
logical_name = _matching(
    _COLUMN, "a column name", "Use letters, digits and '_', not beginning with a digit, 63 at most"
)
connection_id = _matching(
    _CONNECTION, "a connection id", "Begin with a letter, go on with letters, digits, '_', '.' and '-'"
)
consumer_group = _matching(_GROUP, "a consumer group", "Use 1 to 255 printable characters without spaces")
role = _matching(_ROLE, "the name of a role", "Use 1 to 64 printable characters, as Airflow's auth manager has it")
user = _matching(_GROUP, "a user name", "Use 1 to 255 printable characters without spaces")


def approver(text: str) -> str:
    """Parse a user name, or `group:` with the name of a group."""
    if text.startswith("role:"):
        raise UnfitError(
            f"{shown(text)} names a role, and Airflow does not report the roles of the person who answered",
            f"Name users, or {GROUP_PREFIX}NAME with the group in the file of MAKEWHOLE_GROUPS",
        )
    if text == GROUP_PREFIX:
        raise UnfitError(f"{shown(text)} names no group", f"Write {GROUP_PREFIX}NAME")
    return user(text)


def topic(text: str) -> str:
    """Parse the name of a Kafka topic, by the broker's own rule."""
    if not _TOPIC.fullmatch(text) or text in (".", ".."):
        raise UnfitError(
            f"{shown(text)} is not a topic name", "Use letters, digits, '.', '_' and '-', 249 at most, not '.' or '..'"
        )
    return text


def column(text: str) -> str:
    """Parse the name of a column of a table, taken as it is: any that PostgreSQL has."""
    if text in _NO_COLUMNS or text.startswith(("$.", "$['", "header:")):
        raise UnfitError(f"{shown(text)} is a place in a record, not a column name", "Name a column of the table")
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        raise UnfitError(
            f"{shown(text)} is not a column name: the quotation marks are part of it",
            f"Write the name as it is, capitals and spaces as they are: {shown(text[1:-1])}",
        )
    return _identifier(text, "a column name")


def _identifier(text: str, what: str) -> str:
    size = len(text.encode(errors="replace"))
    if not text or "\0" in text or size > _LONGEST_NAME:
        raise UnfitError(f"{shown(text)} is not {what}", f"Use 1 to {_LONGEST_NAME} bytes, none of them zero")
    return text


def table(text: str) -> str:
    """Parse `table` or `schema.table`; a name that is not of letters, digits and `_` stands in quotation marks."""
    remedy = (
        "Write 'table' or 'schema.table', each of letters, digits and '_', not beginning with a digit; "
        "put any other name in quotation marks as in SQL: 'shop.\"Out.Box\"'"
    )
    try:
        names = names_of_table(text)
    except ValueError:
        raise UnfitError(f"{shown(text)} is not a safe table name", remedy) from None
    plain = [name for name in _QUOTED_NAME.sub("", text).split(".") if name]
    if len(names) > 2 or not all(_COLUMN.fullmatch(name) for name in plain):
        raise UnfitError(f"{shown(text)} is not a safe table name", remedy)
    for name in names:
        _identifier(name, "the name of a schema or a table")
    return text


def topic_part(text: str) -> str:
    """Parse one part of a topic's key: a field of the value, the record's key or a field of it, or a header."""
    path = _RECORD_KEY.fullmatch(text) or _JSON_PATH.fullmatch(text)
    if path is not None:
        return _written(path)
    if not _HEADER.fullmatch(text):
        near = f". Did you mean '$.{text}'?" if _COLUMN.fullmatch(text) else ""
        raise UnfitError(
            f"{shown(text)} is not a place in a record",
            f"Write '$.field' (with further '.field' inside it), 'kafka.key' or 'header:NAME'{near}",
        )
    return text


def _written(path: re.Match[str]) -> str:
    """Return the one spelling of a place, in which each step begins with a dot."""
    return path.group(1) + respelled(path.group(2))


def array(text: str) -> str:
    """Parse the array of records whose elements are events of their own."""
    path = _ARRAY.fullmatch(text)
    if path is None:
        raise UnfitError(f"{shown(text)} is no array in a record", "Write '$.field[*]', or '$.outer.field[*]'")
    return _written(path)


def version_part(text: str) -> str:
    """Parse the version of a topic: one part as a key has it, or a field of the event that carries the row."""
    path = _EVENT.fullmatch(text)
    return topic_part(text) if path is None else _written(path)


def key_part(text: str) -> str:
    """Parse one part of a topic's key: what `topic_part` reads, or a coordinate of the record in its log."""
    if text in COORDINATES:
        return text
    if text.startswith("kafka.") and text != "kafka.key" and not text.startswith(("kafka.key.", "kafka.key[")):
        raise UnfitError(f"{shown(text)} is not a place in a record", allowed(text, ["kafka.key", *COORDINATES]))
    return topic_part(text)


def value_format(text: str) -> str:
    """Parse the encoding of a topic's values."""
    if text not in VALUE_FORMATS:
        raise UnfitError(f"{shown(text)} is not a value format", allowed(text, VALUE_FORMATS))
    return text


def duration(text: str) -> timedelta:
    """Parse a duration: `30s`, `5m`, `4h`, `2d`."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UnfitError(
            f"{shown(text)} is not a duration", "Write a whole number and one of s, m, h, d, for example '5m'"
        )
    return timedelta(seconds=int(match[1]) * _SECONDS[match[2]])


def written_duration(value: timedelta) -> str:
    """Return a duration of whole seconds as it is written, in the largest unit that fits."""
    seconds = int(value.total_seconds())
    units = sorted(_SECONDS.items(), key=lambda unit: unit[1], reverse=True)
    return next(f"{seconds // length}{unit}" for unit, length in units if seconds % length == 0)


def positive_duration(text: str) -> timedelta:
    """Parse a duration that is not zero."""
    value = duration(text)
    if not value:
        raise UnfitError(f"{shown(text)} is no time at all", "Write a duration above zero, for example '4h'")
    return value


def history(text: str) -> timedelta:
    """Parse how far back keys are known: at least a day."""
    value = duration(text)
    if value < timedelta(days=1):
        raise UnfitError(f"{shown(text)} is no history", "Write a duration from '1d' on, for example '400d'")
    return value


def time_limit(text: str) -> timedelta:
    """Parse the time limit of a step: at least a minute, at most three weeks, which PostgreSQL and timers can count."""
    value = duration(text)
    if not timedelta(minutes=1) <= value <= timedelta(days=21):
        raise UnfitError(f"{shown(text)} is no time limit for a step", "Write a duration from '1m' to '21d'")
    return value


def schedule(text: str) -> str:
    """Parse five cron fields (minute, hour, day of month, month, day of week) as Airflow reads them, or one of
    `PRESETS`."""
    if text in PRESETS:
        return text
    fields = text.split()
    usage = f"Write five cron fields, {_CRON_EXAMPLE}, or one of {', '.join(PRESETS)}"
    if len(fields) != len(_CRON_FIELDS):
        raise UnfitError(f"{shown(text)} is not a schedule: it has {len(fields)} fields", usage)
    for at, (field, (field_name, lowest, highest)) in enumerate(zip(fields, _CRON_FIELDS, strict=True)):
        if not _is_cron(["*"] * at + [field] + ["*"] * (len(fields) - at - 1)):
            raise UnfitError(
                f"{shown(text)} is not a schedule: {field_name} {shown(field)} is wrong",
                f"Use numbers from {lowest} to {highest}, '*', lists, ranges and steps, {_CRON_EXAMPLE}",
            )
    if not _is_cron(fields):
        raise UnfitError(f"{shown(text)} is not a schedule", usage)
    return text


def _is_cron(fields: Iterable[str]) -> bool:
    """Return whether the parser that Airflow's cron timetables use takes the fields."""
    try:
        croniter(" ".join(fields))
    except ValueError:  # croniter's own errors are among them
        return False
    return True


def start(text: str) -> str | datetime:
    """Parse `earliest`, `latest`, or an ISO 8601 time; one without an offset is UTC."""
    if text in ("earliest", "latest"):
        return text
    try:
        return moment(text)
    except UnfitError:
        raise UnfitError(
            f"{shown(text)} is not a start", "Write 'earliest', 'latest' or a time such as '2013-01-01T00:00:00Z'"
        ) from None


def reach(text: str) -> Reach:
    """Parse the reach that a file accepts: `log`."""
    if text != Reach.LOG.value:
        raise UnfitError(
            f"{shown(text)} is not a reach to accept",
            "Write 'reach: log' to accept that windows are proven from the log on, or take the line out",
        )
    return Reach.LOG


def moment(text: str) -> datetime:
    """Parse an ISO 8601 time; one without an offset is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UnfitError(f"{shown(text)} is not a time", "Write a time such as '2013-01-01T00:00:00Z'") from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def compare_type(text: str) -> str:
    """Parse the declared type of a compared column into one spelling: `decimal(6,1)`, `timestamp(3)`."""
    if text in TYPES:
        return text
    if (moment := _TIMESTAMP.fullmatch(text)) is not None:
        return "timestamp" if moment[1] == "6" else f"timestamp({moment[1]})"
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise UnfitError(f"{shown(text)} is not a type", allowed(text, [*TYPES, "decimal(p,s)", "timestamp(p)"]))
    precision, scale = int(match[1]), int(match[2])
    if not 1 <= precision <= 38 or scale > precision:
        raise UnfitError(
            f"{shown(text)} is not a possible decimal", "Write decimal(p,s) with p from 1 to 38 and s from 0 to p"
        )
    return f"decimal({precision},{scale})"


def unit(text: str) -> str:
    """Parse the unit in which a record counts a moment or a day."""
    if text not in UNITS:
        raise UnfitError(f"{shown(text)} is not a unit", allowed(text, UNITS))
    return text


def boolean(text: str) -> bool:
    """Parse YAML's words for yes and no."""
    word = text.lower()
    if word not in ("true", "yes", "on", "false", "no", "off"):
        raise UnfitError(f"{shown(text)} is neither true nor false", "Write true or false")
    return word in ("true", "yes", "on")


def integer(text: str) -> int:
    """Parse a whole number, in decimal digits."""
    if not re.fullmatch(r"[+-]?(0|[1-9][0-9_]*)", text):
        raise UnfitError(f"{shown(text)} is not a whole number", "Write it in decimal digits")
    if len(text) > _LONGEST_INTEGER:  # Python refuses thousands of digits, and the journal more than 64 bits
        raise UnfitError(f"{shown(text)} is too large", f"Write a whole number of at most {_LONGEST_INTEGER} digits")
    return int(text.rstrip("_"))


def at_least(minimum: int) -> Callable[[str], int]:
    """Return a parser for whole numbers from `minimum` up."""

    def parse(text: str) -> int:
        value = integer(text)
        if value < minimum:
            raise UnfitError(f"{value} is too small", f"Write a whole number of {minimum} or more")
        return value

    return parse


def share(text: str) -> float:
    """Parse a part of a whole, 0..1."""
    try:
        value = float(text)
    except ValueError:
        raise UnfitError(f"{shown(text)} is not a number", "Write a share from 0 to 1, for example 0.01") from None
    if not 0 <= value <= 1:
        raise UnfitError(f"{text} is not between 0 and 1", "Write a share from 0 to 1; 0.01 is one in a hundred")
    return value
