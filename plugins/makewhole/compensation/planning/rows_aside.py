"""Find the rows that stand in the way of a record: of a key that a ledger has, and the topic before their table lacks.

Its loader would add a second row, so that the record is not sent while the row is there; and the row stays while the
key is missing further up. Where both remedies are on, the row is put aside first, and then the record is sent.
"""

from collections.abc import Iterable, Iterator

from makewhole.compensation.planning.second_copies import already_in_table
from makewhole.model.pipeline import Hop, Pipeline, Remedy, TablePoint
from makewhole.model.verdict import Finding, Verdict


class RowsInTheWay:
    """The unexpected rows of some keys in tables, by the findings of all hops."""

    def __init__(self, pipeline: Pipeline, findings: Iterable[Finding]) -> None:
        """`findings`: all of their keys."""
        self._pipeline = pipeline
        self._hops = {hop.name: hop for hop in pipeline.hops}
        self._found: dict[tuple[str, str], list[tuple[Hop, Finding]]] = {}
        for finding in findings:
            hop = self._hops.get(finding.hop)
            if hop is not None and finding.verdict is Verdict.UNEXPECTED:
                self._found.setdefault((hop.target, finding.key_hash), []).append((hop, finding))

    def of(self, topic: str, finding: Finding) -> list[tuple[Hop, Finding]] | str:
        """Return the hops and findings by which rows are put aside before the record of a key comes to a topic, one for
        each table that would add a row; or why one of them cannot be."""
        found: dict[str, tuple[Hop, Finding]] = {}
        for table in sorted(self._pipeline.tables_that_add(topic)):
            rows = self._found.get((table, finding.key_hash), [])
            movable = [row for row in rows if row[0].remedies.unexpected is Remedy.QUARANTINE]
            if rows and not movable:
                return already_in_table(table, is_produced=True, hop=rows[0][0].name)
            for row in movable[:1]:
                found.setdefault(self._pipeline.points[table].place, row)
        return list(found.values())


def why_it_stays(pipeline: Pipeline, hop: Hop, missing: Hop) -> str:
    """Return why an unexpected row at the end of a hop stays whose key another hop misses, and the line to write."""
    kept = f"kept: {missing.source} has this key, which {missing.target} lacks: its row in {hop.target} is not extra"
    if missing.remedies.missing is Remedy.REPORT:
        is_ledger = isinstance(pipeline.points[missing.source], TablePoint)
        remedy = (Remedy.PRODUCE if is_ledger else Remedy.REDELIVER).value
        return (
            f"{kept}; write `missing: {remedy}` on hop {missing.name}: the row is put aside then, and its record sent"
        )
    return f"{kept}; its record is not sent, for the reason that is given at {missing.name}"


def missing_hops(pipeline: Pipeline, findings: Iterable[Finding]) -> dict[tuple[str, str], Hop]:
    """Return by (place, hash of a key) a hop that misses the key there or further up."""
    hops = {hop.name: hop for hop in pipeline.hops}
    found: dict[tuple[str, str], Hop] = {}
    for finding in findings:
        hop = hops.get(finding.hop)
        if finding.verdict is Verdict.MISSING and hop is not None:
            for place in _places(pipeline, hop):
                found.setdefault((place, finding.key_hash), hop)
    return found


def _places(pipeline: Pipeline, hop: Hop) -> Iterator[str]:
    return (pipeline.points[point].place for point in pipeline.from_here_on(hop.target))
