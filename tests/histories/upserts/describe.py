"""Write the pipeline file of a history of versions."""

from tests.histories.upserts.events import History
from tests.histories.watched import STATUS
from tests.world.pipeline_file import flow
from tests.world.windows import ReconciledShop


def describe(shop: ReconciledShop, history: History, region: str | None) -> None:
    """Write it with this filter on the hop to the store."""
    store = {"missing": "upsert", "mismatched": "upsert", "unexpected": "quarantine", "duplicate": "quarantine"}
    ledger = {"missing": "produce" if history.has_version else "report"}
    if not history.is_repairing:
        store, ledger = dict.fromkeys(store, "report"), dict.fromkeys(ledger, "report")
    shop.describe(
        topic_key="kafka.key",
        is_upsert=True,
        has_version=history.has_version,
        has_ledger=history.has_ledger,
        hop={"compensation": flow(store)} | ({} if region is None else {"where": f"\"region = '{region}'\""}),
        ledger_hop={"compensation": flow(ledger)},
        allow_empty=True,
        compensation={"limits": "{share: 1.0, records_per_second: 100000}"},
    )


def make_tables(shop: ReconciledShop, history: History) -> None:
    """Make the tables; both have a column that nothing compares, and that other systems write."""
    version = f", version {history.version_type}" if history.has_version else ""
    shop.more_columns.update({"version": history.version_type} if history.has_version else {})
    shop.make_tables(version + STATUS)
