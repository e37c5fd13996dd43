"""Keep the store of a history in every kind: tables of PostgreSQL, Iceberg tables, files of Parquet, a topic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.histories.pipelines.events import History
from tests.histories.shapes.changes import TYPES
from tests.histories.shapes.coordinates import COORDINATES, Coordinates
from tests.histories.shapes.datasets import PLACE, Dataset, FilesDataset, IcebergDataset
from tests.histories.shapes.formats import FORMATS, RecordFormat
from tests.histories.shapes.registry_formats import REGISTRY_FORMATS
from tests.histories.shapes.stores import COLUMNS, STORES, StoreKind
from tests.histories.shapes.whole_formats import WHOLE_FORMATS
from tests.world.consumer import Record, read_settled
from tests.world.orders import Order, milliseconds
from tests.world.pipeline_file import Settings, store, topic
from tests.world.prepared import Statement
from tests.world.sql import insert_rows
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

Contents = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""The key, the value and the headers of a record."""

_FORMATS = {kind.name: kind for kind in (*FORMATS, *REGISTRY_FORMATS, *WHOLE_FORMATS)}
_COORDINATES: Mapping[str, Coordinates] = {coordinates.name: coordinates for coordinates in COORDINATES}
TABLES: Mapping[str, StoreKind] = {kind.name: kind for kind in STORES if kind.is_writable}


def format_of(history: History) -> RecordFormat:
    """Return the format of the records of a history."""
    return _FORMATS[history.record_format]


def coordinates_of(history: History) -> Coordinates | None:
    """Return what of a record is its key, where that is no id."""
    return _COORDINATES.get(history.key)


def key_of(history: History, row: Order) -> str:
    """Return the business key of a row, which has the columns of its coordinates where they are its key."""
    coordinates = coordinates_of(history)
    return str(row["id"]) if coordinates is None else coordinates.key_of(row)


class Place(Protocol):
    """A store. `settings` are those of its point, `hop` those of its hop beside what it writes.

    A row is an order; with it come the columns of its coordinates, where these are the key.
    """

    @property
    def settings(self) -> Settings: ...

    @property
    def hop(self) -> Settings: ...

    def make(self) -> None:
        """Have it, empty."""
        ...

    def add(self, rows: Sequence[Order]) -> None:
        """Add rows, as a loader does."""
        ...

    def rows(self) -> list[Order]:
        """Return what readers see."""
        ...


@dataclass(kw_only=True)
class TablePlace:
    """A table of PostgreSQL."""

    shop: ReconciledShop
    history: History

    hop: Settings = field(default_factory=dict)

    @property
    def kind(self) -> StoreKind:
        """The kind of table."""
        return TABLES[self.history.store]

    @property
    def _columns(self) -> tuple[str, ...]:
        coordinates = coordinates_of(self.history)
        return () if coordinates is None else tuple(coordinates.columns)

    @property
    def settings(self) -> Settings:
        if self._columns:
            return store("db", "warehouse", key=f"[{', '.join(self._columns)}]")
        # The columns that have other names in this kind are none that such records carry.
        is_whole = self.history.record_format in {kind.name for kind in WHOLE_FORMATS}
        of_kind = {name: text for name, text in self.kind.settings.items() if not (is_whole and name == "columns")}
        return {**store("db", "warehouse"), **of_kind}

    def make(self) -> None:
        if self._columns:
            more = "".join(f", {name} bigint" for name in self._columns)
            self.shop.sql(f"create table warehouse ({COLUMNS}{more})")
        else:
            self.kind.make(self.shop)

    @property
    def _name(self) -> str:
        return "warehouse" if self._columns else self.kind.written

    def add(self, rows: Sequence[Order]) -> None:
        insert_rows(self.shop.dsn, self._name, map(self._row, rows))

    def inserting(self, rows: Sequence[Order]) -> list[Statement]:
        """Return the statements that insert rows, for a transaction that stays prepared."""
        made = [self._row(row) for row in rows]
        return [
            (
                f"insert into {self._name} ({', '.join(map(_quoted, row))}) values ({', '.join(['%s'] * len(row))})",
                tuple(row.values()),
            )
            for row in made
        ]

    def changing(self, ids: str, how: str) -> Statement:
        """Return the statement that changes the rows of an id, or deletes them."""
        id_column = _quoted(self._of_table("id"))
        if how == "deleted":
            return f"delete from {self._name} where {id_column} = %s", (ids,)
        return f"update {self._name} set number = number + 1 where {id_column} = %s", (ids,)

    def rows(self) -> list[Order]:
        names = ["id", *TYPES, *self._columns]
        listed = ", ".join(_quoted(self._of_table(name)) for name in names)
        return [dict(zip(names, row, strict=True)) for row in self.shop.sql(f"select {listed} from {self._name}")]

    def _row(self, row: Order) -> Order:
        return {self._of_table(name): value for name, value in row.items()}

    def _of_table(self, name: str) -> str:
        return name if self._columns else self.kind.names.get(name, name)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


