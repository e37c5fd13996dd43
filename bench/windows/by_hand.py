"""Compare a ledger, a topic and a store by the Spark job that people write by hand.

What plain Spark reads, and full outer joins: no archive, no evidence, no gate.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from bench.windows.orders import LEDGER_HOP, STORE_HOP
from bench.windows.plain_spark import Points, answer


def compare(points: Points) -> list[tuple[str, str, int]]:
    """Return (hop, verdict, keys) of everything that is no match."""
    ledger, topic, store = _by_key(points.ledger, "l"), _by_key(points.topic, "k"), _by_key(points.store, "s")
    joined = ledger.join(topic, "order_id", "full_outer").join(store, "order_id", "full_outer")
    counted = joined.select(_verdict("l", "k").alias("first"), _verdict("k", "s").alias("second"))
    rows = counted.groupBy("first", "second").count().collect()
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        for hop, verdict in ((LEDGER_HOP, row["first"]), (STORE_HOP, row["second"])):
            if verdict is not None and verdict != "matched":
                counts[hop, verdict] = counts.get((hop, verdict), 0) + row["count"]
    return [(hop, verdict, keys) for (hop, verdict), keys in sorted(counts.items())]


def _by_key(rows: DataFrame, side: str) -> DataFrame:
    grouped = rows.select("order_id", f.struct("amount", "status").alias("x")).groupBy("order_id")
    return grouped.agg(f.count("*").alias(f"{side}n"), f.first("x").alias(f"{side}v"))


def _verdict(source: str, target: str) -> Column:
    """Return the verdict of a key on a hop; null where neither side has it."""
    lacks_source, lacks_target = f.col(f"{source}n").isNull(), f.col(f"{target}n").isNull()
    return (
        f.when(lacks_source & lacks_target, None)
        .when(lacks_source, "unexpected")
        .when(lacks_target, "missing")
        .when(f.col(f"{target}n") > 1, "duplicate")
        .when(f.col(f"{source}v") != f.col(f"{target}v"), "mismatched")
        .otherwise("matched")
    )


if __name__ == "__main__":
    answer(compare)
