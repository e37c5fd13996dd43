"""Find the texts that a capture sends in place of a value: they are no values, and say nothing of what they replace."""

import base64
from collections.abc import Sequence

import polars as pl

_UNAVAILABLE = "__debezium_unavailable_value"
PLACEHOLDERS = (_UNAVAILABLE, base64.b64encode(_UNAVAILABLE.encode()).decode())
"""Placeholders of Debezium for a value that PostgreSQL's log did not hold, in a text and in bytes (its option
`unavailable.value.placeholder`)."""
CANONICAL_PLACEHOLDERS = (*PLACEHOLDERS, *(f"!{text!a}" for text in PLACEHOLDERS))
"""The same as compared columns have them: where the declared type is no text it cannot hold them."""


def holds_placeholder(columns: Sequence[str]) -> pl.Expr:
    """Return whether a copy has a placeholder in one of these columns of canonical texts."""
    texts = (pl.col(name) == text for name in columns for text in CANONICAL_PLACEHOLDERS)
    return pl.any_horizontal(pl.lit(False), *texts).fill_null(False)
