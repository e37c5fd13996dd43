"""Draw a history of one pipeline from a seed: what it is made of, what goes wrong with it, and each day's window."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from tests.histories.pipelines.events import (
    Compact,
    Doubt,
    End,
    Ending,
    Event,
    History,
    Insert,
    Item,
    KeyKind,
    ListAgain,
    Load,
    Mishap,
    Pass,
    RollBack,
    Send,
    Settle,
    Stray,
    Window,
)
from tests.histories.pipelines.orders import FILTERS, carried_by
from tests.histories.pipelines.stores import TABLES
from tests.histories.shapes.changes import TYPES
from tests.histories.shapes.formats import FORMATS
from tests.histories.shapes.registry_formats import REGISTRY_FORMATS
from tests.histories.shapes.whole_formats import CARRIED, WHOLE_FORMATS

KINDS = {
    "formats": True,  # records are of any format, and their keys are where that has them
    "registries": True,  # the schemas of records are in a registry
    "wholes": True,  # a record is one text, or any bytes, and nothing else
    "tables": True,  # stores are tables of any kind
    "datasets": True,  # stores are Iceberg tables and files
    "topics": True,  # stores are topics
    "coordinates": True,  # keys are the positions of records, or how their producers numbered them
    "compared": True,  # the file and the store's hop compare some columns, not the same ones
    "filter": True,  # the store takes some records alone
    "transactions": True,  # batches are written in transactions, committed and aborted
    "open": True,  # batches are in transactions that are still open when a window is taken
    "in_doubt": True,  # the store's transactions stay prepared
    "aged": True,  # longer passes than a key may stay pending
    "rewritten": True,  # datasets are compacted, their files listed again, their snapshots taken back
    "lost": True,
    "doubled": True,
    "changed": True,
    "stray": True,  # rows that no record says
    "unasked": True,  # records that no ledger row says
    "produced": True,  # what the topic lacks is sent from the ledger
}
"""The kinds of pipelines and events, and whether they are drawn when nothing names any."""

_WINDOWS = 3
_TROUBLES = (0.0, 0.5, 1.0)
_ID = '"$.id"'
"""The place of the key of those formats whose values have it: where it is no key, rows are written with it."""
_OF_WHOLE = [where for where in FILTERS if where.startswith(CARRIED)]


def draw(seed: int, kinds: frozenset[str]) -> History:
    """Draw the history of a seed, of these kinds."""
    return _Draw(Random(f"pipelines {seed}"), kinds).history(seed)


@dataclass
class _Draw:
    """The state of a drawing: what has been made so far."""

    random: Random
    kinds: frozenset[str]
    number: int = 0
    known: list[int] = field(default_factory=list)
    gids: list[str] = field(default_factory=list)
    trouble: float = 1.0
    is_open: bool = False

    def history(self, seed: int) -> History:
        store, key = self._store_and_key()
        record_format = self._format(key)
        is_whole = carried_by(record_format) != tuple(TYPES)
        compared, of_store_hop = self._columns(), self._columns()
        has_own = self._happens("compared", 0.5)
        where = self.random.choice(sorted(_OF_WHOLE if is_whole else FILTERS))
        has_filter = self._happens("filter", 0.35)
        # A row cannot be made of a record that carries one column of it.
        is_repairing = self.random.random() < 0.8 and (not is_whole or store == "topic")
        frame = History(
            seed=seed,
            record_format=record_format,
            key=key,
            store=store,
            partitions=self.random.randint(1, 3),
            is_repairing=is_repairing,
            compared=(CARRIED,) if is_whole else compared if "compared" in self.kinds else tuple(TYPES),
            of_store_hop=of_store_hop if has_own and not is_whole else None,
            where=where if has_filter else None,
        )
        produces = self._happens("produced", 0.6) and is_repairing and record_format == "json" and key == "id"
        events = tuple(event for day in range(_WINDOWS) for event in self._day(day, frame))
        is_open = any(isinstance(event, Send) and event.ending == "open" for event in events)
        return replace(frame, events=events, produces=produces and not has_own and not has_filter and not is_open)

    def _format(self, key: KeyKind) -> str:
        whole = [made.name for made in WHOLE_FORMATS]
        registered = [made.name for made in REGISTRY_FORMATS if key == "id" or made.key == _ID]
        chosen = self.random.choice(["json"] * 3 + [made.name for made in FORMATS if key == "id" or made.key == _ID])
        drawn, of_registry, of_whole = self.random.random(), self.random.choice(registered), self.random.choice(whole)
        if drawn < 0.2 and "registries" in self.kinds:
            return of_registry
        if drawn > 0.85 and "wholes" in self.kinds and key == "id":
            return of_whole
        return chosen if "formats" in self.kinds else "json"

    def _store_and_key(self) -> tuple[str, KeyKind]:
        stores = [
            *([self.random.choice(sorted(TABLES))] * 2 if "tables" in self.kinds else []),
            *(["iceberg", "files"] if "datasets" in self.kinds else []),
            *(["topic"] if "topics" in self.kinds else []),
        ]
        store = self.random.choice(stores or ["table"])
        keys: list[KeyKind] = ["id", "id", "position"]
        if store == "topic":
            keys = ["id"]
        elif store in TABLES:
            keys = ["id", "id", "id", "position", "sequence"]
        key = self.random.choice(keys)
        if "coordinates" not in self.kinds:
            key = "id"
        return "table" if store in TABLES and key != "id" else store, key

    def _columns(self) -> tuple[str, ...]:
        count = self.random.choice([len(TYPES), len(TYPES), self.random.randint(1, len(TYPES))])
        chosen = set(self.random.sample([*TYPES], k=count))
        return tuple(name for name in TYPES if name in chosen)

    # A day

    def _day(self, day: int, frame: History) -> Iterator[Event]:
        self.trouble = self.random.choice(_TROUBLES)
        yield from self._settled()
        items = [self._item(day) for _ in range(self.random.randint(3, 8))]
        yield Insert(tuple(items))
        yield from self._sent(items, day, frame)
        yield from self._loaded(items, frame)
        if self._goes_wrong("stray", 0.3):
            yield Stray(self._item(day))
        self.known += [item.number for item in items]
        yield from self._doubts(frame)
        yield from self._rewritten(frame)
        yield Window(day)

    def _sent(self, items: list[Item], day: int, frame: History) -> Iterator[Event]:
        drawn: list[Item] = []
        for item in items:
            mishap = self._mishap()
            if mishap != "lost":
                drawn += [item.changed() if mishap == "changed" else item] * (2 if mishap == "doubled" else 1)
        if self._goes_wrong("unasked", 0.3):
            drawn.append(self._item(day))
        self.random.shuffle(drawn)
        at = self.random.randint(0, len(drawn))
        stays_open = self._happens("open", 0.25) and not frame.sends_again
        for part, is_last in ((drawn[:at], False), (drawn[at:], True)):
            if part:
                ending = self._ending(frame.key == "sequence", 0.08)
                self.is_open = is_last and stays_open
                yield Send(tuple(part), day, "open" if self.is_open else ending)

    def _ending(self, has_identity: bool, aborted: float) -> Ending:
        plain: Ending = "idempotent" if has_identity else self.random.choice(["plain", "idempotent"])
        if not self._happens("transactions", 0.4):
            return plain
        return "aborted" if self.random.random() < aborted * 2 * self.trouble else "committed"

    def _loaded(self, items: list[Item], frame: History) -> Iterator[Event]:
        mishaps = [(item.number, mishap) for item in items if (mishap := self._mishap()) is not None]
        gid = None
        if self._happens("in_doubt", 0.35) and frame.is_table:
            gid = f"load-{self._next()}"
            self.gids.append(gid)
        yield Load(tuple(mishaps), self._ending(has_identity=True, aborted=0.3), gid, self.random.randint(1, 3))

    def _doubts(self, frame: History) -> Iterator[Event]:
        for _ in range(self.random.randint(0, 2)):
            how: Literal["changed", "deleted"] = self.random.choice(["changed", "deleted"])
            if self._happens("in_doubt", 0.4) and frame.is_table:
                gid = f"other-{self._next()}"
                self.gids.append(gid)
                yield Doubt(gid, self.random.choice(self.known[-10:]), how)

    def _settled(self) -> Iterator[Event]:
        is_committed = self.random.random() < 0.7
        if self.is_open:
            self.is_open = False
            yield End(is_committed)
        for gid in [*self.gids]:
            if self.random.random() < 0.6:
                self.gids.remove(gid)
                yield Settle(gid, self.random.random() < 0.6)
        if self._happens("aged", 0.3):
            yield Pass()

    def _rewritten(self, frame: History) -> Iterator[Event]:
        for _ in range(self.random.randint(0, 2)):
            dropped = self.random.sample(self.known, k=min(len(self.known), self.random.choice([0, 0, 1, 2])))
            kinds: list[Event] = [Compact(tuple(dropped)), ListAgain(), RollBack()]
            kind = self.random.choice(kinds)
            if self._goes_wrong("rewritten", 0.5) and frame.is_dataset:
                yield kind

    def _item(self, day: int) -> Item:
        return Item(self._next(), day)

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _mishap(self) -> Mishap | None:
        mishap: Mishap = self.random.choice(["lost", "doubled", "changed"])
        return mishap if self._goes_wrong(mishap, 0.2) else None

    def _goes_wrong(self, kind: str, probability: float) -> bool:
        return self._happens(kind, probability * self.trouble)

    def _happens(self, kind: str, probability: float) -> bool:
        """Draw in any case: a kind that is switched off changes little of the rest."""
        return self.random.random() < probability and kind in self.kinds
