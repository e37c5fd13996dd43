"""Find which filters (`where`) a copy in the key index passes: by the filter itself, not by the hop that has it.

What passes a filter is a property of a record and a filter. A run notes the filters that its window knew, by their
digests, and each row those of them that exclude it; of any other filter it says nothing.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import polars as pl

from makewhole.config.hops.where import Operator, WhereTerm, parse_where
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline

_DIGITS = 16
_FILTERS, _EXCLUDED = "filters", "excluded_by"

Places = Mapping[str, str]
"""Column → where it stands."""
NO_PLACES: Places = MappingProxyType({})
NO_TYPES: Mapping[str, str] = MappingProxyType({})

UNKNOWN_FILTER = "?"
"""Stands in `excluded_by` in the place of a hop: whether the copy passes its filter is not known."""


def filter_digest(where: str, places: Places = NO_PLACES, types: Mapping[str, str] = NO_TYPES) -> str:
    """Return what two spellings of one filter have in common. `places`: of the columns that stand elsewhere than their
    name says, at the source of the hop. `types`: by which columns are compared, where it matters which."""
    terms: Sequence[Any] = sorted(_spelling(term, places) for term in parse_where(where))
    named = sorted({(term.column, types[term.column]) for term in parse_where(where) if term.column in types})
    terms = [*terms, *named]
    return hashlib.sha256(repr(terms).encode()).hexdigest()[:_DIGITS]


def _spelling(term: WhereTerm, places: Places) -> tuple[str, ...]:
    """Return what all spellings of a term have in common: a list of one literal is that literal, in any order."""
    literals = sorted({repr(literal) for literal in term.literals})
    operator = term.operator
    if len(literals) == 1:
        operator = {Operator.IN: Operator.EQUAL, Operator.NOT_IN: Operator.UNEQUAL}.get(operator, operator)
    named = () if operator is Operator.EQUAL else (operator.value,)
    return places.get(term.column, term.column), *named, *literals


@dataclass(frozen=True, kw_only=True)
class KnownFilters:
    """The filters of a window: hop → `where` (empty: it had none), and the places of their columns by hop, where these
    stand elsewhere than their name says."""

    texts: Mapping[str, str]
    columns: Mapping[str, Places] = field(default_factory=dict)

    @classmethod
    def of(cls, pipeline: Pipeline) -> "KnownFilters":
        """Return those of a pipeline file."""
        columns = {hop.name: filter_places(pipeline, hop) for hop in pipeline.hops}
        return cls(
            texts={hop.name: hop.where or "" for hop in pipeline.hops},
            columns={name: places for name, places in columns.items() if places},
        )

    @classmethod
    def from_document(cls, configuration: Mapping[str, Any]) -> "KnownFilters":
        """Return those that were recorded of a window's configuration."""
        return cls(texts=configuration.get("filters", {}), columns=configuration.get("filter_columns", {}))

    @property
    def document(self) -> dict[str, Any]:
        """The part of a window's configuration that records them."""
        columns = {name: dict(places) for name, places in self.columns.items()}
        return {"filters": dict(self.texts), **({"filter_columns": columns} if columns else {})}

    def shown(self, hop: str) -> str:
        """Return a hop's filter for people, with the places of its columns; empty: it has none."""
        places = ", ".join(f"{name} at {place}" for name, place in self.columns.get(hop, NO_PLACES).items())
        return f"{self.texts[hop]} ({places})" if places else self.texts[hop]

    def digest(self, hop: str) -> str:
        """Return what two spellings of a hop's filter have in common; empty: it has none."""
        where = self.texts[hop]
        return filter_digest(where, self.columns.get(hop, NO_PLACES)) if where else ""


def filter_places(pipeline: Pipeline, hop: Hop) -> dict[str, str]:
    """Return the places of the columns of a hop's filter that are read otherwise than as a field of their name."""
    known = pipeline.column_places.get(hop.source, {})
    columns = [term.column for term in (parse_where(hop.where) if hop.where else ())]
    return {name: known[name] for name in columns if name in known}


def changed_filters(pipeline: Pipeline, before: KnownFilters) -> dict[str, str]:
    """Return, of the hops whose filter was another one, that one; empty: it had none."""
    now = KnownFilters.of(pipeline)
    known = [name for name in now.texts if name in before.texts]
    return {name: before.texts[name] for name in known if now.digest(name) != before.digest(name)}


def still_readable(pipeline: Pipeline, before: KnownFilters, former: Mapping[str, str]) -> dict[str, str]:
    """Return those of the `former` filters (hop → `where`) whose columns the file of now reads where they were read."""
    hops = {hop.name: hop for hop in pipeline.hops}
    return {
        name: where
        for name, where in former.items()
        if filter_places(pipeline, replace(hops[name], where=where)) == dict(before.columns.get(name, NO_PLACES))
    }


def with_noted_filters(run: pl.DataFrame, filters: Mapping[str, str] | None, typed: Iterable[str] = ()) -> pl.DataFrame:
    """Note in a run which filters were known (`filters`: hop → digest), and in its rows those that exclude them, which
    are named by hop. None: nothing is known of any filter. `typed`: their digests with the types of their columns."""
    noted = pl.lit(",".join(sorted({*(filters or {}).values(), *typed}))).alias(_FILTERS)
    if _EXCLUDED not in run.columns or not run[_EXCLUDED].list.len().max():
        return run.with_columns(noted)
    named = pl.element().replace_strict(dict(filters or {}), default=None, return_dtype=pl.String).drop_nulls().unique()
    excluded = pl.col(_EXCLUDED).list.eval(named)
    return run.with_columns(noted, excluded.alias(_EXCLUDED))


def with_filter_of(
    run: pl.DataFrame, hop: Hop, places: Places = NO_PLACES, types: Mapping[str, str] = NO_TYPES
) -> pl.DataFrame:
    """Return rows of runs whose `excluded_by` says of this hop alone whether its filter excludes them; `UNKNOWN_FILTER`
    where their window did not know that filter. `places` and `types`: as in `filter_digest`."""
    if hop.where is None or _FILTERS not in run.columns:
        return run
    digest, typed = filter_digest(hop.where, places), filter_digest(hop.where, places, types)
    is_excluded = pl.col(_EXCLUDED).list.contains(digest).fill_null(False)
    # What passed by other types was held to its other side then; what did not may pass by those of now.
    is_known = _is_noted(digest) & (_is_noted(typed) | ~is_excluded)
    names = (
        pl.when(~is_known)
        .then(pl.lit([UNKNOWN_FILTER]))
        .when(is_excluded)
        .then(pl.lit([hop.name]))
        .otherwise(pl.lit([], dtype=pl.List(pl.String)))
    )
    return run.with_columns(names.alias(_EXCLUDED))


def _is_noted(digest: str) -> pl.Expr:
    return pl.col(_FILTERS).str.contains(digest, literal=True).fill_null(False)


def of_unknown_filter(copies: pl.DataFrame) -> pl.DataFrame:
    """Return the copies of which it is not known whether they pass the filter."""
    return copies.filter(pl.col(_EXCLUDED).list.contains(UNKNOWN_FILTER).fill_null(False))
