"""Split business keys into the parts that the columns of a table hold."""

import json
from collections.abc import Sequence

from makewhole.model.errors import ActionRefusedError, RefusedError
from makewhole.model.refusal import RefusalCode


def key_components(key: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Split a business key's text: one component is the text itself, several are a JSON array of strings.

    Raises:
        RefusedError: it has another number of components, or PostgreSQL cannot hold it as text.
    """
    parts = [key] if len(columns) == 1 else json.loads(key)
    if not isinstance(parts, list) or len(parts) != len(columns):
        raise RefusedError(f"a key does not have the {len(columns)} components that {', '.join(columns)} ask for")
    if any("\0" in part for part in parts):
        raise ActionRefusedError.of(
            RefusalCode.UNFIT, f"{', '.join(columns)} cannot hold this key: it has a NUL character"
        )
    return tuple(parts)


def key_fields(columns: Sequence[str]) -> list[str]:
    """Return the names of a key's components as parameters of a statement, or as fields of the JSON that it reads."""
    return [f"key_{place}" for place in range(len(columns))]


def key_parameters(columns: Sequence[str], key: str) -> dict[str, str]:
    """Return the components of a key by the names of `key_fields`."""
    return dict(zip(key_fields(columns), key_components(key, columns), strict=True))
