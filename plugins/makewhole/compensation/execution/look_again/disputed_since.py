"""Refuse actions that go by a value which another window came to dispute after the plan was frozen, and those that
would change rows which a person has accepted since."""

import json
from collections import defaultdict

import polars as pl
import pyarrow as pa

from makewhole.journal.findings import window_findings
from makewhole.journal.replayed_positions import PlanInJournal
from makewhole.model.plan import ACCEPTED_BY, DISPUTED_BY
from makewhole.model.refusal import Refusal, refusal_by_acceptance, refusal_by_dispute
from makewhole.model.verdict import Finding, disputes_since

_TEXTS = ("hop", "key_hash", "before")


def disputed_since(plan: PlanInJournal, rows: pa.Table) -> dict[int, Refusal]:
    """Return why these actions (rows of a chunk) are not done, by action number: each names the finding that calls
    the value wrong, or not known, or the hop of the one that is accepted."""
    actions = _named(rows)
    if actions.is_empty():
        return {}
    with plan.transaction() as journal:
        hashes = actions["key_hash"].unique().to_list()
        found, accepted = window_findings.disputes_since_plan(journal, plan.plan.id, hashes)
    of_key: dict[str, list[tuple[int, Finding]]] = defaultdict(list)
    for number, finding in found:
        of_key[finding.key_hash].append((number, finding))
    refused: dict[int, Refusal] = {}
    for seq, hop, key_hash, named, changed in actions.iter_rows():
        kept = [one for one in json.loads(changed or "[]") if (one, key_hash) in accepted]
        disputing = [one for one in of_key.get(key_hash, ()) if disputes_since(json.loads(named or "{}"), one[1])]
        if kept:
            refused[seq] = refusal_by_acceptance(kept[0])
        elif disputing:
            source, _, target = hop.partition("→")
            number, finding = disputing[0]
            refused[seq] = refusal_by_dispute(finding, number, (source, target))
    return refused


def _named(rows: pa.Table) -> pl.DataFrame:
    """Return `seq`, `hop`, `key_hash`, `disputed_by` and `accepted_by` (JSON) of the actions that name hops."""
    texts = {name: pl.from_arrow(rows.column(name).cast(pa.string())) for name in _TEXTS}
    frame = pl.DataFrame({"seq": pl.from_arrow(rows.column("seq")), **texts}, schema_overrides={"before": pl.String})
    named = [pl.col("before").str.json_path_match(f"$.{name}").alias(name) for name in (DISPUTED_BY, ACCEPTED_BY)]
    found = frame.select("seq", "hop", "key_hash", *named)
    return found.filter(pl.any_horizontal(pl.col(DISPUTED_BY, ACCEPTED_BY).is_not_null()))
