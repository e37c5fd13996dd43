"""Render one part of a business key as the canonical text of its type: equal values give equal text on every system.

PostgreSQL itself renders a table's column (`postgres/key_columns.py`), with the same result. Every text can be read
back as a value of its type. Texts as they are (`STRING`) are `makewhole.compute.keys.component_text`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import polars as pl

from makewhole.compute.canonical import PLAIN_ADDRESS_PATTERN, address_text, canonical_text
from makewhole.compute.keys import KeyProblem, component_text
from makewhole.model.points import KeyType

NUMBER_PATTERN = r"[+-]?[0-9]+([.][0-9]+)?([eE][+-]?0*[0-9]{1,3})?"
UUID_PATTERN = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
TRUE_PATTERN, FALSE_PATTERN = "[tT]([rR][uU][eE])?", "[fF]([aA][lL][sS][eE])?"
"""Texts that are numbers, UUIDs and booleans, for Python and PostgreSQL alike."""
MOST_NUMBER_CHARACTERS = 1_000
_MOST_DIGITS = 2_000
LEAST_BIGINT, MOST_BIGINT = -(2**63), 2**63 - 1

_NUMBER, _UUID = re.compile(NUMBER_PATTERN), re.compile(UUID_PATTERN)
_TRUE, _FALSE = re.compile(TRUE_PATTERN), re.compile(FALSE_PATTERN)
_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?"
    "( ?([Zz]|UTC|utc)|[+-][0-9]{2}(:?[0-9]{2})?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOUNS = {KeyType.DECIMAL: "number", KeyType.INET: "network address"}


def unfit(kind: KeyType) -> str:
    """Return the reason why a part of a key is no value of its type."""
    return f"key is not a {_NOUNS.get(kind, kind.value)}"


def without_key(layout: Sequence[KeyType]) -> str:
    """Return the reason why a row has no key whose parts are of these types."""
    nouns = dict.fromkeys(_NOUNS.get(kind, kind.value) for kind in layout if kind is not KeyType.STRING)
    return "key is null or empty" if not nouns else f"key is null or empty, or not a {' and a '.join(nouns)}"


def part_text(value: Any, kind: KeyType) -> str:
    """Return the canonical text of one part of a key, from a JSON value or a text.

    Raises:
        KeyProblem: it is no value of this type; or null, empty, an object or an array.
    """
    text = component_text(value) if not isinstance(value, int | Decimal) or kind is KeyType.STRING else ""
    if kind is KeyType.STRING:
        return text
    try:
        return _RENDERERS[kind](value)
    except (ValueError, TypeError, InvalidOperation, OverflowError):
        raise KeyProblem(unfit(kind)) from None


def _char(value: Any) -> str:
    text = _text(value).rstrip(" ")
    if not text:
        raise ValueError
    return text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else component_text(value)


def _decimal(value: Any) -> str:
    """Render a number by its value: no exponent, no zeros at the end of a fraction, zero without a sign."""
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, str) and (len(value) > MOST_NUMBER_CHARACTERS or not _NUMBER.fullmatch(value)):
        raise ValueError
    number = Decimal(value)
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError
    if not number:
        return "0"
    if max(len(digits), len(digits) + exponent, -exponent) > _MOST_DIGITS:
        raise ValueError
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _bigint(value: Any) -> str:
    text = _decimal(value)
    if "." in text or not LEAST_BIGINT <= int(text) <= MOST_BIGINT:
        raise ValueError
    return text


def _uuid(value: Any) -> str:
    if not _UUID.fullmatch(value):
        raise ValueError
    digits = value.replace("-", "").lower()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _boolean(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if _TRUE.fullmatch(value):
        return "true"
    if _FALSE.fullmatch(value):
        return "false"
    raise ValueError


def _date(value: Any) -> str:
    if not _DATE.fullmatch(value):
        raise ValueError
    return date.fromisoformat(value).isoformat()


def _timestamp(value: Any) -> str:
    """Render a moment in UTC to the microsecond; one without an offset is UTC."""
    microseconds = canonical_text(value, "timestamp") if _TIMESTAMP.fullmatch(value) else None
    moment = _EPOCH + timedelta(microseconds=int(microseconds or ""))
    return moment.strftime(f"{moment.year:04d}-%m-%dT%H:%M:%S.%fZ")


def _inet(value: Any) -> str:
    return address_text(_text(value))


_RENDERERS: Mapping[KeyType, Callable[[Any], str]] = {
    KeyType.INET: _inet,
    KeyType.CHAR: _char,
    KeyType.BIGINT: _bigint,
    KeyType.DECIMAL: _decimal,
    KeyType.UUID: _uuid,
    KeyType.BOOLEAN: _boolean,
    KeyType.DATE: _date,
    KeyType.TIMESTAMP: _timestamp,
}


# Many at once

_CANONICAL: Mapping[KeyType, str] = {
    KeyType.CHAR: r"[^ ]$",
    KeyType.BIGINT: r"^(0|-?[1-9][0-9]{0,17})$",
    KeyType.DECIMAL: r"^(0|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]|-?[1-9][0-9]*)$",
    KeyType.UUID: r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    KeyType.TIMESTAMP: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z$",
    KeyType.INET: f"^{PLAIN_ADDRESS_PATTERN}$",
}
"""Texts that are canonical already; what does not match may be, too."""
_NEARLY: Mapping[KeyType, str] = {
    KeyType.DECIMAL: r"^-?(0|[1-9][0-9]*)\.[0-9]+$",
    KeyType.TIMESTAMP: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?Z?$",
    KeyType.UUID: r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
}


def canonical_keys(texts: pl.Series, kind: KeyType) -> tuple[pl.Series, pl.Series]:
    """Return the canonical texts of a column of texts and of numbers as JSON writes them, and the problems.

    Null where a text is no value of the type, and there the problem is not null. As `part_text`, but many at once.
    """
    nothing = pl.repeat(None, len(texts), dtype=pl.String, eager=True)
    if kind is KeyType.STRING:
        return texts, nothing
    usual = _usual(texts, kind)
    if kind in _NEARLY and (kind is KeyType.TIMESTAMP or not usual.all()):  # of a moment the form alone says too little
        texts = _rewritten(texts, kind)
        usual = _usual(texts, kind)
    if usual.all():
        return texts, nothing
    known = texts.filter(~usual).unique()
    rendered = [_rendered(text, kind) for text in known]
    keys = _replaced(texts, usual, known, [text for text, _ in rendered], texts)
    return keys, _replaced(texts, usual, known, [problem for _, problem in rendered], nothing)


def _rewritten(texts: pl.Series, kind: KeyType) -> pl.Series:
    """Make texts canonical that nearly are: numbers with zeros at the end of a fraction, UUIDs in capitals, moments in
    UTC with fewer digits."""
    is_short = texts.str.len_bytes() <= MOST_NUMBER_CHARACTERS
    nearly = texts.str.contains(_NEARLY[kind]).fill_null(False) & is_short
    text = pl.lit(texts)
    if kind is KeyType.UUID:
        new = text.str.to_lowercase()
    elif kind is KeyType.TIMESTAMP:
        new = _in_utc(text)
    else:
        new = text.str.strip_chars_end("0").str.strip_chars_end(".").replace("-0", "0")
    return pl.select(pl.when(nearly).then(new).otherwise(text)).to_series()


def _in_utc(text: pl.Expr) -> pl.Expr:
    """Write moments without an offset, or with that of UTC, to the microsecond; others stay as they are.

    A day that no month has is no moment, and stays as it is.
    """
    seconds = pl.concat_str(text.str.head(10), pl.lit("T"), text.str.slice(11, 8))
    digits = text.str.slice(20).str.strip_chars_end("Z").str.pad_end(6, "0")
    written = pl.concat_str(seconds, pl.lit("."), digits, pl.lit("Z"))
    is_real = seconds.str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False).is_not_null()
    return pl.when(is_real & ~text.str.starts_with("0000")).then(written).otherwise(pl.concat_str(pl.lit("!"), text))


def _usual(texts: pl.Series, kind: KeyType) -> pl.Series:
    if kind not in _CANONICAL:
        return pl.repeat(False, len(texts), dtype=pl.Boolean, eager=True)
    is_short = texts.str.len_bytes() <= MOST_NUMBER_CHARACTERS if kind is KeyType.DECIMAL else True
    return texts.str.contains(_CANONICAL[kind]).fill_null(False) & is_short


def _replaced(
    texts: pl.Series, usual: pl.Series, known: pl.Series, new: Sequence[str | None], others: pl.Series
) -> pl.Series:
    replaced = texts.replace_strict(known, pl.Series(new, dtype=pl.String), default=None, return_dtype=pl.String)
    return pl.select(pl.when(usual).then(others).otherwise(replaced)).to_series()


def _rendered(text: str | None, kind: KeyType) -> tuple[str | None, str | None]:
    try:
        return part_text(text, kind), None
    except KeyProblem as problem:
        return None, str(problem)
