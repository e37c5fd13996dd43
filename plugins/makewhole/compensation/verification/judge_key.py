"""Judge one finding again from the rows and records of its key as they are now. Values are compared always."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from makewhole.compensation.sources.source_values import SourceValues
from makewhole.compensation.sources.sources import Sources
from makewhole.compensation.verification.committed_since import CopiesByKey
from makewhole.compensation.verification.downstream import (
    TopicRecords,
    copies_pass,
    copy_that_counts,
    expected_at_stores,
)
from makewhole.compute.versions import is_later_version, version_number
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Hop
from makewhole.model.places.compared_columns import columns_read_at, compared_on
from makewhole.model.points import can_look_up, has_log
from makewhole.model.verdict import Finding, Verdict
from makewhole.signing.mask import Mask, compared_values
from makewhole.tables.rows import Values, differing_columns
from makewhole.window.masks import mask_of, mask_on

Stores = Mapping[str, CopiesByKey]
_SHOWN = 10


class KeyJudge:
    """Judges a key by what its sources, topics and stores have of it. Load the findings before judging them."""

    def __init__(self, sources: Sources, written: Mapping[str, CopiesByKey]) -> None:
        """Take the sources, and the copies that came to topics since compensation began, by point."""
        self._pipeline, self._written = sources.pipeline, written
        self._values, self._records = SourceValues(sources), TopicRecords(sources)
        self._hops = {hop.name: hop for hop in sources.pipeline.hops}

    def load(self, findings: Sequence[Finding]) -> None:
        """Read what the evidence of the findings does not say."""
        self._values.load(findings)
        repeated = (finding for finding in findings if self._is_repeated_in_topic(finding))
        self._records.load(repeated, self._values.load_records)

    def judge(self, item: JudgedFinding, stores: Stores) -> JudgedFinding:
        """Return the finding with its outcome by these rows of the stores downstream."""
        finding = item.finding
        try:
            problem = self._problem(finding, stores)
        except RefusedError as error:
            problem = str(error)
        if problem is not None:
            outcome = "refused" if item.outcome == "refused" else "open"
            return replace(item, outcome=outcome, reason=item.reason if outcome == "refused" else problem)
        if self._is_repeated_in_topic(finding):
            reason = "every store downstream that takes the key holds it once"
            return replace(item, outcome="contained", reason=reason)
        hop = self._hops[finding.hop]
        is_known_now = finding.verdict is Verdict.UNEXPECTED and stores[hop.target].get(finding.key)
        return replace(item, outcome="repaired", reason=f"{hop.source} has it by now" if is_known_now else None)

    def with_compared_values(self, item: JudgedFinding, stores: Stores) -> JudgedFinding:
        """Add both sides' values to the evidence of a duplicate in a store that stays open, where no row agrees."""
        finding, store = item.finding, self._store_of(item.finding)
        if item.outcome != "open" or finding.verdict is not Verdict.DUPLICATE or store is None:
            return item
        try:
            values = self._values.of(finding)
        except RefusedError:
            return item
        mask = mask_of(finding)
        rows = [_values(copy) for copy in _masked(stores.get(store, {}).get(finding.key, []), mask)]
        if not values or not rows or any(not differing_columns(row, values) for row in rows):
            return item
        names = sorted({name for row in rows for name in differing_columns(row, values)})
        compared = {"source": dict(values), store: rows[:_SHOWN]}
        # The file may name columns since the window was judged.
        now = mask_on(self._pipeline, self._hops[finding.hop]) if mask is None else None
        compared = compared if now is None else compared_values(now, compared)
        reason = f"{item.reason}, and no row agrees with the source in {', '.join(names)}; correct one of them by hand"
        return replace(
            item, finding=replace(finding, evidence={**finding.evidence, "compared": compared}), reason=reason
        )

    def _store_of(self, finding: Finding) -> str | None:
        """Return the table that the finding's hop ends in; None: it is a topic."""
        target = self._pipeline.points[self._hops[finding.hop].target]
        return target.name if can_look_up(target) else None

    def _is_repeated_in_topic(self, finding: Finding) -> bool:
        return finding.verdict is Verdict.DUPLICATE and self._store_of(finding) is None

    def _problem(self, finding: Finding, stores: Stores) -> str | None:
        """Return why the key is not whole yet; None: it is."""
        hop = self._hops[finding.hop]
        if finding.verdict is Verdict.CONFLICT:
            return "one side has it with different values; say which is right, then run the window again"
        if finding.verdict is Verdict.UNEXPECTED:
            return self._unexpected_problem(hop, finding, stores)
        if can_look_up(self._pipeline.points[hop.target]):
            mask = mask_of(finding)
            copies = _masked(stores[hop.target].get(finding.key, []), mask)
            later = finding.evidence.get("later_sources")
            if later:
                return _later_problem(hop.target, copies, later, self._pipeline.version_unit(hop))
            problem = store_problem(hop.target, copies, self._values.of(finding))
            unit = self._pipeline.version_unit(hop)
            return problem or _version_problem(hop.target, copies, finding.evidence.get("latest", {}), unit)
        if finding.verdict is Verdict.MISMATCHED:
            return f"a record of {hop.target} cannot be changed"
        if finding.verdict is Verdict.MISSING:
            return self._unsent_problem(hop, finding) or self._downstream_problem(hop, finding, stores)
        return self._downstream_problem(hop, finding, stores)

    def _unexpected_problem(self, hop: Hop, finding: Finding, stores: Stores) -> str | None:
        if has_log(self._pipeline.points[hop.target]):
            return f"{hop.target} still holds it"
        copies = stores[hop.target].get(finding.key, [])
        if not copies:
            return None
        values = self._values_by_now(hop, finding)
        return f"{hop.target} still holds it" if values is None else store_problem(hop.target, copies, values)

    def _values_by_now(self, hop: Hop, finding: Finding) -> Values | None:
        """Return the values of an unexpected key that its source has by now; None: it does not have it."""
        if can_look_up(self._pipeline.points[hop.source]):
            return self._values.row_values(hop, finding.key) if self._values.has_row(hop, finding.key) else None
        copies = self._written[hop.source].get(finding.key, [])
        copy = copy_that_counts(copies, hop)
        return None if copy is None or copy["is_tombstone"] else self._values_of_copy(hop, copy)

    def _values_of_copy(self, hop: Hop, copy: Mapping[str, Any]) -> Values:
        return {name: copy.get(f"c:{name}") for name in compared_on(self._pipeline, hop)}

    def _unsent_problem(self, hop: Hop, finding: Finding) -> str | None:
        """Return why a missing record is not in its topic now with the source's values."""
        copies = _masked(self._written[hop.target].get(finding.key, []), mask_of(finding))
        if not copies:
            return f"no committed record of it came to {hop.target}"
        values = self._values.of(finding)
        if values is None:
            is_sent = any(copy["is_tombstone"] for copy in copies)
            return None if is_sent else f"no committed deletion of it came to {hop.target}"
        differing = [differing_columns(self._values_of_copy(hop, copy), values) for copy in copies]
        if all(differing):
            return f"the record of it that came to {hop.target} has other values in {', '.join(differing[-1])}"
        return None

    def _downstream_problem(self, hop: Hop, finding: Finding, stores: Stores) -> str | None:
        """Return why a store behind the topic is not as it should be."""

        def passes(filtered: Hop) -> bool | None:
            if finding.verdict is Verdict.MISSING:
                return copies_pass(self._written[hop.target].get(finding.key, []), filtered)
            return self._records.passes(finding, filtered)

        expected = expected_at_stores(self._pipeline, hop.target, passes)
        values = self._values.of(finding)
        shows = False
        mask = mask_of(finding)
        for store, must_hold in expected.items():
            copies = _masked(stores[store].get(finding.key, []), mask)
            if must_hold is None and not copies:
                continue
            problem = store_problem(store, copies, self._held_at(store, values) if must_hold is not False else None)
            if problem is not None:
                return problem
            shows = True
        if finding.verdict is Verdict.DUPLICATE and not shows:
            return f"{hop.target} holds it more than once, and no store downstream could show that this did no harm"
        return None

    def _held_at(self, store: str, values: Values | None) -> Values | None:
        """Return those of a source's values that the hops into a store compare, too."""
        known = columns_read_at(self._pipeline, store)
        return None if values is None else {name: text for name, text in values.items() if name in known}


