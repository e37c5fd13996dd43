"""Chunks: frozen with the actions, found again from their columns, bounded in actions and bytes."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compensation.freezing.batches.payload_chunks import PayloadChunks
from makewhole.compensation.freezing.chunks import (
    PlannedPayload,
    actions_per_chunk,
    chunks_of,
    number_actions,
    take_chunk,
)
from makewhole.journal.actions import SCHEMA, actions_in
from makewhole.model.actions import Action, BeforeRedeliver, Payload
from makewhole.model.errors import CorruptionError
from makewhole.model.pipeline import Limits

pytestmark = pytest.mark.unit

TARGETS = st.lists(st.sampled_from(["topic", "store", "other"]), min_size=1, max_size=40)


@given(TARGETS, st.integers(1, 7))
def test_chunks_hold_every_action_once_in_order(targets: list[str], most: int) -> None:
    actions = [action for action, _ in number_actions([_item(target) for target in targets], most)]
    assert [action.seq for action in actions] == list(range(len(targets)))
    targets_of_chunks = chunks_of(_table(actions))
    assert list(targets_of_chunks) == list(dict.fromkeys(targets))
    for target, chunks in targets_of_chunks.items():
        parts = [actions_in(take_chunk(_table(actions), chunk)) for chunk in chunks]
        assert [action for part in parts for action in part] == [a for a in actions if a.target == target]
        assert [{action.chunk for action in part} for part in parts] == [{n} for n in range(len(parts))]
        assert all(len(part) == most for part in parts[:-1])
        assert 0 < len(parts[-1]) <= most


@given(TARGETS, st.integers(1, 7))
def test_a_row_group_holds_the_payloads_of_one_chunk(targets: list[str], most: int) -> None:
    items = list(number_actions([_item(target) for target in targets], most))
    with PayloadChunks() as payloads:
        for action, payload in items:
            payloads.add(action, payload)
        groups = [table.column("seq").to_pylist() for table in payloads.tables()]
    actions = [action for action, _ in items]
    for target, chunks in chunks_of(_table(actions)).items():
        for chunk in chunks:
            wanted = [a.seq for a in actions if a.target == target and a.chunk == chunk.number]
            assert groups[chunk.group] == wanted
    assert sum(map(len, groups)) == len(items)


def test_a_chunk_ends_before_it_has_too_many_bytes() -> None:
    sizes = [40, 40, 40, 500, 1, 1]
    items = number_actions([_item("topic", b"x" * (size - 2)) for size in sizes], 100, bytes_most=100)
    assert [action.chunk for action, _ in items] == [0, 0, 1, 2, 3, 3]


@pytest.mark.parametrize(("rate", "most"), [(1, 1), (2_000, 2_000), (10_000, 10_000), (1_000_000, 10_000)])
def test_a_chunk_is_at_most_a_second_of_the_rate_and_ten_thousand_actions(rate: int, most: int) -> None:
    assert actions_per_chunk(Limits(records_per_second=rate)) == most


@pytest.mark.parametrize("chunks", [(1, 2), (0, 2), (0, 1, 0)])
def test_chunks_that_are_missing_or_out_of_order_are_no_plan(chunks: tuple[int, ...]) -> None:
    actions = [_action("topic", seq, chunk) for seq, chunk in enumerate(chunks)]
    with pytest.raises(CorruptionError, match="the chunks of topic are out of order"):
        chunks_of(_table(actions))


def _item(target: str, value: bytes = b"") -> PlannedPayload:
    return _action(target), Payload(value=value)


def _action(target: str, seq: int = 0, chunk: int = 0) -> Action:
    return Action(
        seq=seq,
        chunk=chunk,
        hop="a→b",
        target=target,
        key="k",
        key_hash="0" * 32,
        before=BeforeRedeliver(place="kafka:t"),
    )


def _table(actions: list[Action]) -> pa.Table:
    rows = [{**vars(action), "remedy": action.remedy.value, "before": action.before_text} for action in actions]
    return pa.Table.from_pylist(rows, schema=SCHEMA)
