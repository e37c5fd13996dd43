"""What compensation itself wrote to topics, by the journal: what tells a genuine replay from a forged header."""

from collections.abc import Sequence

import polars as pl

from makewhole.journal import leases, plans


def replayed_keys(journal_dsn: str, pipeline: str, plan_ids: Sequence[str]) -> pl.DataFrame:
    """Columns `plan` and `key_hash` (32 hexadecimal digits), both text, one row per record that such a plan of this
    pipeline may have written; ids that are no plan of it give no row."""
    with leases.session(journal_dsn) as journal:
        rows = plans.replayed_keys(journal, pipeline, plan_ids)
    return pl.DataFrame(rows, schema={"plan": pl.String, "key_hash": pl.String}, orient="row")