@dataclass(kw_only=True)
class DatasetPlace:
    """A dataset."""

    shop: ReconciledShop
    history: History
    _made: Dataset | None = None

    @property
    def lake(self) -> Dataset:
        """The dataset itself."""
        if self._made is None:
            kind = IcebergDataset if self.history.store == "iceberg" else FilesDataset
            folder = self.shop.folder / "lake"
            folder.mkdir()
            self._made = kind(folder=folder, topic=self.shop.topic, has_position=self._has_position)
        return self._made

    @property
    def _has_position(self) -> bool:
        return self.history.key == "position"

    @property
    def settings(self) -> Settings:
        return self.lake.settings

    @property
    def hop(self) -> Settings:
        return {name: value for name, value in self.lake.hop.items() if name != "write"}

    def make(self) -> None:
        self.lake.make()
        if self.history.has_ledger:
            self.shop.sql(f"create table outbox ({COLUMNS})")

    def add(self, rows: Sequence[Order]) -> None:
        if rows:
            self.lake.add(self._positioned(row) for row in rows)

    def rows(self) -> list[Order]:
        names = dict(zip(PLACE, _COORDINATES["position"].columns, strict=True))
        return [{names.get(name, name): value for name, value in row.items()} for row in self.lake.rows()]

    def compact(self, keys: frozenset[str]) -> None:
        """Write everything again in one file, without the rows of some keys."""
        kept = [row for row in self.rows() if key_of(self.history, row) not in keys]
        if self.rows():
            self.lake.rewrite([self._positioned(row) for row in kept])

    def list_again(self) -> None:
        """Have the newest file there once more."""
        if self.rows():
            self.lake.list_again()

    def roll_back(self) -> None:
        """Take the newest snapshot back, where there is one and another before it."""
        self.lake.roll_back()

    def _positioned(self, row: Order) -> dict[str, Any]:
        names = dict(zip(_COORDINATES["position"].columns, PLACE, strict=True))
        return {names.get(name, name): value for name, value in row.items()}


@dataclass(kw_only=True)
class TopicPlace:
    """A topic into which the records of the other one are copied. `sent`: what each copy says."""

    shop: ReconciledShop
    history: History
    sent: dict[Contents, Order] = field(default_factory=dict)
    hop: Settings = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        return topic("log", self._name, **{**format_of(self.history).settings, "key": format_of(self.history).key})

    @property
    def _name(self) -> str:
        return self.shop.more_topics[0]

    def make(self) -> None:
        self.shop.add_topic()
        self.shop.sql(f"create table outbox ({COLUMNS})")

    def add(self, rows: Sequence[Order]) -> None:
        self.copy(rows, "plain")

    def copy(self, rows: Sequence[Order], ending: str) -> None:
        """Copy records as a program does that has a transaction, or none."""
        made, is_transaction = format_of(self.history), ending in ("committed", "aborted")
        own = {"transactional_id": f"copier-{self._name}"} if is_transaction else {}
        client = producer(self.shop.bootstrap, enable_idempotence=is_transaction, linger_ms=1, **own)
        if is_transaction:
            client.init_transactions(30)
            client.begin_transaction()
        for row in rows:
            order = {name: row[name] for name in ("id", *TYPES)}
            key, value = made.record_key(order).encode(), made.value(order)
            headers = [(name, text.encode()) for name, text in made.headers(order).items()]
            self.sent[key, value, tuple(headers)] = order
            at = milliseconds(row["at"]) if row["at"] is not None else 0
            client.produce(self._name, partition=0, key=key, value=value, headers=[*headers], timestamp=at)
        assert client.flush(30) == 0
        if is_transaction:
            client.commit_transaction(30) if ending == "committed" else client.abort_transaction(30)

    def rows(self) -> list[Order]:
        return [self._order(record) for record in read_settled(self.shop.bootstrap, self._name)]

    def _order(self, record: Record) -> Order:
        headers = tuple(header for header in record.headers if not header[0].startswith("makewhole"))
        return self.sent[record.key, record.value, headers]


def place_of(shop: ReconciledShop, history: History) -> TablePlace | DatasetPlace | TopicPlace:
    """Return the store of a history."""
    if history.is_dataset:
        return DatasetPlace(shop=shop, history=history)
    return (
        TopicPlace(shop=shop, history=history) if history.store == "topic" else TablePlace(shop=shop, history=history)
    )
