"""Load days of real departures (nycflights13) into the outbox, as the booking side would have written them."""

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from importlib import metadata
from pathlib import Path

from examples.flights.settings import COLUMNS, Systems, day_after, day_start

ABSENT = ("NA", "")


def flights_file() -> Path:
    """Return the data file inside the installed package; the package itself is not imported."""
    distribution = metadata.distribution("nycflights13")
    return Path(str(distribution.locate_file("nycflights13/data/flights.csv.zip")))


def read_flights(path: Path) -> Iterator[Mapping[str, str]]:
    """Yield every row of the file, values as text."""
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as raw:
        yield from csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8"))


def flight_id(row: Mapping[str, str]) -> str:
    """Return the business key: unique over the whole year."""
    return f"{row['time_hour']}|{row['carrier']}|{row['flight']}"


def outbox_row(row: Mapping[str, str]) -> list[str]:
    """Return the row of `ops.departures` for one line of the file; an absent value is `\\N`."""
    values = [flight_id(row), row["time_hour"], *(row[column] for column in COLUMNS), row["time_hour"]]
    return ["\\N" if value in ABSENT else value for value in values]


def days_of(rows: Iterable[Mapping[str, str]], first: date, days: int) -> Iterator[Mapping[str, str]]:
    """Return only the rows whose time falls into `days` airline days from `first` on."""
    start, end = day_start(first), day_start(day_after(first, days))
    for row in rows:
        if start <= datetime.fromisoformat(row["time_hour"]) < end:
            yield row


def load_outbox(systems: Systems, first: date, days: int, path: Path | None = None) -> int:
    """Copy the days into the outbox in one transaction; returns how many departures they have."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
    rows = 0
    for row in days_of(read_flights(path or flights_file()), first, days):
        writer.writerow(outbox_row(row))
        rows += 1
    text.seek(0)
    columns = ", ".join(["flight_id", "recorded_at", *COLUMNS, "time_hour"])
    database = systems.database()
    try:
        with database, database.cursor() as cursor:
            cursor.copy_expert(f"copy ops.departures ({columns}) from stdin", text)
    finally:
        database.close()
    return rows
