"""Named statements of sql/queries, and where the journal is."""

import re

import pytest

from makewhole.journal.database import journal_dsn
from makewhole.model.errors import ConfigurationError
from makewhole.sql import load_queries, sql_root

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


def test_a_journal_that_is_not_set_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAKEWHOLE_JOURNAL_DSN", raising=False)

    with pytest.raises(ConfigurationError) as raised:
        journal_dsn()

    assert str(raised.value) == (
        "environment: MAKEWHOLE_JOURNAL_DSN: is not set. Set it to the PostgreSQL URI of the journal, or start the "
        "local stack with `makewhole up`"
    )
