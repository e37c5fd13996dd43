"""Named statements of sql/queries."""

import re
from types import SimpleNamespace

import pytest

from makewhole.model.plan import Plan, PlanState
from makewhole.sql import load_queries, record, sql_root

pytestmark = pytest.mark.unit

FILES = sorted(path.stem for path in (sql_root() / "queries").glob("*.sql"))


@pytest.mark.parametrize("name", FILES)
def test_every_statement_has_a_name_and_a_line_on_what_it_is_for(name: str) -> None:
    text = (sql_root() / "queries" / f"{name}.sql").read_text(encoding="utf-8")
    names = re.findall(r"^-- (\w+) --$", text, re.MULTILINE)

    statements = load_queries(name)

    assert list(statements) == names
    for statement in statements.values():
        comment, _, body = statement.partition("\n")
        assert comment.startswith("-- ") and len(comment) > 10
        assert body.strip()


def test_migrations_are_numbered_without_a_gap() -> None:
    names = sorted(path.name for path in (sql_root() / "migrations").glob("*.sql"))

    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


def test_a_row_becomes_an_object_by_the_names_of_its_columns() -> None:
    row = SimpleNamespace(reason=None, state="done", sha256="0", id="p-1-0", pipeline="p", revision=1, other="left out")

    plan = record(Plan, row, window=1, payload_uri=None, counts={}, undoes=None)

    assert plan == Plan(
        id="p-1-0", pipeline="p", window=1, revision=1, sha256="0", payload_uri=None, counts={}, state=PlanState.DONE
    )
    assert plan.state is PlanState.DONE
    with pytest.raises(AttributeError, match="undoes"):  # though it has a default
        record(Plan, row, window=1, payload_uri=None, counts={})
