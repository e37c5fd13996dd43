"""Refuse an action whose key has arrived since it was judged, or was erased or disputed, or whose record a reader has.

Hours may lie between the verdict and the approval: the producer or a consumer catches up. Right before each chunk the
points that lacked a key are asked once more, and so is the topic of which a record is repeated or written into a table,
from where it was last looked at.
"""

import math
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter

import polars as pl
import pyarrow as pa

from makewhole.compensation.execution.look_again.disputed_since import disputed_since
from makewhole.compensation.execution.look_again.loaders import Loaders
from makewhole.compensation.execution.look_again.topic_tail import FollowedTopic, OwnRecords, TopicTail
from makewhole.compensation.execution.targets import Target
from makewhole.compensation.planning.second_copies import already_in_table
from makewhole.journal.actions import ArrowColumn, actions_in
from makewhole.journal.replayed_positions import PlanInJournal, SentRecord
from makewhole.kafka.topic_readers import topic_readers
from makewhole.kinds import tables_of
from makewhole.model.actions import Action
from makewhole.model.closing import ClosingContext
from makewhole.model.connection import kafka_of
from makewhole.model.hops import Remedy
from makewhole.model.plan import CANNOT_BE_READ, ErasedSince
from makewhole.model.points import TablePoint, can_look_up, has_erasures, has_log
from makewhole.model.positions import RecordPositions
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.in_doubt import refusal_by_doubt
from makewhole.tables.shape import TableShape
from makewhole.tables.tables import Tables

_ASKED = attrgetter("remedy", "absent_at", "once", "groups", "repeats", "erasable", "unknown_to", "passed", "resent_to")

_READERS_SECONDS = 30.0  # to list the groups asks every coordinator: not with each chunk

RefusalsByKey = Mapping[str, Refusal]
"""Key → why its record is not sent."""


