"""Find the example's broker and database, and define the few names its parts agree on."""

import argparse
import os
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import psycopg2
from psycopg2 import extensions

TOPIC = "flights"
PARTITIONS = 4
GROUP = "dw-loader"
TO_TOPIC = "outbox→flights"
TO_WAREHOUSE = "flights→warehouse"

COLUMNS = (
    "year",
    "month",
    "day",
    "dep_time",
    "sched_dep_time",
    "dep_delay",
    "arr_time",
    "sched_arr_time",
    "arr_delay",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "air_time",
    "distance",
    "hour",
    "minute",
)

# The airline's day begins at midnight in New York's winter, 05:00 UTC: no flight of the year leaves across that line.
DAY_STARTS = time(5, tzinfo=UTC)
FIRST_DAY = date(2013, 1, 1)
DAYS_IN_DATA = 365


@dataclass(frozen=True, kw_only=True)
class Systems:
    """The addresses of the broker and the database."""

    bootstrap: str
    dsn: str

    def database(self) -> extensions.connection:
        """Open a new connection that speaks UTC."""
        return psycopg2.connect(self.dsn, options="-c timezone=UTC", application_name="flights")

    @property
    def environment(self) -> dict[str, str]:
        """The same, for a child process: a password has no place on a command line."""
        return {"FLIGHTS_BOOTSTRAP": self.bootstrap, "FLIGHTS_DSN": self.dsn}


def add_systems(parser: argparse.ArgumentParser) -> None:
    """Add the two options every part takes; the environment may give them instead."""
    parser.add_argument("--bootstrap", default=os.environ.get("FLIGHTS_BOOTSTRAP", "127.0.0.1:9092"))
    parser.add_argument("--dsn", default=os.environ.get("FLIGHTS_DSN", "postgresql://127.0.0.1/local"))


def systems_of(arguments: argparse.Namespace) -> Systems:
    """Return the systems that the parsed options name."""
    return Systems(bootstrap=arguments.bootstrap, dsn=arguments.dsn)


def day_start(day: date) -> datetime:
    """Return the moment `day` begins for the airline, in UTC."""
    return datetime.combine(day, DAY_STARTS)


def day_after(day: date, days: int = 1) -> date:
    """Return `day` plus `days`."""
    return day + timedelta(days=days)


def schema_sql() -> str:
    """Return the SQL of the example's tables."""
    return Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
