"""Find which filters (`where`) a copy in the key index passes: by the filter itself, not by the hop that has it.

What passes a filter is a property of a record and a filter. A run notes the filters that its window knew, by their
digests, and each row those of them that exclude it; of any other filter it says nothing.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from makewhole.config.hops.where import Operator, WhereTerm, parse_where
from makewhole.model.pipeline import Hop, Pipeline

_DIGITS = 16
_FILTERS, _EXCLUDED = "filters", "excluded_by"

UNKNOWN_FILTER = "?"
"""Stands in `excluded_by` in the place of a hop: whether the copy passes its filter is not known."""


def filter_digest(where: str) -> str:
    """Return what two spellings of one filter have in common."""
    terms: Sequence[Any] = sorted(map(_spelling, parse_where(where)))
    return hashlib.sha256(repr(terms).encode()).hexdigest()[:_DIGITS]


def _spelling(term: WhereTerm) -> tuple[str, ...]:
    """Return what all spellings of a term have in common: a list of one literal is that literal, in any order."""
    literals = sorted({repr(literal) for literal in term.literals})
    operator = term.operator
    if len(literals) == 1:
        operator = {Operator.IN: Operator.EQUAL, Operator.NOT_IN: Operator.UNEQUAL}.get(operator, operator)
    named = () if operator is Operator.EQUAL else (operator.value,)
    return term.column, *named, *literals


def changed_filters(pipeline: Pipeline, before: Mapping[str, str]) -> dict[str, str]:
    """Return, of the hops whose filter was another one, that one; empty: it had none. `before`: hop → `where`."""
    known = ((hop.name, hop.where or "", before[hop.name]) for hop in pipeline.hops if hop.name in before)
    return {name: former for name, now, former in known if _digest_if_any(now) != _digest_if_any(former)}


def _digest_if_any(where: str) -> str:
    return filter_digest(where) if where else ""


def with_noted_filters(run: pl.DataFrame, filters: Mapping[str, str] | None) -> pl.DataFrame:
    """Note in a run which filters were known (`filters`: hop → digest), and in its rows those that exclude them, which
    are named by hop. None: nothing is known of any filter."""
    noted = pl.lit(",".join(sorted({*(filters or {}).values()}))).alias(_FILTERS)
    if _EXCLUDED not in run.columns or not run[_EXCLUDED].list.len().max():
        return run.with_columns(noted)
    named = pl.element().replace_strict(dict(filters or {}), default=None, return_dtype=pl.String).drop_nulls().unique()
    excluded = pl.col(_EXCLUDED).list.eval(named)
    return run.with_columns(noted, excluded.alias(_EXCLUDED))


def with_filter_of(run: pl.DataFrame, hop: Hop) -> pl.DataFrame:
    """Return rows of runs whose `excluded_by` says of this hop alone whether its filter excludes them; `UNKNOWN_FILTER`
    where their window did not know that filter."""
    if hop.where is None or _FILTERS not in run.columns:
        return run
    digest = filter_digest(hop.where)
    is_noted = pl.col(_FILTERS).str.contains(digest, literal=True).fill_null(False)
    names = (
        pl.when(~is_noted)
        .then(pl.lit([UNKNOWN_FILTER]))
        .when(pl.col(_EXCLUDED).list.contains(digest).fill_null(False))
        .then(pl.lit([hop.name]))
        .otherwise(pl.lit([], dtype=pl.List(pl.String)))
    )
    return run.with_columns(names.alias(_EXCLUDED))


def of_unknown_filter(copies: pl.DataFrame) -> pl.DataFrame:
    """Return the copies of which it is not known whether they pass the filter."""
    return copies.filter(pl.col(_EXCLUDED).list.contains(UNKNOWN_FILTER).fill_null(False))