class LookAgain(ClosingContext):
    """The points of a pipeline, asked again for the keys of a plan at one target. Nothing is opened before it is asked.

    A topic is read once, from where it was last looked at, and from then on only what came since.
    """

    def __init__(self, targets: Mapping[str, Target], plan: PlanInJournal, keys: ArrowColumn) -> None:
        """`keys`: those of all actions of the plan at its target."""
        self._targets, self._plan = targets, plan
        self._keys = pl.Series("key", pl.from_arrow(keys), dtype=pl.String)
        self._own = OwnRecords(plan.plan.id, partial(plan.own_positions, plan.target))
        self._tails: dict[str, TopicTail] = {}
        self._readers, self._readers_asked_at = list[str](), -math.inf
        self._stack = ExitStack()
        hops = {hop.name: hop for target in targets.values() for hop in target.hops}
        pending_max_age = max((target.pending_max_age for target in targets.values()), default=timedelta(0))
        places = {name: (target.point, target.connection) for name, target in targets.items()}
        self._loaders = self._stack.enter_context(Loaders(hops, places, pending_max_age))

    def close(self) -> None:
        self._stack.close()

    def arrived(self, rows: pa.Table) -> dict[int, Refusal]:
        """Return why these actions (rows of a chunk) are not done, by action number."""
        return self.refusals(actions_in(rows))

    def refusals(self, actions: Sequence[Action]) -> dict[int, Refusal]:
        """Return why these actions are not done, by action number."""
        refusals, still_to_come = disputed_since(self._plan, actions), dict[int, Refusal]()
        sent = self._sent_before(actions)
        asked: dict[object, list[Action]] = defaultdict(list)
        for action in actions:
            asked[_ASKED(action.before)].append(action)
        for alike in asked.values():
            before, keys = alike[0].before, [peer.key for peer in alike]
            is_produced = before.remedy is Remedy.PRODUCE
            points = before.absent_at or ((self._plan.target,) if is_produced else ())
            stores = {*before.erasable, *(name for name in points if self._has_erasures(name))}
            answers = {name: self._at(name, keys) for name in dict.fromkeys([*points, *before.once])}
            arrived = _in_all([answers[name] for name in points], keys)
            doubled = _in_any({name: answers[name] for name in before.once}, is_produced=is_produced)
            erased = [self._erased_at(store, keys) for store in sorted(stores)]
            refused = [*erased, self._unknown_readers(before.groups, keys), arrived, doubled]
            refused += [self._at(name, keys) for name in before.unknown_to]
            if before.repeats:
                refused.append(self._at(before.repeats, keys))
            for action in alike:
                refusal = next((by_key[action.key] for by_key in refused if action.key in by_key), None)
                if refusal is not None:
                    refusals.setdefault(action.seq, refusal)
            for name in before.passed:
                still_to_come |= self._loaders.not_past(name, {peer.seq: peer.before.records for peer in alike})
            resent = {peer.seq: sent[peer.key_hash] for peer in alike if peer.key_hash in sent}
            for name in before.resent_to if resent else ():
                still_to_come = {**self._loaders.not_past_sent(name, resent), **still_to_come}
        return {**still_to_come, **refusals}

    def _sent_before(self, actions: Iterable[Action]) -> Mapping[str, Sequence[SentRecord]]:
        hashes = {action.key_hash for action in actions if action.before.resent_to}
        return self._plan.sent_before(hashes) if hashes else {}

    def note_own(self, positions: RecordPositions) -> None:
        """Note records that the plan writes itself, which are no arrivals."""
        self._own.note(positions)
        if self._plan.target in self._tails and len(positions):
            self._tails[self._plan.target].skip(positions)

    def _unknown_readers(self, groups: Collection[str] | None, keys: Sequence[str]) -> RefusalsByKey:
        """Return all keys if a group reads the target that was not known when the plan was made."""
        target = self._targets.get(self._plan.target)
        if groups is None or target is None or not has_log(target.point):
            return {}
        if time.monotonic() - self._readers_asked_at > _READERS_SECONDS:
            self._readers_asked_at = time.monotonic()
            connection = kafka_of(target.connection)
            self._readers = [reader.group for reader in topic_readers(connection, target.point.topic)]
        unknown = [group for group in self._readers if group not in groups]
        if not unknown:
            return {}
        return _all_refused(
            keys,
            RefusalCode.TWICE,
            f"{', '.join(unknown)} reads {target.point.name}, which was not so when the plan was made; run the "
            "window again",
        )

    def _has_erasures(self, name: str) -> bool:
        """Return whether a point names erased keys by now: the file may say so since the plan was frozen."""
        point = self._targets[name].point if name in self._targets else None
        return can_look_up(point) and point.erased is not None

    def _erased_at(self, name: str, keys: Sequence[str]) -> RefusalsByKey:
        """Return the keys that a store names as erased by now."""
        target = self._targets.get(name)
        point, connection = (None, None) if target is None else (target.point, target.connection)
        if not can_look_up(point) or connection is None or point.erased is None:
            return _all_refused(
                keys,
                RefusalCode.NOT_KNOWN,
                f"{name} cannot be asked any more which keys were erased; run the window again",
            )
        if point.erased.topics:
            return self.erased_by_tombstones(point, keys)
        erased = tables_of(connection).erased_keys(point, keys)
        gone = (key for key in keys if key in erased)
        return _all_refused(gone, RefusalCode.ERASED, f"{name}: {point.erased.description}")

    def erased_by_tombstones(self, store: TablePoint, keys: Sequence[str]) -> RefusalsByKey:
        """Return the keys that came to be erased from a store by tombstones, or of which that cannot be known; none of
        a store whose erased keys are known from something else."""
        refusals: dict[str, Refusal] = {}
        if store.erased is None or not keys:
            return refusals
        for topic in store.erased.topics:
            tail = self._tail(topic)
            gone = ErasedSince(not_known=f"{topic} cannot be asked any more which keys were erased")
            since = gone if tail is None else tail.erased_since(store.erased)
            refusals = {**since.refusals(store.name, keys), **refusals}
        return refusals

    def _at(self, name: str, keys: Sequence[str]) -> RefusalsByKey:
        tail = self._tail(name)
        if tail is not None:
            return _in_topic(name, tail, keys)
        target = self._targets.get(name)
        point, connection = (None, None) if target is None else (target.point, target.connection)
        if can_look_up(point) and connection is not None:
            return _in_table(point, tables_of(connection), keys)
        return _all_refused(
            keys,
            RefusalCode.NOT_KNOWN,
            f"{name} cannot be asked any more whether it has the key; run the window again",
        )

    def _tail(self, name: str) -> TopicTail | None:
        """Return what came to a topic since it was looked at; None: it is none, or cannot be asked."""
        target = self._targets.get(name)
        if target is None or not has_log(target.point):
            return None
        if name not in self._tails:
            is_erasing = has_erasures((known.point for known in self._targets.values()), name)
            topic = FollowedTopic(
                connection=kafka_of(target.connection), point=target.point, tombstones_erase=is_erasing
            )
            tail = TopicTail(topic, self._plan.seen(name), self._keys, self._own_at(name), self._plan.renew)
            self._tails[name] = self._stack.enter_context(tail)
        return self._tails[name]

    def _own_at(self, name: str) -> OwnRecords:
        """Return the plan's own records in a topic: those at another target are written before or after these."""
        if name == self._plan.target:
            return self._own
        return OwnRecords(self._plan.plan.id, partial(self._plan.own_positions, name))


