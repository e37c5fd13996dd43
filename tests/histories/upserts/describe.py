"""Write the pipeline file of a history of versions."""

from tests.histories.upserts.events import History
from tests.histories.watched import STATUS
from tests.world.orders import COLUMNS
from tests.world.pipeline_file import Settings, fed_by_ledgers, flow, ledger, topic
from tests.world.windows import ReconciledShop


def describe(shop: ReconciledShop, history: History, region: str | None) -> None:
    """Write it with this filter on the hop to the store."""
    remedies = {"missing": "upsert", "mismatched": "upsert", "unexpected": "quarantine", "duplicate": "quarantine"}
    to_topic = {"missing": "produce" if history.has_version else "report"}
    if not history.is_repairing:
        remedies, to_topic = dict.fromkeys(remedies, "report"), dict.fromkeys(to_topic, "report")
    second, hop = _second(shop, history), {"semantics": "upsert", "compensation": flow(remedies)}
    more_hops: list[Settings] = [{"from": name, "to": "warehouse", **hop} for name in second]
    if history.is_direct:
        text = fed_by_ledgers(
            ["outbox", *second],
            hop=hop | _filter(region),
            columns=COLUMNS | shop.more_columns,
            has_version=history.has_version,
            gate="{allow_empty: true}",
            compensation="{limits: {share: 1.0, records_per_second: 100000}}",
        )
        shop.file.write_text(text)
        return
    shop.describe(
        topic_key="kafka.key",
        is_upsert=True,
        has_version=history.has_version,
        has_ledger=history.has_ledger,
        hop=hop | _filter(region),
        more_points=second,
        more_hops=more_hops,
        ledger_hop={"compensation": flow(to_topic)},
        allow_empty=True,
        compensation={"limits": "{share: 1.0, records_per_second: 100000}"},
    )


def _second(shop: ReconciledShop, history: History) -> dict[str, Settings]:
    """Return the second source of the table, by name."""
    if history.second == "ledger":
        return {"archive": ledger("db", "archive", version="version")}
    if history.second == "topic":
        return {"others": topic("log", shop.more_topics[0], key="kafka.key", version='"$.version"')}
    return {}


def _filter(region: str | None) -> dict[str, str]:
    return {} if region is None else {"where": f"\"region = '{region}'\""}


def make_tables(shop: ReconciledShop, history: History) -> None:
    """Make the tables; they have a column that nothing compares, and that other systems write."""
    version = f", version {history.version_type}" if history.has_version else ""
    shop.more_columns.update({"version": history.version_type} if history.has_version else {})
    shop.make_tables(version + STATUS)


def second_place(shop: ReconciledShop, history: History) -> dict[str, str]:
    """Make the second source of the table; return where it is, by the name of its point."""
    if history.second == "topic":
        return {"others": shop.add_topic()}
    if history.second == "ledger":
        shop.sql("create table archive (like outbox including all)")
        return {"archive": "public.archive"}
    return {}
