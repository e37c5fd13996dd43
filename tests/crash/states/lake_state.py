"""Read what the datasets of a case hold, and what is kept there of its plans, as far as a later runner can tell.

Left out is what no runner asks for: fences and leases (the last one always is the runner's own), chunks that were void
or decided under an earlier lease and never carried out, files that no list and no decision names (those that were not
written to their end among them), and the numbers of snapshots and moments of files, of which it is kept whether they
are those of now.
"""

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from tests.crash.plan import lakes
from tests.crash.plan.case_settings import CaseSettings

_ATTEMPT = "makewhole.attempt"
_EPOCHS = re.compile(r"\.\d{12}(?=\.)")
_PLACE = re.compile(r"data/[^:]*:(\d+) \(snapshot \d+\)")
"""A row's place names the file and the snapshot that a runner before has made; it is shown, and never asked for."""

Kept = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class LakeState:
    """`rows` and `receipts` by store, `effects` of each; `rest` is what else a runner can read."""

    rows: Mapping[str, list[tuple[str, int]]]
    receipts: Mapping[str, Kept]
    effects: Mapping[str, Kept]
    rest: tuple[str, ...]

    @property
    def texts(self) -> Iterator[str]:
        """All of it, as texts, in any order: the names in them are others in each case."""
        yield json.dumps(self.rows, sort_keys=True)
        for recorded in (self.receipts, self.effects):
            yield from (
                json.dumps([store, entry], sort_keys=True) for store, some in recorded.items() for entry in some
            )
        yield from self.rest


def read_lakes(settings: CaseSettings) -> LakeState:
    """Read both datasets as they are now."""
    table, kept = lakes.catalog(settings).load_table(lakes.TABLE), _kept(settings)
    intents = [row for row in kept if row["kind"] == "intent"]
    fates = {row["attempt"]: row["kind"] for row in kept if row["kind"] in ("committed", "void")}
    done = {attempt for attempt, fate in fates.items() if fate == "committed"}
    names = {row["attempt"]: f"{row['plan']} {row['chunk']}" for row in intents}
    files = _Files(settings)
    return LakeState(
        rows={
            "lake": sorted(lakes.essence(table.scan().to_arrow().to_pylist())),
            "files": sorted(row for name in files.data for row in lakes.file_rows(settings, name)),
        },
        receipts={
            "lake": sorted((_lake_receipt(row) for row in intents if row["attempt"] in done), key=str),
            "files": files.receipts,
        },
        effects={
            "lake": sorted(
                (_lake_effect(row, names) for row in kept if row["kind"] == "effect" and row["attempt"] in done),
                key=str,
            ),
            "files": files.effects,
        },
        rest=(
            f"namespaces: {sorted(lakes.catalog(settings).list_namespaces())}",
            *_lake_rest(table, kept, {row["attempt"] for row in intents} - set(fates)),
            *files.rest,
        ),
    )


# The Iceberg table


def _kept(settings: CaseSettings) -> Kept:
    try:
        table = lakes.catalog(settings).load_table(lakes.KEPT)
    except NoSuchTableError:
        return [{"kind": "no table", "attempt": None}]
    return table.scan().to_arrow().to_pylist()


def _lake_receipt(row: Mapping[str, Any]) -> dict[str, Any]:
    body = json.loads(row["body"])
    return {"plan": row["plan"], "chunk": row["chunk"], "actions": body["actions"], "refused": body["refused"]}


