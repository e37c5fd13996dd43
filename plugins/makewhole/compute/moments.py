"""Read moments and days as PostgreSQL writes and reads them in its ISO styles.

Forms: `2013-01-31 12:00:00.5+05:30`, `…T…Z`, `… UTC`, `T24:00:00`, years of more than four digits, and ` BC`. A moment
without an offset is UTC. Source: https://www.postgresql.org/docs/16/datatype-datetime.html
"""

import re
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Decimal

ENDLESS = ("infinity", "-infinity")
_BEYOND_MICROSECONDS = re.compile(r"(?<=[.,]\d{6})\d+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = re.compile(
    r"\s*(?P<year>\d{4,6})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"((\s+|[Tt])(?P<hour>\d\d):(?P<minute>\d\d)(:(?P<second>\d\d)([.,](?P<fraction>\d+))?)?)?"
    r"\s*((Z|UTC?|GMT|Zulu)|(?P<sign>[+-])(?P<hours>\d\d)(:?(?P<minutes>\d\d)(:?(?P<seconds>\d\d))?)?)?"
    r"(\s+(?P<era>AD|BC))?\s*",
    re.ASCII | re.IGNORECASE,
)
_TIME = re.compile(r"(?P<hour>\d\d):(?P<minute>\d\d)(:(?P<second>\d\d)([.,](?P<fraction>\d+))?)?", re.ASCII)
MICROSECOND_DIGITS = 6
_YEAR_2000 = 946_684_800_000_000  # microseconds since 1970; PostgreSQL counts from there, and rounds away from it
_DAYS_OF_400_YEARS = 146_097
_DAY_SECONDS, _MICROSECONDS = 86_400, 1_000_000
_EPOCH_DAYS = date(1970, 1, 1).toordinal()
_LONGEST_OFFSET_HOURS = 15


def microseconds_of(text: str) -> int:
    """Return microseconds since 1970 in UTC; finer fractions are rounded as PostgreSQL does.

    Raises:
        ValueError: it is no moment.
    """
    try:
        return _of_iso(text)
    except ValueError:
        return _of_match(_match(text))


def rounded_microseconds(microseconds: int, digits: int) -> int:
    """Return microseconds since 1970, rounded to so many digits of a second as PostgreSQL does for a column."""
    unit: int = 10 ** (MICROSECOND_DIGITS - digits)
    if unit == 1:
        return microseconds
    since = microseconds - _YEAR_2000
    rounded = (abs(since) + unit // 2) // unit * unit
    return _YEAR_2000 + (rounded if since >= 0 else -rounded)


def day_of(text: str) -> str:
    """Return the day of a date, or of a moment in UTC, as PostgreSQL writes it.

    Raises:
        ValueError: it is neither.
    """
    return day_text(days_of(text))


def day_text(days: int) -> str:
    """Return the day so many days after 1970-01-01, as PostgreSQL writes it."""
    day, era = _day_and_era(days)
    return f"{day}{era}"


def moment_text(since_1970: int, units: int, zone: str) -> str:
    """Return a moment that is counted in so many units a second, in ISO 8601; `zone` stands behind it."""
    days, of_day = divmod(since_1970, _DAY_SECONDS * units)
    day, era = _day_and_era(days)
    seconds, fraction = divmod(of_day, units)
    return f"{day}T{_clock(seconds)}.{fraction:0{len(str(units)) - 1}d}{zone}{era}"


def time_text(microseconds: int) -> str:
    """Return a time of day as PostgreSQL writes it: without zeros at the end of its fraction."""
    seconds, fraction = divmod(microseconds, _MICROSECONDS)
    return f"{_clock(seconds)}.{fraction:06d}".rstrip("0").rstrip(".")


def time_of(text: str) -> str:
    """Return a time of day, as ISO 8601 and PostgreSQL write it, in PostgreSQL's own form.

    Raises:
        ValueError: it is none; it has a zone.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError("no time of a day")
    seconds = _seconds_of_day(match)
    return time_text(_rounded(seconds * _MICROSECONDS + Decimal(f"0.{match['fraction'] or 0}") * _MICROSECONDS))


def _clock(seconds: int) -> str:
    return f"{seconds // 3_600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def _day_and_era(days: int) -> tuple[str, str]:
    cycles, ordinal = divmod(days + _EPOCH_DAYS - 1, _DAYS_OF_400_YEARS)
    day = date.fromordinal(ordinal + 1)
    year = day.year + 400 * cycles
    return (f"{year:04d}-{day:%m-%d}", "") if year > 0 else (f"{1 - year:04d}-{day:%m-%d}", " BC")


def days_of(text: str) -> int:
    """Return the days since 1970 of a date, or of a moment in UTC.

    Raises:
        ValueError: it is neither.
    """
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH_DAYS
    except ValueError:
        return _of_match(_match(text)) // (_DAY_SECONDS * _MICROSECONDS)


def _of_iso(text: str) -> int:
    finer = _BEYOND_MICROSECONDS.search(text)
    moment = datetime.fromisoformat(_BEYOND_MICROSECONDS.sub("", text, count=1) if finer else text)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    delta = moment - _EPOCH
    microseconds = (delta.days * _DAY_SECONDS + delta.seconds) * _MICROSECONDS + delta.microseconds
    return microseconds if finer is None else _rounded(microseconds + Decimal(f"0.{finer[0]}"))


def _match(text: str) -> re.Match[str]:
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError("not a moment")
    return match


def _of_match(match: re.Match[str]) -> int:
    year = int(match["year"])
    if year == 0:
        raise ValueError("there is no year 0")
    astronomical = 1 - year if (match["era"] or "").upper() == "BC" else year
    cycles, of_cycle = divmod(astronomical - 1, 400)
    days = date(of_cycle + 1, int(match["month"]), int(match["day"])).toordinal() + cycles * _DAYS_OF_400_YEARS
    seconds = (days - _EPOCH_DAYS) * _DAY_SECONDS + _seconds_of_day(match) - _offset(match)
    fraction = Decimal(f"0.{match['fraction'] or 0}") * _MICROSECONDS
    return _rounded(seconds * _MICROSECONDS + fraction)


def _seconds_of_day(match: re.Match[str]) -> int:
    """Return the seconds since midnight: 24:00:00 is the midnight after, a 60th second the next minute."""
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    is_past_midnight = hour == 24 and (minute or second or int(match["fraction"] or 0))
    if hour > 24 or minute > 59 or second > 60 or is_past_midnight:
        raise ValueError("no time of a day")
    return hour * 3_600 + minute * 60 + second


def _offset(match: re.Match[str]) -> int:
    hours, minutes, seconds = (int(match[name] or 0) for name in ("hours", "minutes", "seconds"))
    if hours > _LONGEST_OFFSET_HOURS or minutes > 59 or seconds > 59:
        raise ValueError("no offset from UTC")
    return (-1 if match["sign"] == "-" else 1) * (hours * 3_600 + minutes * 60 + seconds)


def _rounded(microseconds: Decimal) -> int:
    return int(microseconds.to_integral_value(rounding=ROUND_HALF_EVEN))
