"""Test that what became of a table in memory after a plan was made is never written over, and that no chunk is done
twice."""

from collections.abc import Sequence
from typing import Any

import pytest

from makewhole.model.errors import LeaseLostError
from makewhole.model.points import TablePoint
from makewhole.model.window import WindowState
from makewhole.tables.items import RowItem
from makewhole.tables.receipts import ChunkId, ReceiptRow
from makewhole.tables.writing import Guard
from tests.integration.memory.memory_shop import MemoryShop, in_order, row_of
from tests.integration.memory.test_memory_windows import ALL, other, without
from tests.memory.writing import MemoryWriter
from tests.world.orders import orders
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MADE = orders(range(14))
STRAY = orders(range(90, 93))


def meddle(shop: MemoryShop) -> None:
    """Change one key of each verdict, as a loader and a person do."""
    shop.write("warehouse", MADE[:1])
    shop.change("O3", region="XX")
    shop.remove("O4")
    shop.change("O6", region="XX")
    shop.remove("O7", amount="7.5")
    shop.remove("O8", amount="99.99")
    shop.change("O90", region="XX")
    shop.remove("O91")


def test_rows_that_came_changed_or_went_after_the_plan_are_refused_and_the_others_are_repaired(
    shop: MemoryShop,
) -> None:
    shop.describe(has_ledger=False, compensation=ALL)
    shop.send(MADE)
    shop.write("warehouse", [*map(other, MADE[3:6]), *MADE[6:], *map(other, MADE[6:10]), *STRAY])
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    assert plan.counts == {"upsert": 6, "quarantine": 7}
    shop.approve(plan)
    meddle(shop)
    before = shop.placed()

    shop.run(context, plan)

    assert {key: str(refusal) for key, refusal in shop.refused(plan).items()} == {
        "O0": "arrived: a row of this key appeared after the plan was made",
        "O3": "stale: the row of this key changed after the plan was made",
        "O4": "erased: the row of this key is gone since the plan was made",
        "O6": "stale: rows of this key changed after the plan was made",
        "O7": "erased: the row that was to stay is gone, so the extra rows may be the only copy left",
        "O8": "erased: an extra row of this key is gone already",
        "O90": "stale: rows of this key changed after the plan was made",
        "O91": "erased: an extra row of this key is gone already",
    }
    moved = {place for place, values in before.items() if values in (row_of(other(MADE[9])), row_of(STRAY[2]))}
    mended = next(place for place, values in before.items() if values == row_of(other(MADE[5])))
    assert shop.placed() == {
        **without(before, mended, *moved),
        mended.replace(",1)", ",2)"): row_of(MADE[5]),
        "(20,1)": row_of(MADE[1]),
        "(21,1)": row_of(MADE[2]),
    }
    closed = shop.close(context)
    assert (closed.state, closed.reason) == (
        WindowState.GAPS,
        f"{STORE_HOP}: 2 keys duplicate, 0 allowed; {STORE_HOP}: 2 keys mismatched, 0 allowed; "
        f"{STORE_HOP}: 1 key unexpected, 0 allowed",
    )


def test_an_undo_leaves_rows_that_changed_since_the_plan_wrote_them(shop: MemoryShop) -> None:
    shop.describe(has_ledger=False, compensation=ALL)
    shop.send(MADE)
    shop.write("warehouse", [*map(other, MADE[3:6]), *MADE[6:], *map(other, MADE[6:10]), *STRAY])
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.change("O0", region="XX")
    shop.remove("O1")
    shop.change("O3", region="XX")
    shop.remove("O6")
    shop.write("warehouse", [MADE[7], STRAY[0]])

    shop.run(context, undo)

    assert {key: str(refusal) for key, refusal in shop.refused(undo).items()} == {
        "O0": "stale: the row was changed after the plan wrote it",
        "O1": "erased: the row that the plan wrote is gone",
        "O3": "stale: the row was changed after the plan wrote it",
        "O6": "erased: the row of this key that stayed is gone; whoever removed it may have intended to remove this "
        "one too",
        "O7": "stale: the rows of this key changed after the plan moved this one aside",
        "O90": "stale: the rows of this key changed after the plan moved this one aside",
    }
    rows = [
        {**row_of(MADE[0]), "region": "XX"},
        {**row_of(MADE[3]), "region": "XX"},
        *map(row_of, [*map(other, MADE[4:6]), MADE[7], *MADE[7:], *map(other, MADE[8:10]), *STRAY]),
    ]
    assert shop.rows() == in_order(rows)


class Killed(BaseException):
    """The end of a runner."""


def die_after_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runners die when a chunk is in the table, and the journal does not know it yet."""
    write = MemoryWriter.write_chunk

    def write_and_die(
        self: MemoryWriter, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], guard: Guard
    ) -> ReceiptRow:
        write(self, point, chunk, items, guard)
        raise Killed

    monkeypatch.setattr(MemoryWriter, "write_chunk", write_and_die)


def chunks_in_journal(shop: MemoryShop) -> list[tuple[Any, ...]]:
    return shop.journal_sql("select chunk, actions from makewhole.chunk order by chunk")


def test_a_runner_that_died_before_the_journal_knew_of_its_chunk_leaves_every_row_once(
    shop: MemoryShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(has_ledger=False, compensation=ALL)
    shop.send(MADE)
    shop.write("warehouse", [*map(other, MADE[3:6]), *MADE[6:], *map(other, MADE[6:10]), *STRAY])
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    with monkeypatch.context() as patch:
        die_after_writing(patch)
        with pytest.raises(Killed):
            shop.run(context, plan)
    written, kept = shop.placed(), shop.kept()
    assert in_order(written.values()) == in_order(map(row_of, MADE))
    assert chunks_in_journal(shop) == []

    for _ in range(2):
        shop.run(context, plan)
        assert (shop.placed(), shop.kept().effects) == (written, kept.effects)
        assert chunks_in_journal(shop) == [(0, 13)]
    assert shop.refused(plan) == {}
    assert shop.close(context).state is WindowState.CERTIFIED


def test_a_runner_with_an_earlier_lease_writes_nothing(shop: MemoryShop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.describe(has_ledger=False, compensation=ALL)
    shop.send(MADE)
    shop.write("warehouse", MADE[1:])
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    before = shop.placed()
    write = MemoryWriter.write_chunk

    def write_when_fenced(
        self: MemoryWriter, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], guard: Guard
    ) -> ReceiptRow:
        shop.fence(plan.id, point.name, chunk.lease_epoch + 1)
        return write(self, point, chunk, items, guard)

    monkeypatch.setattr(MemoryWriter, "write_chunk", write_when_fenced)
    with pytest.raises(LeaseLostError, match="a newer runner has been at warehouse; this one stops"):
        shop.run(context, plan)
    assert (shop.placed(), shop.kept().effects, shop.kept().receipts) == (before, [], {})