def _in_topic(name: str, tail: TopicTail, keys: Sequence[str]) -> RefusalsByKey:
    places = tail.read_on()
    if tail.not_known is not None:
        return _all_refused(
            keys,
            RefusalCode.NOT_KNOWN,
            f"{tail.not_known}, so that the key may have arrived there; run the window again",
        )
    records = {key: f"a record that {CANNOT_BE_READ}, and is" if key in tail.unread else "a record" for key in places}
    return {
        key: Refusal(
            RefusalCode.ARRIVED,
            f"{records[key]} of the key came to {name} at {places[key]} after the window was judged",
        )
        for key in keys
        if key in places
    }


def _in_all(answers: Sequence[RefusalsByKey], keys: Sequence[str]) -> RefusalsByKey:
    """Return the keys that all of the points that lacked them have now; a record serves every point behind it."""
    return {key: answers[0][key] for key in keys if answers and all(key in answer for answer in answers)}


def _in_any(answers: Mapping[str, RefusalsByKey], *, is_produced: bool) -> RefusalsByKey:
    """Return the keys that a point has which would add the record to it, by the answers of these points."""
    refusals: dict[str, Refusal] = {}
    for point, answer in answers.items():
        for key, refusal in answer.items():
            is_there = refusal.code is RefusalCode.ARRIVED
            refusals.setdefault(key, already_in_table(point, is_produced=is_produced) if is_there else refusal)
    return refusals


def _in_table(point: TablePoint, tables: Tables, keys: Sequence[str]) -> RefusalsByKey:
    shape = TableShape(point=point, compare={}, filters={})
    lag = tables.lags_behind(datetime.now(UTC))
    reader = tables.reader(shape)
    present = {key for frame in reader.keys(sorted(set(keys))) for key in frame["key"].to_list()}
    arrived = _all_refused(
        (key for key in keys if key in present), RefusalCode.ARRIVED, f"{point.name} holds the key now"
    )
    if lag is not None:
        return {**_all_refused(keys, RefusalCode.NOT_KNOWN, f"{point.name}: {lag}"), **arrived}
    doubt = {key: [item for item in reader.in_doubt if item.may_hold(key)] for key in keys}
    held = {key: refusal_by_doubt(f"the key in {point.name}", may) for key, may in doubt.items() if may}
    return {**held, **arrived}


def _all_refused(keys: Iterable[str], code: RefusalCode, text: str) -> RefusalsByKey:
    return dict.fromkeys(keys, Refusal(code, text))
