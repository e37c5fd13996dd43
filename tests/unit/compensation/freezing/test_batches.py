"""Plans that are made batch by batch: nothing is lost or out of order in the files of this machine."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compensation.freezing.batches.action_file import SHOWN, ActionFile
from makewhole.compensation.freezing.batches.draft_file import DraftFile
from makewhole.compensation.planning.action_draft import ActionDraft
from makewhole.lake.record_file import RecordFile, WantedPositions
from makewhole.model.actions import Action, BeforeUpsert
from makewhole.model.verdict import Cause, Finding, Verdict

pytestmark = pytest.mark.unit

ORDERS = st.tuples(st.integers(0, 2), st.integers(0, 4), st.text(alphabet="aé€😀\ufffd", max_size=2))


@given(st.lists(st.lists(ORDERS, max_size=6), max_size=5), st.integers(1, 4))
def test_drafts_come_in_the_order_of_the_plan_and_those_of_a_finding_together(
    batches: list[list[tuple[int, int, str]]], size: int
) -> None:
    added: list[tuple[tuple[int, int, str], ActionDraft]] = []
    with DraftFile() as file:
        for batch in batches:
            drafts = [(order, _draft(order, len(added) + at)) for at, order in enumerate(batch)]
            added += drafts
            file.add(drafts)
        slices = list(file.slices(size))
        assert len(file) == len(added)

    assert [draft for some in slices for draft in some] == [
        draft for _, draft in sorted(added, key=lambda pair: pair[0])
    ]
    findings = [{(draft.finding.hop, draft.finding.key_hash) for draft in some} for some in slices]
    assert all(not (keys & other) for at, keys in enumerate(findings) for other in findings[at + 1 :])
    assert all(len(some) >= size for some in slices[:-1])


def test_no_drafts_are_no_slices() -> None:
    with DraftFile() as file:
        file.add([])
        assert list(file.slices()) == []


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 5)), max_size=20))
def test_a_record_is_found_by_its_position_and_the_last_one_counts(added: list[tuple[str, int, int]]) -> None:
    known: dict[tuple[str, int, int], int] = {}
    with RecordFile() as file:
        for number, position in enumerate(added):
            file.add(*position, number)
            known[position] = number
            assert file.find(*position) == number
        by_position = {(p, n, o): file.find(p, n, o) for p in "abc" for n in range(3) for o in range(-1, 7)}

    assert {position: record for position, record in by_position.items() if record is not None} == known


def test_the_lines_of_actions_are_what_a_plan_is_hashed_over() -> None:
    actions = [_action(number, f"k\n{number // 2}\\\t") for number in range(2 * SHOWN + 3)]
    with ActionFile() as file:
        for action in actions:
            file.add(action)

        assert (len(file), file.keys, file.remedies) == (len(actions), SHOWN + 2, {"upsert": len(actions)})
        assert file.first == actions[:SHOWN]
        assert list(file.lines()) == [action.line() for action in actions]
        digests = {hashlib.sha256(b"".join(parts)).hexdigest() for parts in (file.blocks(), file.lines())}
        assert digests == {hashlib.sha256(b"".join(action.line() for action in actions)).hexdigest()}


def test_positions_are_kept_by_point() -> None:
    wanted = WantedPositions()
    for point, position in (("a", (1, 7)), ("b", (0, 2**40)), ("a", (0, 3))):
        wanted.add(point, position)

    assert {name: rows.tolist() for name, rows in wanted.by_point().items()} == {
        "a": [[1, 7], [0, 3]],
        "b": [[0, 2**40]],
    }


def _draft(order: tuple[int, int, str], number: int) -> ActionDraft:
    hop, remedy, key = order
    finding = Finding(
        hop=f"h{hop}",
        key=key,
        key_hash=f"{remedy}{key}",
        verdict=Verdict.MISSING,
        cause=Cause.NOT_IN_SOURCE,
        evidence={"number": number},
    )
    return ActionDraft(action=_action(number, key), finding=finding)


def _action(number: int, key: str) -> Action:
    return Action(seq=number, hop="a→b", target="b", key=key, key_hash=key, before=BeforeUpsert(place="pg:b"))
