"""Format numbers, times and sizes for people."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))
_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")
_LISTED_MOST = 3
_YEAR_9999_MS = 253_402_300_799_999


def number(value: int) -> str:
    """Format a number: 1,234,567."""
    return f"{value:,}"


def counted(value: int, noun: str, many: str | None = None) -> str:
    """Format a number with its noun: `1 record`, `2 records`."""
    return f"{value:,} {noun if value == 1 else many or noun + 's'}"


def duration(milliseconds: int) -> str:
    """Format a duration by the largest unit that fits, and of few of them the next: `7 d`, `2 h 5 min`, `1 s 500
    ms`, `42 s`."""
    sign, left = ("-", -milliseconds) if milliseconds < 0 else ("", milliseconds)
    for index, (unit, size) in enumerate(_UNITS):
        if left >= size:
            whole, rest = divmod(left, size)
            if index + 1 < len(_UNITS) and (less := rest // _UNITS[index + 1][1]) and whole < 10:
                return f"{sign}{whole:,} {unit} {less} {_UNITS[index + 1][0]}"
            return f"{sign}{whole:,} {unit}"
    return "0 ms"


def moment(milliseconds: int | None) -> str:
    """Format a time in UTC, to the second; a number that is no date stays as it is."""
    if milliseconds is None or milliseconds == -1:
        return "none"
    if not 0 <= milliseconds <= _YEAR_9999_MS:
        return f"{milliseconds} ms"
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def size(size_bytes: float) -> str:
    """Format a number of bytes, in thousands: `346.2 MB`."""
    for unit in _SIZES[:-1]:
        if abs(size_bytes) < 1000:
            return f"{size_bytes:.0f} B" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} {_SIZES[-1]}"


def share(part: int, whole: int) -> str:
    """Format a percentage that never rounds something to nothing, nor a part to the whole."""
    if whole <= 0 or part in (0, whole):
        return "0%" if part == 0 else "100%"
    percent = 100 * part / whole
    if percent < 0.1:
        return "<0.1%"
    if percent > 99.9:
        return ">99.9%"
    return f"{percent:.1f}%"


def listed(values: tuple[int, ...] | list[int], limit: int = 8) -> str:
    """Join the first few: `0, 1, 2 and 5 more`."""
    shown = ", ".join(map(str, values[:limit]))
    return shown if len(values) <= limit else f"{shown} and {len(values) - limit} more"


NOT_NUMBERED, BY_SEQUENCE = "not_numbered", "by_sequence"
"""The fields of the repeated keys of a topic that say how many records have no sequence, where that is the key."""
REPEATS: Mapping[str, str] = {
    "resend": "sent again with the same values",
    "conflict": "with other values",
    "unknown": "of which it is not known whether their values are the same",
}
"""Names of the several records of a key (`makewhole.model.verdict.Repeat`), for people."""


def not_numbered_text(topic: str, records: int) -> str:
    """Return that records of a topic have no sequence, by which they would be held to each other."""
    have = "has" if records == 1 else "have"
    return (
        f"{counted(records, 'record')} of {topic} {have} no sequence, as the producer is not idempotent: whether the "
        "same was sent before is not known"
    )


def repeated_keys_text(topic: str, detail: Mapping[str, Any]) -> str:
    """Return how many keys have several records in a topic, by what they are, with the places of the first ones, and
    how many records have no key. Keys are not in it: it goes into logs."""
    unknown = detail.get(NOT_NUMBERED, 0)
    also = f"; {not_numbered_text(topic, unknown)}" if unknown else ""
    name = "sequence" if detail.get(BY_SEQUENCE) else "key"
    if not detail["keys"]:
        return f"no {name} of {topic} has a second record{also}"
    kinds = [f"{detail[repeat]:,} {text}" for repeat, text in REPEATS.items() if detail[repeat]]
    places = [str([*entry["places"]][-1]) for entry in detail["first"][:_LISTED_MOST]]
    more = ", …" if detail["keys"] > len(places) else ""
    have = "has several records" if detail["keys"] == 1 else "have several records each"
    counts = f"{counted(detail['keys'], name)} of {topic} {have}: {', '.join(kinds)}"
    return f"{counts} (at {', '.join(places)}{more}){also}"


def is_hop_name(name: str) -> bool:
    """Return whether what is judged under a name is a hop, and no topic alone: names of points have no arrow."""
    return "→" in name


def printable(text: str) -> str:
    """Escape what is not printable: a key or a message may hold anything, and a terminal must not obey it."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
