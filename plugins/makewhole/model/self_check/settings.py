"""Describe where a self-check plants its faults, and how many."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, kw_only=True)
class SelfCheck:
    """The settings of a pipeline that makewhole checks itself with. `kafka` and `postgres` are ids of connections; the
    topic and the tables in the schema are the self-check's own.

    Each round sends `records`, and plants at most `faults` of each kind. Rows and records are kept for `keep`.
    """

    kafka: str
    postgres: str
    topic: str = "makewhole-self-check"
    schema: str = "makewhole_self_check"
    records: int = 400
    faults: int = 4
    keep: timedelta = timedelta(days=14)

    @property
    def group(self) -> str:
        """The consumer group of the loader that the self-check has in the place of people's own."""
        return f"{self.topic}-loader"


LEDGER_POINT, TOPIC_POINT, STORE_POINT = "sent", "events", "stored"
TOPIC_HOP, STORE_HOP = f"{LEDGER_POINT}→{TOPIC_POINT}", f"{TOPIC_POINT}→{STORE_POINT}"
"""The points and hops of a self-check's pipeline; the points in PostgreSQL are the tables of these names."""