def _lake_effect(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    wanted = ("chunk", "number", "plan", "seq", "place", "before", "after", "back_plan", "back_seq", "back_place")
    fields = {name: row[name] for name in wanted}
    for attempt, name in names.items():
        for column in ("place", "back_place"):
            place = fields[column] and fields[column].replace(attempt, name)
            fields[column] = place and _PLACE.sub(r"row \1", place)
    return {**fields, "kind": row["effect"]}


def _lake_rest(table: Table, kept: Kept, is_open: set[str]) -> Iterator[str]:
    """Yield whether the table of effects is there, and of each open intent what can be found out of it."""
    yield f"kept: {min(len(kept), 1) and kept[0]['kind'] == 'no table'}, {bool(kept)}"
    committed = {
        snapshot.summary[_ATTEMPT]
        for snapshot in table.metadata.snapshots
        if snapshot.summary and _ATTEMPT in snapshot.summary
    }
    now = table.current_snapshot()
    for row in kept:
        if row["kind"] == "intent" and row["attempt"] in is_open:
            base = json.loads(row["body"])["base"]
            is_last = now is not None and now.snapshot_id == base
            yield json.dumps([row["plan"], _lake_receipt(row), row["attempt"] in committed, is_last])


# The dataset of files


def _folders(dataset: Path) -> Iterator[str]:
    """Yield the folders that there are: a runner makes one before it writes the first file, and a kill leaves it."""
    yield from sorted(f"{path.relative_to(dataset).as_posix()}/" for path in dataset.rglob("*") if path.is_dir())


class _Files:
    """What lies in the folder: `data` are the names of the files that readers look at."""

    def __init__(self, settings: CaseSettings) -> None:
        self._settings, self._store = settings, lakes.folder(settings)
        entries = {entry.path: entry for entry in self._store.list()}
        self.data = [path for path in entries if not any(part[0] in "._" for part in path.split("/"))]
        self._entries = entries
        self.receipts = sorted(
            map(self._receipt, self._named("receipt.")), key=lambda receipt: (receipt["plan"], receipt["chunk"])
        )
        self._decisions = self._latest_decisions()
        done = {(receipt["plan"], receipt["chunk"]) for receipt in self.receipts}
        self.effects = [
            {**effect, "kind": effect["kind"]}
            for place, decision in sorted(self._decisions.items())
            if place in done
            for effect in decision["effects"]
        ]
        self.rest = tuple(self._rest())

    def _named(self, start: str) -> list[str]:
        kept = (path for path in self._entries if path.startswith("_makewhole/"))
        return [path for path in kept if path.rpartition("/")[2].startswith(start)]

    def _json(self, path: str) -> dict[str, Any]:
        with self._store.open(path) as file:
            content: dict[str, Any] = json.loads(file.read())
        return content

    def _receipt(self, path: str) -> dict[str, Any]:
        document = self._json(path)
        kept = {name: value for name, value in document.items() if name != "lease_epoch"}
        return {"plan": path.split("/")[1].rpartition(".")[0], **kept}

    def _latest_decisions(self) -> dict[tuple[str, int], dict[str, Any]]:
        """Return of each chunk the last decision: the one that is carried out. Those that are void are none."""
        decisions, receipts = {}, {(receipt["plan"], receipt["chunk"]) for receipt in self.receipts}
        clean: dict[str, int] = {}
        for path in sorted(self._named("clean.")):
            clean[path.split("/")[1].rpartition(".")[0]] = int(path.rpartition(".")[2])
        for path in sorted(self._named("chunk.")):
            decision, plan = self._json(path), path.split("/")[1].rpartition(".")[0]
            if (plan, decision["chunk"]) in receipts or decision["lease_epoch"] >= clean.get(plan, 0):
                decisions[plan, decision["chunk"]] = decision
        return decisions

    def _rest(self) -> Iterator[str]:
        for path in self.data:
            with self._store.open(path) as file:
                marks = pq.read_schema(io.BytesIO(file.read())).metadata or {}
            rows = lakes.file_rows(self._settings, path)
            yield json.dumps([path, rows, marks.get(b"makewhole", b"").decode()])
        for place, decision in self._decisions.items():
            steps = [self._step(step) for step in decision["steps"]]
            yield json.dumps([place, {**decision, "lease_epoch": 0, "steps": steps}])
        yield from _folders(Path(self._store.root))
        for path in self._entries:
            if path.startswith("_makewhole/back/") and not path.rpartition("/")[2].startswith("."):
                with self._store.open(path) as file:
                    yield json.dumps([path, file.read().decode()])

    def _step(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Return a step of a decision: whether the file is as it was, and the staged one is there."""
        before, now = step["before"], self._entries.get(step["path"])
        is_same = (before is None) == (now is None) and (
            before is None
            or now is None
            or (before["size_bytes"], before["modified_ms"]) == (now.size_bytes, now.modified_ms)
        )
        staged = step["staged"]
        return {
            **step,
            "before": "as it is now" if is_same else "another",
            "staged": staged and _EPOCHS.sub("", staged),
            "is staged": staged in self._entries,
        }
