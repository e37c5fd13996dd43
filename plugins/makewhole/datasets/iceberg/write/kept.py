"""Keep what plans did to the tables of a catalogue, in a table of its own there: `makewhole.effects`.

Each row is one thing that is kept: a fence (from which lease on runners of a plan may write), an intent (a chunk that
is about to be committed, with its receipt), its effects, or what became of it: committed, or void. An intent is there
before the commit of its rows, whose snapshot names it by its attempt; so what is not known after a kill can be found
out. Rows are only ever added, in commits that nothing came between.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError
from pyiceberg.expressions import And, BooleanExpression, EqualTo, NotEqualTo

from makewhole.datasets.iceberg.catalog import NoTableError, load_table, open_catalog, translated
from makewhole.datasets.iceberg.reading import Snapshotted
from makewhole.datasets.iceberg.write.commit import commit
from makewhole.model.connection import IcebergConnection
from makewhole.model.refusal import Refusal
from makewhole.tables.effects import Effect, EffectKind
from makewhole.tables.receipts import ReceiptRow

NAMESPACE = "makewhole"
NAME = f"{NAMESPACE}.effects"
_TEXTS = ("kind", "plan", "target", "attempt", "effect", "place", "before", "after", "back_plan", "back_place", "body")
_NUMBERS = ("chunk", "lease_epoch", "number", "seq", "back_seq")
_TYPES: dict[str, Any] = {**dict.fromkeys(_TEXTS, pa.string()), **dict.fromkeys(_NUMBERS, pa.int64())}
SCHEMA = pa.schema(_TYPES)
_PROPERTIES = {"commit.manifest-merge.enabled": "true"}


class Keeping(StrEnum):
    """Kinds of rows that the table keeps."""

    FENCE = "fence"
    INTENT = "intent"
    EFFECT = "effect"
    COMMITTED = "committed"
    VOID = "void"


KeptRow = Mapping[str, Any]
"""Column → its value; those that are not named are null."""


@dataclass(frozen=True, kw_only=True)
class Intent:
    """A chunk that is about to be committed: its table, the snapshot that it is made of (None: of none), the digest of
    its plan, and the receipt."""

    attempt: str
    table: str
    base: int | None
    plan_sha256: str
    receipt: ReceiptRow

    def row(self, plan: str, target: str) -> KeptRow:
        """Return the row that keeps it."""
        refused = {str(seq): str(refusal) for seq, refusal in self.receipt.refused.items()}
        body: dict[str, object] = {"table": self.table, "base": self.base, "plan_sha256": self.plan_sha256}
        body |= {"actions": self.receipt.actions, "refused": refused}
        return {
            "kind": Keeping.INTENT.value,
            "plan": plan,
            "target": target,
            "attempt": self.attempt,
            "chunk": self.receipt.chunk,
            "lease_epoch": self.receipt.lease_epoch,
            "body": json.dumps(body, ensure_ascii=True),
        }

    @classmethod
    def of_row(cls, row: KeptRow) -> "Intent":
        """Return the intent that a row keeps."""
        body = json.loads(row["body"])
        refused = {int(seq): Refusal.of_text(text) for seq, text in body["refused"].items()}
        receipt = ReceiptRow(
            chunk=row["chunk"], actions=body["actions"], lease_epoch=row["lease_epoch"], refused=refused
        )
        return cls(
            attempt=row["attempt"],
            table=body["table"],
            base=body["base"],
            plan_sha256=body["plan_sha256"],
            receipt=receipt,
        )


@dataclass(frozen=True, kw_only=True)
class KeptOfPlan:
    """Rows kept of a plan at a target but the effects, as of one snapshot of the table that keeps it (`source`;
    None: there is none)."""

    source: Snapshotted | None
    rows: Sequence[KeptRow]

    @property
    def fence(self) -> int:
        """The lease from which on runners may write."""
        known = [row["lease_epoch"] for row in self.rows if row["kind"] in (Keeping.FENCE, Keeping.INTENT)]
        return max(known, default=0)

    def intents(self, *fates: Keeping) -> list[Intent]:
        """Return the intents that came to this; without a fate, those of which it is not known."""
        fate = {row["attempt"]: row["kind"] for row in self.rows if row["kind"] in (Keeping.COMMITTED, Keeping.VOID)}
        log = (Intent.of_row(row) for row in self.rows if row["kind"] == Keeping.INTENT)
        wanted = {keeping.value for keeping in fates}
        return [entry for entry in log if (fate.get(entry.attempt) in wanted if wanted else entry.attempt not in fate)]


def _effect(row: KeptRow) -> Effect:
    return Effect(
        plan=row["plan"],
        target=row["target"],
        chunk=row["chunk"],
        seq=row["seq"],
        kind=EffectKind(row["effect"]),
        place=row["place"],
        before=row["before"],
        after=row["after"],
    )


def effect_rows(attempt: str, effects: Sequence[Effect], returned: Mapping[int, tuple[str, int, str]]) -> list[KeptRow]:
    """Return the rows that keep effects. `returned`: of those that put a row back, from where, by their number."""
    rows = list[KeptRow]()
    for number, effect in enumerate(effects):
        fields = asdict(effect)
        back_plan, back_seq, back_place = returned.get(number, (None, None, None))
        row = {
            **{name: fields[name] for name in ("plan", "target", "chunk", "seq", "place", "before", "after")},
            "kind": Keeping.EFFECT.value,
            "effect": effect.kind.value,
            "attempt": attempt,
            "number": number,
            "back_plan": back_plan,
            "back_seq": back_seq,
            "back_place": back_place,
        }
        rows.append(row)
    return rows


class KeptTable:
    """The table of a catalogue that keeps what plans did to the others. What was read of a plan is not read again."""

    def __init__(self, connection: IcebergConnection) -> None:
        self._connection = connection
        self._what = f"{NAME} at connection {connection.id}"
        self._known: dict[tuple[str, str], tuple[int, list[KeptRow]]] = {}

    def make(self) -> None:
        """Make the table where it is not there yet.

        Raises:
            TransientError: the catalogue does not answer.
            PermanentError: it may not be made.
        """
        catalog = open_catalog(self._connection)
        with translated(self._what):
            if catalog.table_exists(NAME):
                return
            with suppress(NamespaceAlreadyExistsError):
                catalog.create_namespace(NAMESPACE)
            with suppress(TableAlreadyExistsError):
                catalog.create_table(NAME, schema=SCHEMA, properties=_PROPERTIES)

    def of_plan(self, plan: str, target: str) -> KeptOfPlan:
        """Return what is kept of a plan at a target; nothing where the table is not there."""
        source = self._source()
        return KeptOfPlan(source=None, rows=()) if source is None else self._of_plan(source, plan, target)

    def _of_plan(self, source: Snapshotted, plan: str, target: str) -> KeptOfPlan:
        since, rows = self._known.get((plan, target), (0, []))
        where = And(And(EqualTo("plan", plan), EqualTo("target", target)), NotEqualTo("kind", Keeping.EFFECT.value))
        new = self._rows(source, where, since)
        kept = [row for row in new if (row["plan"], row["target"]) == (plan, target) and row["kind"] != Keeping.EFFECT]
        once = {(row["kind"], row["attempt"], row["lease_epoch"]): row for row in (*rows, *kept)}  # whoever compacts it
        self._known[plan, target] = source.view.sequence, list(once.values())
        return KeptOfPlan(source=source, rows=list(once.values()))

    def effects(self, plan: str, target: str, attempts: Iterable[str]) -> list[Effect]:
        """Return the effects of attempts of a plan, in the order in which they were done."""
        source, wanted = self._source(), set(attempts)
        if source is None or not wanted:
            return []
        rows = self._rows(source, And(EqualTo("plan", plan), EqualTo("kind", Keeping.EFFECT.value)))
        own = [row for row in rows if row["kind"] == Keeping.EFFECT and row["attempt"] in wanted]
        return [_effect(row) for row in sorted(own, key=lambda row: (row["chunk"], row["number"]))]

    def put_back(self, plan: str) -> dict[tuple[str, int, str], str]:
        """Return the images of rows that were put back, by where the plan had moved them from."""
        source = self._source()
        if source is None:
            return {}
        own = [row for row in self._rows(source, EqualTo("back_plan", plan)) if row["back_plan"] == plan]
        by = {(row["plan"], row["target"]) for row in own}
        done = {intent.attempt for undo in by for intent in self._of_plan(source, *undo).intents(Keeping.COMMITTED)}
        return {
            (row["back_plan"], row["back_seq"], row["back_place"]): row["after"]
            for row in own
            if row["attempt"] in done
        }

    def add(self, seen: KeptOfPlan, rows: Sequence[KeptRow]) -> bool:
        """Add rows, if nothing was added since `seen`; return whether they were."""
        assert seen.source is not None
        full = [{**dict.fromkeys(SCHEMA.names), **row} for row in rows]
        with translated(self._what):
            added = pa.Table.from_pylist(full, schema=SCHEMA)
            return commit(seen.source.table, added=[added], is_merging=True) is not None

    def _source(self) -> Snapshotted | None:
        try:
            return Snapshotted(load_table(self._connection, NAME), NAME)
        except NoTableError:
            return None

    def _rows(self, source: Snapshotted, where: BooleanExpression, since: int = 0) -> list[KeptRow]:
        """Return rows that were added by commits after one, at least those for which `where` holds."""
        files = [listed for listed in source.files(where) if listed.sequence > since]
        return [row for _, rows in source.rows(files, SCHEMA.names, where) for row in rows.rows.to_pylist()]
