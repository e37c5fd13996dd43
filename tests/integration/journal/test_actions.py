"""Test the actions of a plan in the journal: the bytes that Python hashes are the bytes that COPY gives back."""

import io
import string

import psycopg2
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg2 import sql
from psycopg2.extensions import cursor as PgCursor  # noqa: N812 - it is a class

from makewhole.compensation.freezing.plan_hash import plan_hash, unchanged_actions
from makewhole.journal import plan_progress, plans
from makewhole.journal.actions import _BLOCK_BYTES, actions_in
from makewhole.journal.database import connect
from makewhole.model.actions import Action, BeforeQuarantine, BeforeRedeliver, BeforeUpsert
from makewhole.model.errors import RefusedError
from makewhole.model.plan import Plan, PlanState
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.sql import PgConnection, load_queries
from tests.world.examples import examples

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

NASTY = [
    "\\",
    "\\\\",
    "\\N",
    "\\.",
    "\\n",
    "\\\n",
    "\\\\\n",
    "\t",
    "\n",
    "\r\n",
    "\b\f\v",
    "".join(map(chr, range(1, 32))),
    "\x7f\x80\x85\xa0",
    "\u2028\u2029\ufeff",
    "é",
    "e\u0301",
    "→",
    "🛫",
    "\U0010ffff",
    "\ue000",
    '"',
    "'",
    ",",
    " ",
    "null",
    "''",
    "$$",
    "\\x41",
    "\\101",
    "a" * 3000,
]
TEXT = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    st.lists(st.sampled_from([*NASTY, *string.ascii_lowercase[:3]]), max_size=6).map("".join),
)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
ACTIONS = st.builds(
    Action,
    seq=st.just(0),
    chunk=st.integers(0, 2**31 - 1),
    hop=TEXT,
    target=TEXT,
    key=TEXT,
    key_hash=TEXT,
    before=st.sampled_from([BeforeRedeliver, BeforeUpsert, BeforeQuarantine]).flatmap(
        lambda kind: st.builds(kind, place=TEXT, once=TEXTS, groups=st.none() | TEXTS, records=TEXT)
    ),
)
NAMES = ("remedy", "hop", "target", "key", "key_hash")


def test_every_text_that_can_be_a_key_comes_back_as_it_was_hashed(journal: str) -> None:
    actions = [_action(seq, key) for seq, key in enumerate(NASTY)]
    with connect(journal) as session:
        _put(session, "p-1-nasty", actions)
        assert _copied(session, "p-1-nasty") == b"".join(action.line() for action in actions)
        assert actions_in(unchanged_actions(session, _plan("p-1-nasty", actions), None)) == tuple(actions)
        assert [item.action for item in plan_progress.actions_of(session, "p-1-nasty")] == actions


def test_whatever_an_action_holds_its_line_is_what_copy_gives_back(journal: str) -> None:
    session = psycopg2.connect(journal)
    number = 0

    @settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(ACTIONS, min_size=1, max_size=5))
    def check(drawn: list[Action]) -> None:
        nonlocal number
        number += 1
        plan_id = f"p-1-{number}"
        actions = [Action(**{**vars(action), "seq": seq}) for seq, action in enumerate(drawn)]
        _put(session, plan_id, actions)
        assert _copied(session, plan_id) == b"".join(action.line() for action in actions)
        assert actions_in(unchanged_actions(session, _plan(plan_id, actions), None)) == tuple(actions)

    try:
        check()
    finally:
        session.close()


@pytest.mark.parametrize(
    "change",
    [
        "update makewhole.action set key = key || ' ' where seq = 1",
        "update makewhole.action set key_hash = reverse(key_hash) where seq = 1",
        "update makewhole.action set remedy = 'upsert' where seq = 1",
        "update makewhole.action set hop = 'b→c' where seq = 1",
        "update makewhole.action set target = 'elsewhere' where seq = 1",
        "update makewhole.action set chunk = 1 where seq = 1",
        'update makewhole.action set before = \'{"place":"kafka:elsewhere"}\' where seq = 1',
        "update makewhole.action set before = before || ' ' where seq = 1",
        "delete from makewhole.action where seq = 2",
        "insert into makewhole.planned_action select plan, 3, chunk, remedy, hop, target, key, key_hash, before "
        "from makewhole.planned_action where seq = 1",
        "update makewhole.planned_action set seq = case seq when 0 then 10 else seq end",
        "update makewhole.plan set payload_sha256 = repeat('0', 64)",
        "update makewhole.plan set number = 2",
        "update makewhole.plan set sha256 = repeat('0', 64)",
    ],
)
def test_a_plan_that_was_changed_anywhere_is_not_given_out(journal: str, change: str) -> None:
    actions = [_action(seq, f"K{seq}") for seq in range(3)]
    with connect(journal) as session:
        _put(session, "p-1-f", actions, payload_sha256="f" * 64)
        stored = plans.get_plan(session, "p-1-f")
        assert len(unchanged_actions(session, stored.plan, stored.payload_sha256)) == 3
        with session.cursor() as cursor:
            _second_window(cursor)
            cursor.execute(change)
        stored = plans.get_plan(session, "p-1-f")
        with pytest.raises(RefusedError, match="plan p-1-f is not the one that was frozen"):
            unchanged_actions(session, stored.plan, stored.payload_sha256)


