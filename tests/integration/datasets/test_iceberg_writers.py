"""Test chunks beside another writer of the table: a process of its own that commits in between, at each moment."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyiceberg.table import Table

from makewhole.datasets.iceberg.write import chunk_commit, commit
from makewhole.tables.tables import Tables
from tests.integration.datasets.test_iceberg_chunks import POINT, TABLE, chunk_id, new_amount, new_row, write
from tests.world.combinations import with_every_change
from tests.world.iceberg_lake import Lake, in_order, rows_of
from tests.world.orders import orders

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

_WRITER = """
import sys
from pathlib import Path
from pyiceberg.types import StringType
from tests.world.iceberg_lake import Lake, rows_of
from tests.world.orders import orders

lake, name = Lake(folder=Path(sys.argv[1])), sys.argv[2]
print("ready", flush=True)
for line in sys.stdin:
    what, number = line.split()
    table = lake.table(name)
    match what:
        case "append":
            lake.append(name, rows_of(orders([int(number)])))
        case "delete":
            table.delete(f"id = 'O{number}'")
        case "compact":
            table.overwrite(table.scan().to_arrow())
        case "rename":
            with table.update_schema() as update:
                update.add_column("more", StringType())
    print("done", flush=True)
"""
Act = Callable[[str, int], None]


@contextmanager
def another_writer(lake: Lake) -> Iterator[Act]:
    """Run a process that commits to the table of the lake when it is asked to."""
    command = [sys.executable, "-c", _WRITER, str(lake.folder), TABLE]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    given, answers = process.stdin, process.stdout

    def act(what: str, number: int) -> None:
        given.write(f"{what} {number}\n")
        given.flush()
        assert answers.readline() == "done\n"

    try:
        assert answers.readline() == "ready\n"
        yield act
    finally:
        given.close()
        assert process.wait(30) == 0


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What is done right before each commit of a chunk, first to last."""
    acts = list[Callable[[], None]]()

    def commit_after(table: Table, **settings: Any) -> int | None:
        if acts:
            acts.pop(0)()
        return commit.commit(table, **settings)

    monkeypatch.setattr(chunk_commit, "commit", commit_after)
    return acts


@pytest.mark.parametrize("retries", with_every_change(["0", "4"], first=1))
def test_whatever_another_process_commits_in_between_a_chunk_is_decided_by_it(
    lake: Lake, tables: Tables, commits: list[Callable[[], None]], retries: str
) -> None:
    lake.make_table(TABLE, properties={"commit.retry.num-retries": retries})
    lake.append(TABLE, rows_of(orders(range(4))))
    changed = new_amount(tables, 1, "O1", "9.00")
    gone = new_amount(tables, 2, "O2", "9.00")

    with another_writer(lake) as act:
        commits += [
            lambda: act("append", 5),
            lambda: act("compact", 0),
            lambda: act("delete", 2),
            lambda: act("append", 7),
        ]
        receipt = write(tables, chunk_id(), new_row(0, 5), changed, gone, new_row(3, 6))

    assert commits == []
    assert {seq: str(refusal) for seq, refusal in receipt.refused.items()} == {
        0: "arrived: a row of this key appeared after the plan was made",
        2: "erased: the row of this key is gone since the plan was made",
    }
    left = [{**orders([1])[0], "amount": "9.00"}, *orders([0, 3, 5, 6, 7])]
    assert lake.rows(TABLE) == in_order(rows_of(left))
    assert Counter(row["id"] for row in lake.rows(TABLE)).most_common(1)[0][1] == 1
    with tables.writer(POINT, "test") as writer:
        done = [effect.seq for some in writer.effects(chunk_id().plan, "lake", 1) for effect in some]
    assert sorted(done) == [1, 3]


def test_a_column_that_another_process_adds_in_between_is_in_the_rows_that_are_written(
    lake: Lake, tables: Tables, commits: list[Callable[[], None]]
) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders(range(2))))
    changed = new_amount(tables, 0, "O1", "9.00")

    with another_writer(lake) as act:
        commits += [lambda: act("rename", 0)]
        receipt = write(tables, chunk_id(), changed)

    assert receipt.refused == {}
    assert [(row["amount"], row.get("more")) for row in lake.rows(TABLE)][1:] == [(9, None)]
