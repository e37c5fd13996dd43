"""Check that a table's row is one line wherever no terminal limits it."""

import io

import pytest
from rich.table import Table

from makewhole.cli.environment import console, print_table

pytestmark = pytest.mark.unit

KEY, REASON = "2013-01-01T12:00:00Z|DL|2047", "the consumer committed before it wrote " * 12


def printed() -> list[str]:
    table = Table("key", "reason", box=None, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    table.add_row(KEY, REASON)
    out = console()
    out.file = io.StringIO()
    print_table(out, table)
    return out.file.getvalue().splitlines()


def test_a_row_is_one_line_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else `grep` finds neither the key nor what stands beside it."""
    monkeypatch.delenv("COLUMNS", raising=False)

    _, row = printed()

    assert row.split("  ")[0] == KEY
    assert row.rstrip().endswith(REASON.rstrip())


def test_a_row_is_folded_to_the_columns_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    assert all(len(line) <= 60 for line in printed())
