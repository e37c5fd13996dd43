"""Watch every byte of people's tables and topics while makewhole is at work: what no plan names stays as it was."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from tests.world.consumer import Record, read_records
from tests.world.windows import ReconciledShop

PLAN_HEADER = "makewhole-plan"
OF_NOTHING_COMPARED: dict[str, Any] = {"status": "new"}
"""The columns that nothing compares, with what the table itself gives them."""

STATUS = ", status text default 'new'"
"""That column, for tables of orders. Other systems write it at any moment."""

TableRow = Mapping[str, Any]
"""Column → value, as `to_jsonb` writes it."""

_TABLES = """
    select format('%I.%I', schemaname, tablename) from pg_tables
    where schemaname <> all (array['makewhole', 'pg_catalog', 'information_schema']) order by 1
"""
_NAMED = """
    select a.target, a.key, a.remedy from makewhole.planned_action a join makewhole.plan p on p.id = a.plan
    where p.number = %s and p.state in ('running', 'done') and a.refusal is null
"""


@dataclass(frozen=True)
class RowText:
    """A row: `literal` is PostgreSQL's own text of all its columns, `document` is what `to_jsonb` makes of it."""

    literal: str
    document: str

    @cached_property
    def columns(self) -> TableRow:
        """The row by its columns, numbers to the last digit."""
        return dict(json.loads(self.document, parse_float=Decimal))


@dataclass(frozen=True)
class Contents:
    """All that people's systems hold: the rows of each table, the records of each topic by partition and offset."""

    tables: Mapping[str, Sequence[RowText]]
    topics: Mapping[str, Mapping[tuple[int, int], Record]]


@dataclass(frozen=True)
class Named:
    """Hold what plans name: (table or topic, key) → the remedies of its actions, one for each."""

    remedies: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)

    def of(self, place: str, key: str) -> Sequence[str]:
        """Return the remedies that a key has at a place."""
        return self.remedies.get((place, key), ())


NOTHING = Named()


@dataclass
class Watch:
    """Looks at a shop whenever it is asked, and notes what makewhole changed without a plan that names it.

    `places`: point → its table (`schema.table`) or topic. `compared`: the columns that a repair of a row may change.
    `key_of`: the business key of a row, or of the document of a record, as a plan names it.
    """

    shop: ReconciledShop
    places: Mapping[str, str]
    compared: Set[str]
    key_of: Callable[[Mapping[str, Any]], str] = lambda columns: str(columns["id"])
    found: list[str] = field(default_factory=list)
    _last: Contents | None = None

    def begin(self) -> None:
        """Take what there is now for what has to stay."""
        self._last = self.contents()

    def expect_nothing(self) -> None:
        """Note everything that is other than at the look before: makewhole has only read since."""
        self._compare(NOTHING)

    def expect_what_is_named(self, window: int) -> None:
        """Note what is other than at the look before, and what no plan of a window names."""
        remedies: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for target, key, remedy in self.shop.journal_sql(_NAMED, window):
            remedies[self.places[target], key].append(remedy)
        self._compare(Named(remedies))

    def contents(self) -> Contents:
        """Return all that there is."""
        tables = [table for (table,) in self.shop.sql(_TABLES)]
        topics = [self.shop.topic, *self.shop.more_topics]
        return Contents({table: self._rows(table) for table in tables}, {topic: self._log(topic) for topic in topics})

    def _compare(self, named: Named) -> None:
        assert self._last is not None
        now = self.contents()
        self.found += differences_of_contents(self._last, now, named, self.compared, self.key_of)
        self._last = now

    def _rows(self, table: str) -> list[RowText]:
        return table_rows(self.shop, table)

    def _log(self, topic: str) -> dict[tuple[int, int], Record]:
        # A committed read would stop before an open transaction, and leave out what comes after it.
        records = read_records(self.shop.bootstrap, topic, "read_uncommitted")
        return {(record.partition, record.offset): record for record in records}


def places(shop: ReconciledShop) -> dict[str, str]:
    """Return what the points of a shop's own pipeline are: its tables and its topic."""
    return {"outbox": "public.outbox", "orders": shop.topic, "warehouse": "public.warehouse"}


def table_rows(shop: ReconciledShop, table: str) -> list[RowText]:
    """Return the rows of a table, ordered by their texts."""
    return [RowText(*row) for row in shop.sql(f"select t::text, to_jsonb(t)::text from {table} t order by 1, 2")]


def differences_of_contents(
    before: Contents,
    after: Contents,
    named: Named,
    compared: Collection[str],
    key_of: Callable[[Mapping[str, Any]], str],
) -> list[str]:
    """Return everything that changed without a plan that names it; of a row that one names, the columns that are not
    compared."""
    differences = [f"{table} is gone" for table in sorted(set(before.tables) - set(after.tables))]
    for table, rows in after.tables.items():
        gone, come = Counter(before.tables.get(table, ())) - Counter(rows), Counter(rows)
        come -= Counter(before.tables.get(table, ()))
        keys = {key_of(row.columns) for row in (*gone, *come)}
        for key in sorted(keys):
            old, new = (
                [element.columns for element in some.elements() if key_of(element.columns) == key]
                for some in (gone, come)
            )
            changes = _of_rows(old, new, named.of(table, key), set(compared))
            differences += [f"{key} in {table} {text}: {old} → {new}" for text in changes]
    for topic, log in after.topics.items():
        differences += [f"{topic}: {text}" for text in _of_log(before.topics[topic], log, topic, named, key_of)]
    return differences


def _of_rows(
    gone: Sequence[TableRow], come: Sequence[TableRow], remedies: Sequence[str], compared: Set[str]
) -> Iterator[str]:
    left = list(gone)
    for row in come:
        if "upsert" not in remedies:
            yield "was written, and no plan names it"
            continue
        if not left:
            if any(row.get(name, value) != value for name, value in OF_NOTHING_COMPARED.items()):
                yield "has in a new row what the table does not put there"
            continue
        like = min(left, key=lambda other: len(_changed(other, row)))
        left.remove(like)
        if others := _changed(like, row) - compared:
            yield f"had {', '.join(sorted(others))} changed, which nothing compares"
    if left and "quarantine" not in remedies:
        yield "was taken away, and no plan says so"


def _changed(row: TableRow, other: TableRow) -> set[str]:
    return {name for name in {*row, *other} if row.get(name) != other.get(name)}


def _of_log(
    old: Mapping[tuple[int, int], Record],
    new: Mapping[tuple[int, int], Record],
    topic: str,
    named: Named,
    key_of: Callable[[Mapping[str, Any]], str],
) -> Iterator[str]:
    for place, record in old.items():
        if new.get(place) != record:
            yield f"the record at {place} is gone or another one"
    sent = Counter(_key_of_record(new[place], key_of) for place in new if place not in old)
    for key, count in sent.items():
        allowed = [remedy for remedy in named.of(topic, key) if remedy in ("produce", "redeliver")]
        if count > len(allowed):
            yield f"{key} was written {count} times, and plans name it {len(allowed)} times"


def _key_of_record(record: Record, key_of: Callable[[Mapping[str, Any]], str]) -> str:
    assert PLAN_HEADER in dict(record.headers), "another writer wrote into the topic"
    return key_of(record.document)
