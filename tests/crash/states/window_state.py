"""Read what a window and what is kept of a pipeline are made of: the journal whole, and the files that a step can read.

A file under a name of its own counts once the journal names it: others are of attempts that died, and no step reads
them. One whose name says what it is counts as it is, named or not.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.crash.servers.world import Case, CrashWorld
from tests.crash.states.durable_state import Durable, Rows, plain_rows
from tests.crash.windows.stages import journal_rows

_MOMENT = re.compile(r"(?!2025-0[23])\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?([+-]\d\d(:\d\d)?|Z)?")
"""The orders are of March 2025; other moments are those of the case."""
_NAMED_AT_RANDOM = re.compile(r"part-[0-9a-f]{16}|[0-9a-f]{16}\.unfinished|[0-9a-f]{32}\.tmp|merged/[0-9a-f]{32}")
_PASSING = (
    (_MOMENT, "a moment"),
    (_NAMED_AT_RANDOM, "a name"),
    (re.compile(r'(?<="attempt": ")[0-9a-f]{32}'), "an attempt"),
    (re.compile(r'(?<="signature": ")[^"]*|(?<="signature":")[^"]*'), "a signature"),
    (re.compile(r"\b\d+:\d+:[\d,]*"), "a snapshot"),
)
_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_LISTING = ("merge", "keep")
"""Phases that look at files that nothing names, to remove them."""


@dataclass(frozen=True, kw_only=True)
class WindowDurable(Durable):
    """The state of a window. `named`: the paths of files that the journal names; `found`: those that are there."""

    named: frozenset[str]
    found: frozenset[str]

    @cached_property
    def text(self) -> str:
        """All of it, digests included: the same verdicts are in the same bytes."""
        journal = {table: sorted(plain_rows(table, rows)) for table, rows in self.journal.items()}
        return json.dumps({"journal": journal, "files": self.files}, sort_keys=True)

    @property
    def summary(self) -> str:
        """The state in a few words, for people."""
        journal = self.journal
        window = max(journal["window"], key=lambda row: (row["number"], row["revision"]))
        at = {"number": window["number"], "revision": window["revision"]}
        done = [
            f"{len(rows)} {words}"
            for table, words in (("snapshot", "snapshots"), ("hop_result", "results"), ("gate_report", "gate reports"))
            if (rows := [row for row in journal[table] if {name: row[name] for name in at} == at])
        ]
        runs = sum(row["retired_at"] is None for table in ("key_run", "key_merge") for row in journal[table])
        parts = [
            f"window {window['number']} {window['state']}",
            *done,
            f"{len(journal['certificate'])} certificates",
            f"{runs} runs of the index",
            f"{len(journal['removal'])} removals",
            f"{len(self.files)} files",
        ]
        return ", ".join(parts)


def read(world: CrashWorld, case: Case) -> WindowDurable:
    """Read the state as it is now."""
    storage = Path(case.settings.storage)
    journal: dict[str, Rows] = {table: json.loads(rows) for table, rows in journal_rows(world).items()}
    texts = json.dumps(journal, ensure_ascii=False)
    files = {path.relative_to(storage).as_posix(): path for path in sorted(storage.rglob("*")) if path.is_file()}
    named = {path for path in files if path in texts or path.removesuffix(".filter") in texts}
    return WindowDurable(
        journal={table: [_plain(table, row) for row in rows] for table, rows in journal.items()},
        target={},
        records=(),
        marker=0,
        has_marker_topic=False,
        transaction="none",
        held_back=0,
        written=(),
        files=tuple(sorted(_files(files, _listed(files) if case.phase in _LISTING else named))),
        lakes=None,
        names=[],
        named=frozenset(named),
        found=frozenset(files),
    )


def _listed(files: Mapping[str, Path]) -> set[str]:
    """Return the files that housekeeping should leave: the mark of an attempt that died just now is too young to go."""
    return {path for path in files if not path.endswith(".unfinished")}


def _plain(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without what differs from case to case; whether a lease is held is kept."""
    held = {"expires_at": "held" if _is_ahead(row["expires_at"]) else "free"} if "expires_at" in row else {}
    plain: dict[str, Any] = json.loads(_without_passing(json.dumps({**row, **held}), is_signed=table == "certificate"))
    return plain


def _is_ahead(moment: str | None) -> bool:
    return moment is not None and datetime.fromisoformat(moment) > datetime.now(UTC)


def _without_passing(text: str, *, is_signed: bool = False) -> str:
    """Return a text without moments and names; of what `is_signed` without the digests, which hold its moment."""
    for pattern, word in (*_PASSING, *(((_DIGEST, "a digest"),) if is_signed else ())):
        text = pattern.sub(word, text)
    return text


def _files(files: Mapping[str, Path], read: set[str]) -> Iterator[str]:
    """Yield the files that a step can read, each with what is in it where that is text, and named: a file that is not
    may be half written, and is written again."""
    for path, full in files.items():
        if path in read or not _NAMED_AT_RANDOM.search(path):
            content = full.read_text() if path in read and full.suffix in (".json", ".removed") else ""
            plain = _without_passing(content, is_signed="/certificates/" in path)
            digest = hashlib.sha256(plain.encode()).hexdigest()[:8]
            yield f"{_without_passing(path)} {digest if content else ''}".strip()
