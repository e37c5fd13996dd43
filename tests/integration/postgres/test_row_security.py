"""Test tables of which row security hides rows."""

import pytest

from makewhole.model.connection import PostgresConnection
from makewhole.model.errors import PermanentError
from makewhole.postgres.read.export import ExportReader
from makewhole.postgres.read.key_columns import describe_columns
from tests.conftest import AnyPostgres
from tests.integration.postgres.people import People

pytestmark = pytest.mark.integration

HIDDEN = (
    "pipeline file: points.rows.table: row security may hide rows of rows from the user of connection people. Connect "
    "as a user that row security does not apply to (`alter role … bypassrls`, or the table's owner without `force row "
    "level security`): a row that is hidden looks like one that is lost"
)


def test_rows_that_a_policy_hides_are_an_error_and_not_a_loss(people: People, postgres: AnyPostgres) -> None:
    role = "reader_of_few"
    people.sql(
        "create table rows (id int); insert into rows values (1), (2); alter table rows enable row level security;"
        "create policy few on rows using (id = 1)"
    )
    people.sql(f"create role {role}")
    try:
        people.sql(f"grant select on rows to {role}")
        dsn = f"{people.connection.dsn}{'&' if '?' in people.connection.dsn else '?'}options=-c%20role%3D{role}"
        reader = PostgresConnection(id="people", dsn=dsn)
        with pytest.raises(PermanentError, match="PostgreSQL refused a statement: InsufficientPrivilege") as caught:
            list(ExportReader(reader, people.shape(), None).keys(["1", "2"]))
        assert "bypassrls" in str(caught.value)
        for connection, problems in ((reader, [HIDDEN]), (people.connection, [])):
            columns, named = describe_columns(connection, [people.shape()])
            assert ([str(problem) for problem in named], bool(columns)) == (problems, not problems)
        people.sql(f"alter role {role} bypassrls")
        assert describe_columns(reader, [people.shape()])[1] == []
    finally:
        people.sql(f"drop owned by {role}; drop role {role}")
