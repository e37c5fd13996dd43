"""Put keyed digests in place of values, and seal the hashes of rows.

Equal ones stay equal, and without the key none can be guessed.

A digest is HMAC-SHA256 (RFC 2104) over the name of the column and the canonical text, cut to 128 bits. A hash of a row
is one block of AES-256, which the key opens again: digests of windows are computed from it.
"""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from makewhole.model.errors import CorruptionError
from makewhole.tables.rows import Values

MASKED = "masked"
"""The field of a finding's evidence that says which columns are masked, and by which key."""

KEY_BYTES = 32
_PREFIX = "masked:"
_DIGEST_BYTES, _NUMBER_BYTES, _ID_DIGITS = 16, 8, 8
_TAG = b"row hash"
_ROW_HASH = "row_hash"
_COMPARED = "c:"


@dataclass(frozen=True, kw_only=True)
class Mask:
    """The columns whose values are not shown (None: every one), and the key (`KEY_BYTES` bytes) of their digests. Null
    stays null. Of the columns `besides` the values are digests already."""

    columns: frozenset[str] | None
    key: bytes = field(repr=False)
    besides: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        """Name the key: the first 8 hexadecimal digits of a digest that is made with it."""
        return self._digest(b"id").hex()[:_ID_DIGITS]

    def text(self, column: str, text: str | None) -> str | None:
        """Return the digest of a value's canonical text (`masked:` and 32 hexadecimal digits); of a column that is not
        masked the text."""
        if text is None or not self._hides(column):
            return text
        content = b"\0".join((b"value", column.encode(), text.encode("utf-8", "surrogatepass")))
        return f"{_PREFIX}{self._digest(content)[:_DIGEST_BYTES].hex()}"

    def _hides(self, column: str) -> bool:
        return column not in self.besides and (self.columns is None or column in self.columns)

    def values(self, values: Values) -> dict[str, str | None]:
        """Return values by column, the masked ones as digests."""
        return {name: self.text(name, text) for name, text in values.items()}

    def copy(self, copy: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a row or record as frames have them (`c:` and the column's name, `row_hash`), masked."""
        masked = {
            name: self.text(name.removeprefix(_COMPARED), value) if name.startswith(_COMPARED) else value
            for name, value in copy.items()
        }
        row_hash = masked.get(_ROW_HASH)
        return masked if row_hash is None else {**masked, _ROW_HASH: self.seal(int(row_hash))}

    def evidence(self, evidence: Mapping[str, Any]) -> dict[str, Any]:
        """Return the evidence of a finding with every value of these columns as its digest, the hashes of rows sealed,
        and a mark of both. Evidence that has a mark keeps it: its hashes are sealed, and some of its values digests."""
        mark = evidence.get(MASKED)
        mask = self if mark is None else replace(self, besides=frozenset(mark["columns"]))
        masked = {name: _MASKED_FIELDS.get(name, _as_it_is)(mask, value) for name, value in evidence.items()}
        if mark is not None:
            return masked
        sealed: dict[str, Any] = self._sealed(masked)
        named = ["*"] if self.columns is None else sorted(self.columns)
        return {**sealed, MASKED: {"columns": named, "key": self.id}}

    def _sealed(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {
                name: self.seal(int(inner)) if name == _ROW_HASH and inner is not None else self._sealed(inner)
                for name, inner in value.items()
            }
        return [self._sealed(inner) for inner in value] if isinstance(value, list | tuple) else value

    def seal(self, row_hash: int) -> str:
        """Return a hash of a row (64 bits) as 32 hexadecimal digits: equal hashes have equal ones."""
        encryptor = self._cipher().encryptor()
        return (encryptor.update(_TAG + row_hash.to_bytes(_NUMBER_BYTES, "big")) + encryptor.finalize()).hex()

    def unseal(self, text: str) -> int:
        """Return the hash that was sealed.

        Raises:
            CorruptionError: it was not sealed with this key.
        """
        block = bytes.fromhex(text) if len(text) == 2 * _DIGEST_BYTES else b""
        decryptor = self._cipher().decryptor()
        opened = decryptor.update(block) + decryptor.finalize() if block else b""
        if not opened.startswith(_TAG):
            raise CorruptionError("the hash of a row in the evidence of a finding was not sealed with the mask's key")
        return int.from_bytes(opened.removeprefix(_TAG), "big")

    def _cipher(self) -> Cipher[modes.ECB]:
        # One block that no other content shares: a mode that chains blocks would hide which hashes are equal.
        return Cipher(algorithms.AES256(self._digest(b"hashes of rows")), modes.ECB())

    def _digest(self, content: bytes) -> bytes:
        return hmac.digest(self.key, content, "sha256")


def _as_it_is(_: Mask, value: Any) -> Any:
    return value


def _sides_of_columns(mask: Mask, columns: Mapping[str, Values]) -> dict[str, dict[str, str | None]]:
    return {name: {side: mask.text(name, text) for side, text in sides.items()} for name, sides in columns.items()}


def _held_copies(mask: Mask, sides: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {side: [{**copy, "values": mask.values(copy["values"])} for copy in held] for side, held in sides.items()}


def _totals(mask: Mask, group: Mapping[str, Any]) -> dict[str, Any]:
    totals = {name: mask.values(group[name]) for name in ("expected", "found") if group.get(name) is not None}
    return {**group, **totals}


def compared_values(mask: Mask, compared: Mapping[str, Any]) -> dict[str, Any]:
    """Return what verify compared, by place: values of the source, or a list of the values of rows."""
    return {
        place: mask.values(held) if isinstance(held, Mapping) else [mask.values(row) for row in held]
        for place, held in compared.items()
    }


_MASKED_FIELDS: Mapping[str, Callable[[Mask, Any], Any]] = {
    "values": Mask.values,
    "columns": _sides_of_columns,
    "conflict": _held_copies,
    "compared": compared_values,
    "group": lambda mask, group: _totals(mask, group) if isinstance(group, Mapping) else group,
}
