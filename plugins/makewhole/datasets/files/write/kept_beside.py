"""Keep beside a dataset what chunks of plans did: which runner may write, what each chunk decided, and its receipt.

All of it lies in the folder `_makewhole` of the dataset, which no reader of datasets looks at:

    _makewhole/<plan>.<target>/lease.<epoch>                 runners with earlier leases write no more
    _makewhole/<plan>.<target>/chunk.<number>.<epoch>.json   what a chunk does, decided before any file changes
    _makewhole/<plan>.<target>/clean.<epoch>                 nothing is left open: what comes of earlier leases is void
    _makewhole/<plan>.<target>/staged.<number>.<epoch>.<n>   the files that it puts into the dataset
    _makewhole/<plan>.<target>/receipt.<number>.json         that it is done, and what of it was refused
    _makewhole/back/<plan>.<action>.<digest>                 a row that was moved aside and put back

A runner decides a chunk under a name of its own lease, then looks whether a later lease is there, and only then changes
files: a later runner has seen the decision and goes on with it, or the earlier one sees the later lease and stops. What
the later one has not seen when it looked is never carried out: that the plan is over may be known by then.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import quote

from makewhole.datasets.files.committed import KEPT_BESIDE
from makewhole.file_stores.store import FileEntry, FileStore
from makewhole.model.errors import CorruptionError, LeaseLostError, RefusedError
from makewhole.model.refusal import Refusal
from makewhole.tables.effects import Effect, EffectKind
from makewhole.tables.receipts import ActionsOfKey, ChunkId, KeptAtTarget, ReceiptRow

_BACK = f"{KEPT_BESIDE}/back"
_TAKEN_OUT = (EffectKind.MOVED,)


@dataclass(frozen=True, kw_only=True)
class FileStep:
    """A file that a chunk puts into the dataset: from `staged` to `path`, where `before` is (None: nothing). `seqs` are
    the actions that it is of. `is_removed`: it is taken away, as no row of it is left."""

    path: str
    before: FileEntry | None
    staged: str | None
    seqs: tuple[int, ...]

    @property
    def is_removed(self) -> bool:
        return self.staged is None


@dataclass(frozen=True, kw_only=True)
class SeenKey:
    """The rows of the key of an action when its chunk was decided: a digest of them by the path of their file."""

    seq: int
    key: str
    rows: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class RowBack:
    """A row that a plan's action moved aside, from a place, and that action `by` of an undo puts back."""

    plan: str
    seq: int
    place: str
    image: str
    by: int

    @property
    def path(self) -> str:
        """Where it is kept that the row is back."""
        digest = hashlib.sha256(self.place.encode()).hexdigest()[:32]
        return f"{_back_path(self.plan, self.seq)}{digest}"


@dataclass(frozen=True, kw_only=True)
class DecidedChunk:
    """Work of a chunk: its refusals so far, the effects, the files, the rows that are put back, and what was seen of
    the keys."""

    plan_sha256: str
    chunk: int
    lease_epoch: int
    actions: int
    refused: Mapping[int, Refusal]
    effects: tuple[Effect, ...]
    steps: tuple[FileStep, ...]
    back: tuple[RowBack, ...]
    seen: tuple[SeenKey, ...]

    def done_but(self, undone: Collection[str]) -> list[Effect]:
        """Return the effects on all but some files."""
        return [effect for effect in self.effects if file_of(effect) not in undone]

    def without(self, plan: str, actions: ActionsOfKey) -> "DecidedChunk":
        """Return it, a chunk of a plan, without the effects of some actions and the rows that they put back."""
        return replace(
            self,
            effects=tuple(effect for effect in self.effects if effect.seq not in actions.get(plan, ())),
            back=tuple(back for back in self.back if back.seq not in actions.get(back.plan, ())),
            seen=tuple(key for key in self.seen if key.seq not in actions.get(plan, ())),
        )

    def text(self) -> bytes:
        """Return it as JSON."""
        fields = asdict(self) | {"refused": {seq: str(refusal) for seq, refusal in self.refused.items()}}
        return json.dumps(fields).encode()

    @classmethod
    def of_text(cls, text: bytes) -> "DecidedChunk":
        """Read it from JSON."""
        fields = json.loads(text)
        return cls(
            **fields
            | {
                "refused": {int(seq): Refusal.of_text(refusal) for seq, refusal in fields["refused"].items()},
                "effects": tuple(Effect(**{**entry, "kind": EffectKind(entry["kind"])}) for entry in fields["effects"]),
                "steps": tuple(_step(entry) for entry in fields["steps"]),
                "back": tuple(RowBack(**entry) for entry in fields["back"]),
                "seen": tuple(SeenKey(**entry) for entry in fields["seen"]),
            }
        )


def file_of(effect: Effect) -> str:
    """Return the path of the file of a row."""
    return effect.place.rpartition(":")[0]


def _step(fields: Mapping[str, Any]) -> FileStep:
    before = None if fields["before"] is None else FileEntry(**fields["before"])
    return FileStep(path=fields["path"], before=before, staged=fields["staged"], seqs=tuple(fields["seqs"]))


