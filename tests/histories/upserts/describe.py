"""Write the pipeline file of a history of versions."""

from tests.histories.upserts.events import History
from tests.histories.watched import STATUS
from tests.world.orders import COLUMNS
from tests.world.pipeline_file import flow, ledger, pipeline_file, store, topic
from tests.world.windows import ReconciledShop


def describe(shop: ReconciledShop, history: History, region: str | None) -> None:
    """Write it with this filter on the hop to the store."""
    remedies = {"missing": "upsert", "mismatched": "upsert", "unexpected": "quarantine", "duplicate": "quarantine"}
    to_topic = {"missing": "produce" if history.has_version else "report"}
    if history.is_direct:
        _describe_direct(shop, history, remedies, region)
        return
    if not history.is_repairing:
        remedies, to_topic = dict.fromkeys(remedies, "report"), dict.fromkeys(to_topic, "report")
    second, hop = {}, {"compensation": flow(remedies)}
    if history.has_second:
        name = shop.more_topics[0]
        second = {"others": topic("log", name, key="kafka.key", version='"$.version"')}
    shop.describe(
        topic_key="kafka.key",
        is_upsert=True,
        has_version=history.has_version,
        has_ledger=history.has_ledger,
        hop=hop | _filter(region),
        more_points=second,
        more_hops=[{"from": name, "to": "warehouse", "semantics": "upsert", **hop} for name in second],
        ledger_hop={"compensation": flow(to_topic)},
        allow_empty=True,
        compensation={"limits": "{share: 1.0, records_per_second: 100000}"},
    )


def _describe_direct(shop: ReconciledShop, history: History, remedies: dict[str, str], region: str | None) -> None:
    """Write a file in which the ledger feeds the table."""
    version = {"version": "version"} if history.has_version else {}
    chosen = remedies if history.is_repairing else dict.fromkeys(remedies, "report")
    hop = {"from": "outbox", "to": "warehouse", "semantics": "upsert", "compensation": flow(chosen)}
    hop |= _filter(region)
    text = pipeline_file(
        "shop",
        points={"outbox": ledger("db", "outbox", **version), "warehouse": store("db", "warehouse", **version)},
        hops=[hop],
        settings={
            "start": "earliest",
            "settle": "0s",
            "compare": '{amount: "decimal(8,2)"}',
            "gate": "{allow_empty: true}",
            "compensation": "{limits: {share: 1.0, records_per_second: 100000}}",
        },
        columns=COLUMNS | shop.more_columns,
    )
    shop.file.write_text(text)


def _filter(region: str | None) -> dict[str, str]:
    return {} if region is None else {"where": f"\"region = '{region}'\""}


def make_tables(shop: ReconciledShop, history: History) -> None:
    """Make the tables; both have a column that nothing compares, and that other systems write."""
    version = f", version {history.version_type}" if history.has_version else ""
    shop.more_columns.update({"version": history.version_type} if history.has_version else {})
    shop.make_tables(version + STATUS)
