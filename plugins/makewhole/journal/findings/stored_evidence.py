"""Hold the evidence of a finding as the text that the journal has: most of it is never looked into."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec


class StoredEvidence(Mapping[str, Any]):
    """The fields of evidence, read from its JSON when the first of them is asked for; in a file it is the text again.

    `text`: a JSON object. Raises msgspec.DecodeError, at the first question, for anything else.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _fields(self) -> dict[str, Any]:
        return msgspec.json.decode(self._text, type=dict[str, Any])

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __repr__(self) -> str:
        return repr(self._fields)

    def __reduce__(self) -> tuple[type["StoredEvidence"], tuple[str]]:
        return StoredEvidence, (self._text,)
