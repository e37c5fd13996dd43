"""Test which tables of which servers are called one place."""

import pytest

from makewhole.tables.identities import ServerIdentity, TableIdentity, identity_texts

pytestmark = pytest.mark.unit


def table(
    number: int = 1,
    *,
    system: str = "postgresql",
    data: str | None = "7/1",
    started: str = "today",
    is_standby: bool = False,
    database: int = 5,
) -> TableIdentity:
    server = ServerIdentity(system=system, data=data, started=started, is_standby=is_standby, database=database)
    return TableIdentity(server=server, table=number)


@pytest.mark.parametrize(
    ("first", "other", "is_same"),
    [
        (table(), table(), True),
        (table(), table(2), False),
        (table(), table(database=6), False),
        (table(), table(data="8/1"), False),
        (table(), table(system="memory"), False),
        (table(), table(started="yesterday", is_standby=True), True),
        (table(), table(started="yesterday"), False),
        (table(), table(data="7/2"), False),
        (table(data=None), table(data=None), True),
        (table(data=None), table(data=None, started="yesterday"), False),
    ],
    ids=[
        *("one table", "another table", "another database", "another server", "another system", "its standby"),
        "a copy beside it",
        *("a promoted copy", "one server that does not say it", "two that do not say it"),
    ],
)
def test_two_tables_are_one_place_where_server_database_and_number_are(
    first: TableIdentity, other: TableIdentity, *, is_same: bool
) -> None:
    texts = identity_texts({"one": first, "other": other})
    assert (texts["one"] == texts["other"]) is is_same