@dataclass(frozen=True, kw_only=True)
class PlanFolder:
    """Rows kept of a plan at a target."""

    store: FileStore
    plan: str
    target: str

    @property
    def folder(self) -> str:
        return f"{KEPT_BESIDE}/{quote(self.plan, safe='')}.{quote(self.target, safe='')}"

    @property
    def _back(self) -> str:
        """How the paths begin that keep which rows of the plan were put back."""
        return f"{_BACK}/{quote(self.plan, safe='')}."

    @property
    def digest(self) -> str:
        """Some digits that tell the plan's targets apart."""
        return hashlib.sha256(self.target.encode()).hexdigest()[:8]

    # Leases

    def fence_off(self, lease_epoch: int) -> None:
        """Refuse runners with earlier leases from now on.

        Raises:
            LeaseLostError: a runner with a later lease has been here.
        """
        self.require_lease(lease_epoch)
        self.store.publish(f"{self.folder}/lease.{lease_epoch:012}", b"")
        self.require_lease(lease_epoch)

    def require_lease(self, lease_epoch: int) -> None:
        """Check that no runner with a later lease has been here.

        Raises:
            LeaseLostError: one has.
        """
        leases = [int(name.split(".")[1]) for name in self._names() if name.startswith("lease.")]
        if max(leases, default=0) > lease_epoch:
            raise LeaseLostError(f"plan {self.plan}: a newer runner has been at {self.target}; this one stops")

    # Chunks

    def decisions(self) -> dict[int, DecidedChunk]:
        """Return what was decided, by chunk: of two runners' decisions the later one's. The earlier one's was never
        carried out, for else the later runner would have seen it."""
        latest: dict[int, tuple[int, str]] = {}
        for name in self._names():
            if name.startswith("chunk."):
                number, epoch = map(int, name.split(".")[1:3])
                latest[number] = max(latest.get(number, (-1, "")), (epoch, name))
        return {number: DecidedChunk.of_text(self._read(name)) for number, (_, name) in sorted(latest.items())}

    def open_decision(self, plan: ChunkId, chunk: int) -> DecidedChunk | None:
        """Return what was decided of a chunk without a receipt, and has to be carried out; None: nothing.

        Raises:
            CorruptionError: it was decided for a plan of another content.
        """
        names = self._names()
        clean = max((int(name.split(".")[1]) for name in names if name.startswith("clean.")), default=0)
        latest = max((name for name in names if name.startswith(f"chunk.{chunk:06}.")), default=None)
        if latest is None or int(latest.split(".")[2]) < clean:
            return None
        decision = DecidedChunk.of_text(self._read(latest))
        if decision.plan_sha256 != plan.plan_sha256:
            raise CorruptionError(f"chunk {chunk} of plan {self.plan} was decided at {self.target} for another content")
        return decision

    def leave_none_open(self, lease_epoch: int) -> None:
        """Keep that whatever was decided under earlier leases has its receipt: a decision that comes from there since
        is of a runner that was stopped, and void."""
        self.store.publish(f"{self.folder}/clean.{lease_epoch:012}", b"")

    def decide(self, decision: DecidedChunk) -> bool:
        """Keep what a chunk does; return whether it was, and was not there already."""
        name = f"chunk.{decision.chunk:06}.{decision.lease_epoch:012}.json"
        return self.store.publish(f"{self.folder}/{name}", decision.text())

    def stage(self, chunk: ChunkId, number: int, content: bytes) -> str:
        """Keep a file that a chunk is about to put into the dataset; return its path."""
        path = f"{self.folder}/staged.{chunk.chunk:06}.{chunk.lease_epoch:012}.{number}"
        self.store.replace(path, content)
        return path

    def remove_staged(self, done: int) -> None:
        """Remove what the first `done` chunks had staged, where a runner was killed before it could: they have
        receipts, and are not carried out again. It holds rows of keys that the plan does not name, too."""
        for name in self._names():
            if name.startswith("staged.") and int(name.split(".")[1]) < done:
                self.store.remove(f"{self.folder}/{name}")

    # Receipts

    def count_receipts(self) -> int:
        """Count the receipts of the plan, without reading them.

        Raises:
            CorruptionError: they have holes.
        """
        numbers = sorted(int(name.split(".")[1]) for name in self._names() if name.startswith("receipt."))
        if numbers != list(range(len(numbers))):
            raise self._unfit()
        return len(numbers)

    def receipt(self, plan: ChunkId, chunk: int) -> ReceiptRow:
        """Return the receipt of a chunk.

        Raises:
            CorruptionError: it was given for a plan of another content.
        """
        fields = json.loads(self._read(f"receipt.{chunk:06}.json"))
        if fields["plan_sha256"] != plan.plan_sha256:
            raise self._unfit()
        return _receipt(fields)

    def receipts(self, plan: ChunkId) -> list[ReceiptRow]:
        """Return the receipts of the plan, in order.

        Raises:
            CorruptionError: they have holes, or were given for a plan of another content.
        """
        return [self.receipt(plan, chunk) for chunk in range(self.count_receipts())]

    def _unfit(self) -> CorruptionError:
        return CorruptionError(f"the receipts of plan {self.plan} at {self.target} do not fit the plan")

    def give_receipt(self, decision: DecidedChunk, undone: Mapping[str, Refusal]) -> ReceiptRow:
        """Keep that a chunk is done but for some files, each with the reason, and remove all that was staged for it;
        return the receipt that is there. An action of which nothing was done is refused. Rows that are back are kept as
        such."""
        left = {effect.seq for effect in decision.done_but(undone)}
        lost = {effect.seq: undone[file_of(effect)] for effect in decision.effects if effect.seq not in left}
        for back in decision.back:
            if back.by not in lost:
                self.put_back(back)
        all_refused = {**decision.refused, **dict(sorted(lost.items()))}
        fields = {
            "plan_sha256": decision.plan_sha256,
            "chunk": decision.chunk,
            "actions": decision.actions - len(all_refused),
            "lease_epoch": decision.lease_epoch,
            "refused": {seq: str(refusal) for seq, refusal in all_refused.items()},
            "undone": sorted(undone),
        }
        name = f"receipt.{decision.chunk:06}.json"
        self.store.publish(f"{self.folder}/{name}", json.dumps(fields).encode())
        self.remove_staged(decision.chunk + 1)  # what a runner had staged that was killed before it decided, too
        return _receipt(json.loads(self._read(name)))

    def effects(self) -> Iterator[list[Effect]]:
        """Yield the effects of chunks that have a receipt, the latest chunk first.

        Raises:
            RefusedError: a chunk has a receipt, and what it did is not there.
        """
        decided = self.decisions()
        names = sorted((name for name in self._names() if name.startswith("receipt.")), reverse=True)
        for name in names:
            fields = json.loads(self._read(name))
            receipt = _receipt(fields)
            decision = decided.get(receipt.chunk)
            done = [] if decision is None else decision.done_but(fields["undone"])
            if len({effect.seq for effect in done}) != receipt.actions:
                raise RefusedError(f"chunk {receipt.chunk} of plan {self.plan} at {self.target} lacks its effects")
            yield sorted(done, key=lambda effect: (effect.seq, effect.place), reverse=True)

    # Rows that were put back

    def put_back(self, back: RowBack) -> None:
        """Keep that a row was put back."""
        self.store.publish(back.path, back.image.encode())

    def is_back(self, back: RowBack) -> bool:
        """Return whether a row was put back already."""
        return self.store.find(back.path) is not None

    def images_back(self, plan: str, seq: int) -> list[str]:
        """Return the images of the rows that an action moved aside and that were put back."""
        before = _back_path(plan, seq)
        paths = [entry.path for entry in self.store.list(_BACK) if entry.path.startswith(before)]
        return [self._content(path).decode() for path in paths]

    # Removal

    def amount(self) -> KeptAtTarget:
        """Count what is kept of the plan: its files, and the rows that it moved aside, which are in the same files."""
        decided = self.decisions().values()
        moved = {(effect.seq, effect.place) for work in decided for effect in work.effects if effect.kind in _TAKEN_OUT}
        back = sum(entry.path.startswith(self._back) for entry in self.store.list(_BACK))
        return KeptAtTarget(effects=len(self._names()), aside=len(moved), waiting=max(0, len(moved) - back))

    def forget(self) -> None:
        """Remove what is kept of the plan, leases last: killed in between, the next attempt removes what is left."""
        for name in sorted(self._names(), key=lambda name: (name.startswith("lease."), name)):
            self.store.remove(f"{self.folder}/{name}")
        for entry in self.store.list(_BACK):
            if entry.path.startswith(self._back):
                self.store.remove(entry.path)

    def erase(self, actions: ActionsOfKey) -> int:
        """Write what chunks decided again without some actions, and remove the rows of theirs that were put back.
        Returns how many effects and rows there were."""
        erased = 0
        for name in self._names():
            if name.startswith("chunk."):
                decided = DecidedChunk.of_text(self._read(name))
                left = decided.without(self.plan, actions)
                gone = len(decided.effects) - len(left.effects) + len(decided.back) - len(left.back)
                if gone:
                    self.store.replace(f"{self.folder}/{name}", left.text())
                    erased += gone
        mine = tuple(_back_path(self.plan, seq) for seq in actions.get(self.plan, ()))
        for entry in self.store.list(_BACK):
            if entry.path.startswith(mine):
                self.store.remove(entry.path)
                erased += 1
        return erased

    def _names(self) -> Sequence[str]:
        return [entry.name for entry in self.store.list(self.folder)]

    def _read(self, name: str) -> bytes:
        return self._content(f"{self.folder}/{name}")

    def _content(self, path: str) -> bytes:
        with self.store.open(path) as file:
            return file.read()


def _back_path(plan: str, seq: int) -> str:
    return f"{_BACK}/{quote(plan, safe='')}.{seq}."


def _receipt(fields: Mapping[str, Any]) -> ReceiptRow:
    return ReceiptRow(
        chunk=fields["chunk"],
        actions=fields["actions"],
        lease_epoch=fields["lease_epoch"],
        refused={int(seq): Refusal.of_text(text) for seq, text in fields["refused"].items()},
    )
