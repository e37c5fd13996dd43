"""Have keys judged alone, and show their verdicts."""

import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from makewhole.cli.documents import hop_ends
from makewhole.cli.environment import Exit, print_table, printable
from makewhole.model.errors import PermanentError, TransientError
from makewhole.model.text import counted
from makewhole.model.verdict import Verdict
from makewhole.model.window import Window

_TRANSIENT = 1
_LAST_LINES = 20
_LISTED_MOST = 20
_UNKNOWN = (None, Verdict.PENDING.value, Verdict.UNDECIDABLE.value)


def judged_keys(pipeline: str, places: Mapping[str, Sequence[Window]]) -> list[dict[str, Any]]:
    """Return the verdicts on keys in the windows that hold them (key → windows), by a process that has what judges.

    Raises:
        TransientError, PermanentError: it could not; the message is its own.
    """
    windows: dict[int, list[str]] = {}
    for key, holders in places.items():
        for window in holders:
            windows.setdefault(window.number, []).append(key)
    wanted = {"pipeline": pipeline, "windows": {str(number): windows[number] for number in sorted(windows)}}
    done = subprocess.run(
        [sys.executable, "-m", "makewhole_spark.of_keys"],
        input=json.dumps(wanted),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        message = "\n".join(done.stderr.strip().splitlines()[-_LAST_LINES:])
        raise (TransientError if done.returncode == _TRANSIENT else PermanentError)(message)
    return [_document(pipeline, json.loads(line)) for line in done.stdout.splitlines()]


def _document(pipeline: str, judgement: Mapping[str, Any]) -> dict[str, Any]:
    return {"pipeline": pipeline, **judgement, "hop": hop_ends(judgement["hop"])}


def show_judged(out: Console, documents: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each verdict, and what it is not; nothing where there is none."""
    if not documents:
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("window", "hop", "key", "verdict", "cause"):
        table.add_column(heading, overflow="fold")
    for document in documents:
        hop = f"{document['hop']['from']}→{document['hop']['to']}"
        verdict, cause = document["verdict"] or "not known", document["cause"] or document["reason"] or ""
        table.add_row(str(document["window"]), hop, printable(document["key"]), verdict, printable(cause))
    print_table(out, table)
    out.print(
        "these keys alone, as they are now: no window was judged, certified or repaired by it. `--whole` judges their "
        "windows"
    )


def show_unjudged(
    out: Console, pipeline: str, places: Mapping[str, Sequence[Window]], documents: Iterable[Mapping[str, Any]]
) -> None:
    """Print which of the keys (key → windows) have no verdict on any hop, and what to do; nothing where all have."""
    judged = {document["key"] for document in documents}
    left = [key for key in places if key not in judged]
    for key in left[:_LISTED_MOST]:
        numbers = ", ".join(str(window.number) for window in places[key])
        out.print(f"no hop of window {numbers} judges {printable(key)}")
    if len(left) > _LISTED_MOST:
        out.print(f"… and {len(left) - _LISTED_MOST:,} more")
    if left:
        out.print(
            f"{len(left):,} of {counted(len(places), 'key')} without a verdict: what their windows hold of them counts "
            "on no hop; it is of an aborted transaction, kept out by a hop's `where`, in a topic that no hop joins, or "
            f"of rows that are gone from their tables since: `makewhole explain {pipeline} KEY` shows each copy, and "
            "why; where a `where` or a hop is wrong, correct the pipeline file and judge the window again: `makewhole "
            f"run {pipeline} --window NUMBER`"
        )


def exit_of_keys(documents: Collection[Mapping[str, Any]], keys: Collection[str]) -> Exit:
    """Return the exit code: whether any of the keys was judged, each has a verdict that is known, and none is a gap."""
    verdicts = {document["verdict"] for document in documents}
    if not verdicts:
        return Exit.NOTHING_JUDGED
    if verdicts & set(_UNKNOWN):
        return Exit.NOT_KNOWN
    gaps = {verdict.value for verdict in Verdict if verdict.is_gap}
    if verdicts & gaps:
        return Exit.GAPS_REMAIN
    return Exit.CERTIFIED if {document["key"] for document in documents} >= {*keys} else Exit.NOT_KNOWN
