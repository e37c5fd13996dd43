"""Describe what one action writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PARTITION_COUNT = "partition_count"
"""The entry of `Payload.extra` with the number of partitions that the topic had when `partition` was chosen by key."""


@dataclass(frozen=True, kw_only=True)
class Payload:
    """The payload of one action. `extra` is JSON-able: origin, columns, before-images, `PARTITION_COUNT`."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Approximate size in memory."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers + len(extra_text(self.extra))


def extra_text(extra: Mapping[str, Any]) -> str:
    """Return `extra` as JSON, the same text for the same content."""
    return json.dumps(dict(extra), sort_keys=True, separators=(",", ":"))