def _later_problem(
    store: str, copies: Sequence[Mapping[str, Any]], later: Sequence[Mapping[str, Any]], unit: Decimal
) -> str | None:
    """Return why a table is not as it should be: the key once, as other sources have it in their latest version."""
    same = [last for last in later if len(copies) == 1 and str(copies[0]["row_hash"]) == last.get("row_hash")]
    if any(_version_problem(store, copies, last, unit) is None for last in same):
        return None
    return f"{store} does not hold the later version of {', '.join(dict.fromkeys(last['source'] for last in later))}"


def _version_problem(
    store: str, copies: Sequence[Mapping[str, Any]], latest: Mapping[str, Any], unit: Decimal
) -> str | None:
    """Return why a table is not as it should be by the versions of its rows: `latest` (as evidence has it) surely has
    a later one, by `unit` or more."""
    number = version_number(latest.get("version"))
    is_older = any(is_later_version(number, copy["version"], unit) for copy in copies)
    return f"{store} holds an older version than {latest['version']}" if is_older else None


def store_problem(store: str, copies: Sequence[Mapping[str, Any]], values: Values | None) -> str | None:
    """Return why a store is not as it should be: the key once with these values, or (None) not at all."""
    if values is None:
        return f"{store} still holds it" if copies else None
    if len(copies) != 1:
        return f"{store} holds it {len(copies)} times" if copies else f"{store} does not hold it"
    differing = differing_columns(_values(copies[0]), values)
    return f"{store} holds other values in {', '.join(differing)}" if differing else None


def _masked(copies: Sequence[Mapping[str, Any]], mask: Mask | None) -> Sequence[Mapping[str, Any]]:
    """Return rows or records with their values, and the hashes of these, as masked evidence has them."""
    return copies if mask is None else [mask.copy(copy) for copy in copies]


def _values(copy: Mapping[str, Any]) -> dict[str, str | None]:
    return {name[2:]: text for name, text in copy.items() if name.startswith("c:")}
