"""Is a text a schedule that Airflow's cron timetable takes? Checked by hand: a parser would cost every DAG parse."""

import re

from makewhole.config.values import UnfitError, shown

PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {name: number for number, name in enumerate(_DAY_NAMES)}
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
_ITEM = re.compile(r"(?:(?P<all>\*)|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[0-9]{1,3}))?")
_EXAMPLE = "for example '0 2 * * *' for every day at 02:00 UTC"


def schedule(text: str) -> str:
    """Five cron fields (minute, hour, day of month, month, day of week) or a preset such as `@daily`."""
    if text in PRESETS:
        return text
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise UnfitError(
            f"{shown(text)} is not a schedule: it has {len(fields)} fields",
            f"Write five cron fields, {_EXAMPLE}, or one of {', '.join(PRESETS)}",
        )
    for field, (name, lowest, highest, names) in zip(fields, _FIELDS, strict=True):
        if not all(_is_item(item, lowest, highest, names) for item in field.lower().split(",")):
            raise UnfitError(
                f"{shown(text)} is not a schedule: {name} {shown(field)} is wrong",
                f"Use numbers from {lowest} to {highest}, '*', lists, ranges and steps, {_EXAMPLE}",
            )
    return text


def _is_item(item: str, lowest: int, highest: int, names: dict[str, int]) -> bool:
    match = _ITEM.fullmatch(item)
    if match is None or (match["step"] is not None and not 1 <= int(match["step"]) <= highest):
        return False
    if match["all"]:
        return True
    numbers = [_number(word, names) for word in (match["first"], match["last"]) if word is not None]
    return all(lowest <= number <= highest for number in numbers) and numbers == sorted(numbers)


def _number(word: str, names: dict[str, int]) -> int:
    """The number a word stands for, or -1, which no field allows."""
    return int(word) if word.isascii() and word.isdigit() else names.get(word, -1)
