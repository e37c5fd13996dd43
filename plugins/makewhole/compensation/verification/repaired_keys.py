"""Write the keys that were repaired into a file for each hop: later windows know by it what the store held."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

import polars as pl

from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.results.hop_results import HopResult
from makewhole.lake.parquet_writer import GrowingParquet
from makewhole.model.closing import ClosingContext
from makewhole.model.verdict import Verdict
from makewhole.window.context import WindowContext


class RepairedKeys(ClosingContext):
    """The files of a window's repaired keys, one for each hop that has any. They are whole once it is closed."""

    def __init__(self, context: WindowContext) -> None:
        self._context, self._stack = context, ExitStack()
        self._files: dict[str, GrowingParquet] = {}

    def close(self) -> None:
        """Finish the files."""
        self._stack.close()

    def add(self, judged: Sequence[JudgedFinding]) -> None:
        """Add those of these findings that are repaired, in the order of their hashes."""
        hashes: dict[str, list[str]] = {}
        for item in judged:
            if item.outcome == "repaired" and _is_now_held(item):
                hashes.setdefault(item.finding.hop, []).append(item.finding.key_hash)
        for hop, of_hop in hashes.items():
            self._file(hop).append(pl.DataFrame({"key_hash": sorted(of_hop)}, schema={"key_hash": pl.String}))

    def named_with(self, result: HopResult) -> HopResult:
        """Name with a result the file of its hop, if there is one."""
        file = self._files.get(result.hop)
        return result if file is None else replace(result, files={**result.files, "repaired": file.path})

    def _file(self, hop: str) -> GrowingParquet:
        if hop not in self._files:
            folder = f"{self._context.window.prefix}/{self._context.pipeline.hop(hop).slug}/repaired"
            self._files[hop] = self._stack.enter_context(self._context.storage.growing_parquet(folder))
        return self._files[hop]


def _is_now_held(item: JudgedFinding) -> bool:
    """Return whether the target of a repaired key holds it: an unexpected one was moved aside."""
    return item.finding.verdict is not Verdict.UNEXPECTED
