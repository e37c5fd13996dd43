"""Compare a ledger, a topic and a store with datacompy, hop by hop.

It numbers the copies of a key on each side and pairs those with the same number: what one side has more often is
reported as rows of that side alone. It has no verdicts of keys.
"""

from datacompy import SparkSQLCompare
from pyspark.sql import DataFrame

from bench.windows.plain_spark import Points, answer


def compare(points: Points) -> dict[str, tuple[int, int, int]]:
    """Return by hop: rows in the source alone, rows in the target alone, rows of both that are unequal."""
    # Kept, because it looks at the rows a dozen times. And where a key has several it joins a side to itself by the
    # places of its rows, which may be others at the next read.
    ledger, topic, store = (rows.cache() for rows in (points.ledger, points.topic, points.store))
    return {"ledger→orders": _rows_apart(ledger, topic), "orders→store": _rows_apart(topic, store)}


def _rows_apart(source: DataFrame, target: DataFrame) -> tuple[int, int, int]:
    compared = SparkSQLCompare(source.sparkSession, source, target, join_columns="order_id")
    unequal = compared.intersect_rows.count() - compared.count_matching_rows()
    return compared.df1_unq_rows.count(), compared.df2_unq_rows.count(), unequal


if __name__ == "__main__":
    answer(compare)
