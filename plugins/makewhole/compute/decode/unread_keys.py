"""Compare Kafka's own keys with the business keys of their records: where they have these, they say which key a record
may have that could not be read, and compaction takes no other business key's record away.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from makewhole.compute.decode.avro.encode import zigzag
from makewhole.compute.decode.coordinates import coordinate_keys
from makewhole.compute.decode.json_document import parse_json
from makewhole.compute.decode.read_record import RECORD_KEY, ReadRecord, is_in_record_key
from makewhole.compute.decode.record_values import ValueShape
from makewhole.compute.decode.schema_texts import PREFIX_BYTES
from makewhole.compute.key_values import part_text
from makewhole.compute.keys import KeyProblem, component_text
from makewhole.model.places.record_paths import path_names, written_path
from makewhole.model.points import TopicPoint

_MOST_COMPARED = 1_000
_MOST_FORMS = 16
_BITS = 64
_NO_WORD = r"[^\p{L}\p{N}]+"
_NO_KEY = "\0"
"""The text of what is no value of the key's type, and so no key of the topic's."""


def unread_keys(batch: pa.RecordBatch, keys: pl.Series, shape: ValueShape) -> pl.Series:
    """Return the business key of each record whose key could not be read (null in `keys`): its Kafka key, where that is
    the business key, or where all records of the batch that could be read have it so. Null: it may be any key, or has
    several elements. A key that is no content of a record needs no reading.

    `batch` has `headers`, and `key` where `shape` asks for it. What is no key of the topic has a text that is none; one
    whose schema is not known may be any key.
    """
    if shape.coordinates:
        return coordinate_keys(batch, shape.key)[0].fill_null(_NO_KEY)
    unread = keys.is_null().arg_true().to_list()
    business_keys: list[str | None] = [None] * len(keys)
    if unread and "key" in batch.schema.names and len(shape.key) == 1 and shape.elements is None:
        record_keys = _RecordKeys(batch, shape)
        place = next((place for place in _places(shape.key[0]) if record_keys.agree(keys, place)), None)
        if place is not None:
            for at, text in zip(unread, record_keys.texts(unread, place), strict=True):
                business_keys[at] = text
    return pl.Series(business_keys, dtype=pl.String)


def _places(part: str) -> Sequence[str]:
    """Return where Kafka's key may have a part of the business key: itself, or in a field of the same name."""
    return [part] if is_in_record_key(part) else [RECORD_KEY, RECORD_KEY + written_path(path_names(part)[-1:])]


@dataclass(frozen=True)
class _RecordKeys:
    """The record keys of a batch."""

    batch: Any
    shape: ValueShape

    def agree(self, keys: pl.Series, place: str) -> bool:
        """Return whether the records that could be read have their business key there; there is one at least, unless
        it is there by the shape."""
        if place == self.shape.key[0]:
            return True
        read = keys.is_not_null().arg_true().to_list()[:_MOST_COMPARED]
        texts = self.texts(read, place)
        return bool(read) and all(text == key for text, key in zip(texts, keys.gather(read).to_list(), strict=True))

    def texts(self, rows: Sequence[int], place: str) -> Iterator[str | None]:
        """Yield the texts that these rows have as business key there."""
        at = pa.array(rows, type=pa.int64())
        raw_keys, all_headers = (self.batch.column(name).take(at).to_pylist() for name in ("key", "headers"))
        for raw, headers in zip(raw_keys, all_headers, strict=True):
            try:
                record = ReadRecord(fields={}, record_key=raw, headers=headers, read_key=self.shape.record_key.read)
                part = record.part(place)
                yield None if raw is None else part_text(part, self.shape.key_kinds[0])
            except KeyProblem:
                yield None if self.shape.record_key.is_described else _NO_KEY


# Keys that compaction goes by


@dataclass(frozen=True, kw_only=True)
class ComparedKeys:
    """Numbers of records whose Kafka key was compared with their business key: those that have it there (`same`), and
    the `others`."""

    same: int = 0
    others: int = 0

    def __add__(self, more: "ComparedKeys") -> "ComparedKeys":
        return ComparedKeys(same=self.same + more.same, others=self.others + more.others)

    @property
    def agree(self) -> bool:
        """Return whether records were compared, and each has its business key in its Kafka key."""
        return self.same > 0 and not self.others


def is_compacted_by_key(key: Sequence[str]) -> bool:
    """Return whether the records of one Kafka key have one business key, by the places of its parts: compaction leaves
    the last record of each business key then."""
    return all(map(is_in_record_key, key))


def may_take_other_keys(point: TopicPoint, keys: ComparedKeys | None) -> bool:
    """Return whether compaction may take a record of a business key that no newer record has: elements, which the newer
    record of their Kafka key need not have, and records whose Kafka key does not have the business key, or of which
    that is not known."""
    return point.explode is not None or not (is_compacted_by_key(point.key) or (keys is not None and keys.agree))


