"""Name the remedies that a view cannot have: what a plan writes, or takes values from, lies in a table."""

from collections.abc import Iterator, Mapping
from dataclasses import fields

from makewhole.model.errors import Problem
from makewhole.model.hops import FOR_ROWS, Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline

_KINDS = {"v": "a view", "f": "a foreign table", "m": "a materialized view"}


def unfit_remedies(pipeline: Pipeline, relations: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the remedies of hops that lead into a view, or take values from one; `relations`: table point → its kind in
    the catalogue."""
    for hop in pipeline.hops:
        for verdict in (item.name for item in fields(Remedies)):
            remedy: Remedy = getattr(hop.remedies, verdict)
            if remedy in FOR_ROWS and relations.get(hop.target) in _KINDS:
                yield _problem(pipeline, hop, verdict, hop.target, relations, f"'{remedy.value}' cannot write into it")
            elif remedy in (*FOR_ROWS, Remedy.PRODUCE) and relations.get(hop.source) in _KINDS:
                yield _problem(pipeline, hop, verdict, hop.source, relations, f"'{remedy.value}' takes values from it")


def _problem(pipeline: Pipeline, hop: Hop, verdict: str, name: str, relations: Mapping[str, str], act: str) -> Problem:
    point = pipeline.table(name)
    return Problem(
        file="pipeline file",
        path=f"hops {hop.name}.compensation.{verdict}",
        found=f"{point.table} (point {name}) is {_KINDS[relations[name]]}, and {act}",
        remedy=f"Write `{verdict}: report`, or name the table that its rows lie in",
    )
