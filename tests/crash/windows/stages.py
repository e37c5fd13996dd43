"""Bring a window to where a phase begins: it is taken there once, and each worker puts journal and files back since.

The systems that a window reads are the same for all workers, and no phase changes them. So are the names of its files:
they are below the working directory of a runner.
"""

import os
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.crash.plan.case_settings import CaseSettings
from tests.crash.windows.window_scenario import LONG_AGO, PHASES, PIPELINE

if TYPE_CHECKING:
    from tests.crash.servers.world import CrashWorld

_OUTSIDE = ("migration",)
_PATIENCE_SECONDS = 300.0
_KEPT = ("storage", "pipelines")
_UNNAMED = "shop/window=1/revision=1/outbox/keys/bucket=0/part-0123456789abcdef.parquet"


@dataclass(kw_only=True)
class Stages:
    """The stages that were reached: the rows of the journal by table, as JSON, and the files in `folder`. `target` is
    the database of the shop."""

    target: str
    folder: Path
    _rows: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _broken: str | None = None

    def restore(self, world: "CrashWorld", settings: CaseSettings, phase: str) -> CaseSettings:
        """Have journal and storage of a world as they are where a phase begins."""
        settings = replace(settings, pipeline=PIPELINE, topic=PIPELINE, target=self.target)
        with self._lock:
            while phase not in self._rows:
                assert self._broken is None, self._broken
                self._go_on(world, settings)
        self._put_back(world, settings, phase)
        return settings

    def _go_on(self, world: "CrashWorld", settings: CaseSettings) -> None:
        """Reach the next stage."""
        if self._rows:
            last = [*self._rows][-1]
            self._put_back(world, settings, last)
            after = [*PHASES][[*PHASES].index(last) + 1]
        else:
            last, after = "history", next(iter(PHASES))
            _empty(world, settings)
        run = world.run(last, settings)
        run.wait("ended", seconds=_PATIENCE_SECONDS)
        if run.report().outcome != "done":
            self._broken = f"{last}: {run.report().says}"
        assert self._broken is None, self._broken
        if after == "keep":
            _leave_file(Path(settings.storage))
            age(world, Path(settings.storage))
        for name in _KEPT:
            shutil.copytree(Path(settings.storage).with_name(name), self.folder / after / name)
        self._rows[after] = journal_rows(world)

    def _put_back(self, world: "CrashWorld", settings: CaseSettings, phase: str) -> None:
        _empty(world, settings)
        rows = self._rows[phase]
        fill = ";".join(
            f"insert into makewhole.{table} overriding system value "
            f"select * from json_populate_recordset(null::makewhole.{table}, %({table})s::json)"
            for table in rows
        )
        # What refers to what is held back meanwhile.
        world.journal_sql(
            f"set session_replication_role = replica; {fill}; set session_replication_role = default", rows
        )
        for name in _KEPT:
            shutil.copytree(self.folder / phase / name, Path(settings.storage).with_name(name))


def journal_tables(world: "CrashWorld") -> list[str]:
    """Return the tables of the journal that hold something of a pipeline."""
    tables = world.journal_sql("select tablename from pg_tables where schemaname = 'makewhole' order by 1")
    return [name for (name,) in tables if name not in _OUTSIDE]


def journal_rows(world: "CrashWorld") -> dict[str, str]:
    """Return all rows by table, each table as JSON, in one statement: one moment."""
    pieces = [
        f"select '{name}', coalesce(json_agg(t order by to_jsonb(t)::text), '[]')::text from makewhole.{name} as t"
        for name in journal_tables(world)
    ]
    return dict(world.journal_sql(" union all ".join(pieces)))


def _empty(world: "CrashWorld", settings: CaseSettings) -> None:
    world.journal_sql(f"truncate {', '.join(f'makewhole.{table}' for table in journal_tables(world))}")
    for name in _KEPT:
        shutil.rmtree(Path(settings.storage).with_name(name), ignore_errors=True)


def age(world: "CrashWorld", storage: Path) -> None:
    """Make the windows be closed, and the files be written, long ago."""
    world.journal_sql("update makewhole.window set closed_at = closed_at - %s", [LONG_AGO])
    written = time.time() - LONG_AGO.total_seconds()
    for path in storage.rglob("*"):
        os.utime(path, (written, written))


def _leave_file(storage: Path) -> None:
    """Leave a file that an attempt which died has written."""
    unnamed = storage / _UNNAMED
    unnamed.parent.mkdir(parents=True, exist_ok=True)
    unnamed.write_bytes(b"unfinished")