def compare_record_keys(batch: pa.RecordBatch, keys: pl.Series, parts: Sequence[str]) -> ComparedKeys:
    """Count the records of a batch (columns `key`, `is_aborted`) whose Kafka key has every part of their business key
    (`keys`) that is not there by its place: as words of a text, as values in JSON, or as Avro or Kafka's own
    serializers write it. Those without a business key, and aborted ones, are not counted.

    All records are compared that have a part alone in a usual form; of those in other forms the first thousand, and the
    rest is taken to be as they are.
    """
    raw = pl.Series("raw", pl.from_arrow(batch.column("key").cast(pa.binary())), dtype=pl.Binary)
    is_aborted = pl.Series("is_aborted", pl.from_arrow(batch.column("is_aborted")), dtype=pl.Boolean)
    frame = pl.DataFrame([raw, _texts(raw), keys.alias("key"), is_aborted])
    frame = frame.filter(pl.col("key").is_not_null() & ~pl.col("is_aborted"))
    asked = [at for at, part in enumerate(parts) if not is_in_record_key(part)]
    left = frame.select("raw", "text", *_part_columns(len(parts), asked))
    if len(parts) == 1:
        left = _in_other_forms(left)
    left = left.head(_MOST_COMPARED)
    names = left.columns[2:]
    left = left.filter(~pl.all_horizontal(_has_words(pl.col("text"), pl.col(name)) for name in names))
    others = sum(not _has_parts(raw_key, texts) for raw_key, _, *texts in left.iter_rows())
    return ComparedKeys(same=len(frame) - others, others=others)


def _in_other_forms(left: pl.DataFrame) -> pl.DataFrame:
    """Return the records whose Kafka key is neither their business key (`part`) nor has it as a whole word between the
    same texts as another record of the batch does."""
    left = left.filter((pl.col("text") != pl.col("part")).fill_null(True))
    for _ in range(_MOST_FORMS):
        around = None if left.is_empty() else _texts_around(*left.select("text", "part").row(0))
        if around is None:
            break
        written = pl.concat_str(pl.lit(around[0]), "part", pl.lit(around[1]))
        left = left.filter((pl.col("text") != written).fill_null(True))
    return left


def _texts_around(text: str | None, part: str) -> tuple[str, str] | None:
    """Return what stands before and behind a part in a text; None where it is not there as a whole word."""
    before, separator, behind = (text or "").partition(part)
    is_word = not (before[-1:].isalnum() or behind[:1].isalnum())
    return (before, behind) if separator and is_word else None


def _texts(raw: pl.Series) -> pl.Series:
    """Return Kafka keys as texts (`text`), with a sign in place of bytes that are none."""
    try:
        return raw.cast(pl.String).alias("text")
    except pl.exceptions.PolarsError:
        texts = [None if key is None else key.decode(errors="replace") for key in raw]
        return pl.Series("text", texts, dtype=pl.String)


def _part_columns(count: int, asked: Sequence[int]) -> Iterator[pl.Expr]:
    """Yield the parts of the column `key` that are asked for."""
    if count == 1:
        yield pl.col("key").alias("part")
        return
    parts = pl.col("key").str.json_decode(pl.List(pl.String))
    for at in asked:
        yield parts.list.get(at).alias(f"part {at}")


def _has_words(text: pl.Expr, part: pl.Expr) -> pl.Expr:
    """Return whether a text has the words of a part, one behind the other."""
    words = _words(part)
    held = pl.concat_str(pl.lit(" "), _words(text), pl.lit(" "))
    is_there = held.str.contains(pl.concat_str(pl.lit(" "), words, pl.lit(" ")), literal=True)
    return ((words != "") & is_there).fill_null(False)


def _words(text: pl.Expr) -> pl.Expr:
    return text.str.replace_all(_NO_WORD, " ").str.strip_chars(" ").str.to_lowercase()


def _has_parts(raw: bytes | None, parts: Sequence[str]) -> bool:
    if raw is None:
        return False
    body = raw[PREFIX_BYTES:] if raw[:1] == b"\0" else raw
    if {*parts} <= {*_values_in_json(body)}:
        return True
    return body == b"".join(map(_in_avro, parts)) or (len(parts) == 1 and raw in _big_endian(parts[0]))


def _values_in_json(raw: bytes) -> Iterator[str]:
    """Yield the values of a document as parts of a key; none of what is no JSON."""
    try:
        held = [parse_json(raw)]
    except KeyProblem:
        return
    while held:
        value = held.pop()
        if isinstance(value, dict | list):
            held += value.values() if isinstance(value, dict) else value
            continue
        try:
            yield component_text(value)
        except KeyProblem:
            continue


def _in_avro(part: str) -> bytes:
    """Return a part as Avro writes it: a whole number as `long`, all else as `string`."""
    number = _whole_number(part)
    if number is not None:
        return zigzag(number)
    text = part.encode()
    return zigzag(len(text)) + text


def _big_endian(part: str) -> Iterable[bytes]:
    """Yield a whole number as Kafka's serializers of integers write it."""
    number = _whole_number(part)
    for size in () if number is None else (2, 4, 8):
        if number is not None and -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1:
            yield number.to_bytes(size, "big", signed=True)


def _whole_number(part: str) -> int | None:
    """Return the number that a part is, of up to 64 bits; None: it is none."""
    try:
        number = json.loads(part)
    except ValueError:
        return None
    is_whole = isinstance(number, int) and not isinstance(number, bool) and number.bit_length() < _BITS
    return number if is_whole else None
