"""Refuse to put rows aside whose own record would not be sent afterwards: both are done, or neither is."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from makewhole.compensation.execution.content import PlanContent
from makewhole.compensation.execution.kafka_target import chunk_records
from makewhole.compensation.execution.look_again.look_again import LookAgain
from makewhole.compensation.execution.targets import PlanAtTarget, Target
from makewhole.journal.actions import actions_in
from makewhole.kafka.replay import ReplayWriter, now_ms, replay_identity
from makewhole.model.actions import Action
from makewhole.model.closing import ClosingContext
from makewhole.model.connection import kafka_of
from makewhole.model.hops import Remedy
from makewhole.model.points import has_log
from makewhole.model.refusal import Refusal

_NAMED = '"puts_aside"'


class RecordsAfter(ClosingContext):
    """The records of a plan that are sent after rows of their keys were put aside. What refuses a record when its rows
    are to go keeps these. Nothing is opened before it is asked. Close it after use."""

    def __init__(
        self, content: PlanContent, targets: Mapping[str, Target], at_target: Callable[[str], PlanAtTarget]
    ) -> None:
        self._content, self._targets, self._at_target = content, targets, at_target
        self._look_again: dict[str, LookAgain] = {}
        self._stack = ExitStack()

    def close(self) -> None:
        self._stack.close()

    def refusals(self, table: str, rows: pa.Table) -> Mapping[int, Refusal]:
        """Return why rows of a table stay, by the number of the action (of `rows`) that would put them aside."""
        if not self._by_table.get(table):
            return {}
        moves = {action.key_hash: action.seq for action in actions_in(rows) if action.remedy is Remedy.QUARANTINE}
        by_topic: dict[str, list[Action]] = defaultdict(list)
        for action in self._by_table[table]:
            if action.key_hash in moves:
                by_topic[action.target].append(action)
        refused: dict[int, Refusal] = {}
        for topic, actions in by_topic.items():
            why = self._not_sent(topic, [self._as_asked_at(table, action) for action in actions])
            refused |= {moves[action.key_hash]: _kept(why[action.seq]) for action in actions if action.seq in why}
        return refused

    @cached_property
    def _by_table(self) -> Mapping[str, Sequence[Action]]:
        """The actions of such records by the tables whose rows go before."""
        actions = self._content.actions
        by_table: dict[str, list[Action]] = defaultdict(list)
        for action in actions_in(
            actions.filter(pc.match_substring(actions.column("before").cast(pa.string()), _NAMED))
        ):
            for table in action.before.puts_aside:
                by_table[table].append(action)
        return by_table

    def _not_sent(self, topic: str, actions: Sequence[Action]) -> Mapping[int, Refusal]:
        """Return why records would not be sent now, by action number."""
        if topic not in self._look_again:
            plan = self._at_target(topic)
            look_again = LookAgain(self._targets, plan.in_journal, plan.keys)
            self._look_again[topic] = self._stack.enter_context(look_again)
        return {**self._look_again[topic].refusals(actions), **self._not_taken(topic, actions)}

    def _as_asked_at(self, table: str, action: Action) -> Action:
        """Return a record's action without the tables whose rows are still to go, this one among them. One that had its
        turn and has a row all the same refuses the record."""
        order = list(self._content.chunks)
        left = order[order.index(table) :]
        to_go = {self._place(name) for name in action.before.puts_aside if name in left}
        once = tuple(name for name in action.before.once if self._place(name) not in to_go)
        return replace(action, before=replace(action.before, once=once))

    def _place(self, name: str) -> str:
        target = self._targets.get(name)
        return name if target is None else target.point.identity or target.point.place

    def _not_taken(self, topic: str, actions: Iterable[Action]) -> dict[int, Refusal]:
        """Return the records that their topic would not take now."""
        target, plan = self._targets[topic], self._content.plan
        if not has_log(target.point):
            return {}
        name = target.point.topic
        rules = ReplayWriter(kafka_of(target.connection), name, replay_identity(plan.id, topic)).rules()
        by_chunk: dict[int, list[int]] = defaultdict(list)
        for action in actions:
            by_chunk[action.chunk].append(action.seq)
        refused: dict[int, Refusal] = {}
        for number, seqs in by_chunk.items():
            chunk = self._content.chunk(topic, number)
            of_keys = pc.is_in(chunk.columns.column("seq"), pa.array(seqs, chunk.columns.schema.field("seq").type))
            records = chunk_records(plan, replace(chunk, columns=chunk.columns.filter(of_keys)))
            refused |= records.refusals(rules, now_ms())
        return refused


def _kept(refusal: Refusal) -> Refusal:
    return Refusal(refusal.code, f"its row stays, as its record would not be sent: {refusal.text}")
