"""Write the pipeline file of a history of routes, and make its tables."""

from collections.abc import Mapping

from tests.histories.routes.column_types import COLUMNS, KEYS, MAKE_TYPES
from tests.histories.routes.events import LEDGERS, TABLE_OF, TOPICS, History, Link
from tests.histories.watched import STATUS
from tests.world.pipeline_file import Settings, flow, ledger, pipeline_file, store, topic
from tests.world.windows import ReconciledShop

_REPORT = ("missing", "duplicate", "mismatched", "unexpected")


def topics_of(shop: ReconciledShop) -> dict[str, str]:
    """Return the names of the topics, by point."""
    return dict(zip(TOPICS, [shop.topic, *shop.more_topics], strict=True))


def group_of(shop: ReconciledShop, link: Link) -> str:
    """Return the group that carries a hop."""
    return f"{'-'.join(link)}-{shop.topic}"


def make_places(shop: ReconciledShop, history: History) -> None:
    """Make the tables, and the second topic. All have columns that nothing compares: number, at and status."""
    shop.add_topic()
    shop.sql(MAKE_TYPES)
    columns = ", ".join(f"c{at} {COLUMNS[name].name}" for at, name in enumerate(history.columns))
    for table in sorted(set(TABLE_OF.values())):
        shop.sql(f"create table {table} (id {KEYS[history.key].name}, number int, at timestamptz, {columns}{STATUS})")


def places(shop: ReconciledShop) -> dict[str, str]:
    """Return what the points are: their tables and topics."""
    return {point: f"public.{table}" for point, table in TABLE_OF.items()} | topics_of(shop)


def describe(shop: ReconciledShop, history: History) -> None:
    """Write the pipeline file."""
    names = topics_of(shop)
    points: dict[str, Settings] = {}
    of_file = "v" if history.is_named else "c"
    for point in dict.fromkeys(point for link in history.links for point in link):
        named = _columns(history, "$.c" if point in TOPICS else "c") if history.is_named else {}
        kind = topic("log", names[point]) if point in TOPICS else store("db", TABLE_OF[point])
        points[point] = {**(ledger("db", TABLE_OF[point]) if point in LEDGERS else kind), **named}
    compare = {f"{of_file}{at}": f'"{COLUMNS[name].declared}"' for at, name in enumerate(history.columns)}
    text = pipeline_file(
        "shop",
        points=points,
        hops=[_hop(shop, history, link) for link in history.links],
        settings={
            "start": "earliest",
            "settle": "0s",
            "compare": flow(compare),
            "gate": "{allow_empty: true}",
            "compensation": "{limits: {share: 1.0, records_per_second: 100000}}",
        },
        columns={"number": "int", "at": "timestamp"},
        is_observing=True,
    )
    shop.file.write_text(text)


def _columns(history: History, prefix: str) -> Settings:
    """Return where a point has the columns that the file calls otherwise."""
    return {"columns": flow({f"v{at}": f'"{prefix}{at}"' for at in range(len(history.columns))})}


def _hop(shop: ReconciledShop, history: History, link: Link) -> dict[str, str]:
    source, target = link
    remedies: Mapping[str, str] = dict.fromkeys(_REPORT, "report")
    if history.is_repairing and source in LEDGERS and target in TOPICS:
        remedies = {**remedies, "missing": "produce"}
    elif history.is_repairing and target in TOPICS:
        remedies = {**remedies, "missing": "redeliver" if history.redelivers else "report"}
    elif history.is_repairing:
        remedies = {"missing": "upsert", "mismatched": "upsert", "duplicate": "quarantine", "unexpected": "quarantine"}
    group = {"consumer_group": group_of(shop, link)} if history.has_groups and source in TOPICS else {}
    return {"from": source, "to": target, "compensation": flow(remedies), **group}