def test_refusals_are_no_change_of_the_plan(journal: str) -> None:
    actions = [_action(seq, f"K{seq}") for seq in range(3)]
    with connect(journal) as session:
        _put(session, "p-1-f", actions)
        plan_progress.refuse_actions(session, "p-1-f", {1: Refusal(RefusalCode.STALE, "changed")})
        assert len(unchanged_actions(session, _plan("p-1-f", actions), None)) == 3


def test_a_plan_without_actions_is_one_too(journal: str) -> None:
    with connect(journal) as session:
        _put(session, "p-1-f", [])
        assert len(unchanged_actions(session, _plan("p-1-f", []), None)) == 0


def test_actions_of_many_blocks_are_read_whole(journal: str) -> None:
    count = 20_000
    actions = [_action(seq, f"K\\{seq}") for seq in range(count)]
    with connect(journal) as session:
        _put(session, "p-1-f", actions)
        columns = unchanged_actions(session, _plan("p-1-f", actions), None)
    assert sum(len(action.line()) for action in actions) > 2 * _BLOCK_BYTES
    assert columns.column("key").to_pylist() == [f"K\\{seq}" for seq in range(count)]


def _put(session: PgConnection, plan_id: str, actions: list[Action], payload_sha256: str | None = None) -> None:
    with session.cursor() as cursor:
        cursor.execute(
            "insert into makewhole.window (pipeline, number, revision, end_time, request, configuration) "
            "values (%s, 1, 1, '2013-01-02', 'run', '{}') on conflict do nothing",
            (plan_id,),
        )
    plan = _plan(plan_id, actions, payload_sha256)
    plans.put_plan(session, plans.StoredPlan(plan=plan, payload_sha256=payload_sha256), map(Action.line, actions))
    session.commit()


def _second_window(cursor: PgCursor) -> None:
    cursor.execute(
        "insert into makewhole.window (pipeline, number, revision, end_time, request, configuration) "
        "values ('p-1-f', 2, 1, '2013-01-03', 'second', '{}')"
    )


def _plan(plan_id: str, actions: list[Action], payload_sha256: str | None = None) -> Plan:
    digest = plan_hash(plan_id, 1, payload_sha256)
    for action in actions:
        digest.update(action.line())
    return Plan(
        id=plan_id,
        pipeline=plan_id,
        window=1,
        revision=1,
        sha256=digest.hexdigest(),
        payload_uri=None,
        counts={},
        state=PlanState.FROZEN,
    )


def _action(seq: int, key: str) -> Action:
    return Action(
        seq=seq,
        hop="a→b",
        target="a",
        key=key,
        key_hash=f"{seq:032x}",
        before=BeforeRedeliver(place="kafka:a", origin=f"a/0/{seq}"),
    )


def _copied(session: PgConnection, plan_id: str) -> bytes:
    copied = io.BytesIO()
    with session.cursor() as cursor:
        statement = sql.SQL(load_queries("plan")["copy_actions_out"]).format(plan=sql.Literal(plan_id))
        cursor.copy_expert(statement, copied)
    return copied.getvalue()


def test_columns_are_arrow_and_names_are_stored_once(journal: str) -> None:
    actions = [_action(seq, "K") for seq in range(3)]
    with connect(journal) as session:
        _put(session, "p-1-f", actions)
        columns = unchanged_actions(session, _plan("p-1-f", actions), None)
    assert columns.schema.field("hop").type == pa.dictionary(pa.int32(), pa.string())
    hops = columns.column("hop").combine_chunks()
    assert isinstance(hops, pa.DictionaryArray)
    assert hops.dictionary.to_pylist() == ["a→b"]
