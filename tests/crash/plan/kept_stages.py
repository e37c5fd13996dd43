"""Keep where a phase of datasets begins: each world takes a plan there once, and puts its rows and files back since.

What a plan for datasets leaves is in three places alone: rows of its pipeline in the journal, the tables of the
target's database, with those of the catalogue, and the folders of the case.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.crash.plan.case_settings import CaseSettings
from tests.crash.servers.world import CrashWorld
from tests.crash.states import durable
from tests.crash.windows.stages import journal_tables
from tests.world.sql import Rows

_TARGET = ("dw.departures", "dw.mirror", "dw.outbox", "public.iceberg_tables", "public.iceberg_namespace_properties")


@dataclass(frozen=True, kw_only=True)
class KeptStage:
    """The settings of its cases, all rows by table, as JSON, and a folder with a copy of each of theirs."""

    settings: CaseSettings
    journal: Mapping[str, str]
    target: Mapping[str, str]
    folder: Path


def at_stage(world: CrashWorld, phase: str, reach: Callable[[], CaseSettings]) -> CaseSettings:
    """Return the settings of a case at the beginning of a phase, which is reached for the first one."""
    kept: KeptStage | None = world.kept_stages.get(phase)
    if kept is not None:
        _put_back(world, kept)
        return kept.settings
    settings = reach()
    folder = Path(settings.storage).with_name("stages") / phase
    for own in _folders(settings):
        if own.exists():
            shutil.copytree(own, folder / own.name)
    world.kept_stages[phase] = KeptStage(
        settings=settings,
        journal=_rows(world.journal_sql, _of_journal(world), settings),
        target=_rows(world.sql, dict.fromkeys(_TARGET, "true"), settings),
        folder=folder,
    )
    return settings


def _put_back(world: CrashWorld, kept: KeptStage) -> None:
    durable.settle(world)  # what a killed runner had sent is carried out before
    emptied = [f"delete from {name} as t where {condition}" for name, condition in _of_journal(world).items()]
    _fill(world.journal_sql, emptied, kept.journal, kept)
    _fill(world.sql, ["drop schema if exists makewhole cascade", f"truncate {', '.join(_TARGET)}"], kept.target, kept)
    for own in _folders(kept.settings):
        shutil.rmtree(own, ignore_errors=True)
        if (kept.folder / own.name).exists():
            shutil.copytree(kept.folder / own.name, own)


def _of_journal(world: CrashWorld) -> dict[str, str]:
    """Return the tables of the journal, with the conditions of a pipeline's rows: that of plans is the last, by which
    the rows of others are found."""
    tables = {f"makewhole.{name}" for name in journal_tables(world)}
    conditions = [
        (name, condition) for name, condition in durable.conditions_of_journal(world).items() if name in tables
    ]
    return dict(sorted(conditions, key=lambda item: item[0] == "makewhole.plan"))


def _folders(settings: CaseSettings) -> tuple[Path, Path]:
    return Path(settings.storage), Path(settings.lake)


def _rows(run: Callable[..., Rows], tables: Mapping[str, str], settings: CaseSettings) -> dict[str, str]:
    """Return all rows of tables that belong to a case, in one statement: one moment."""
    pieces = [
        f"select '{name}', coalesce(json_agg(t), '[]')::text from {name} as t where {condition}"
        for name, condition in tables.items()
    ]
    return dict(run(" union all ".join(pieces), {"pipeline": settings.pipeline}))


def _fill(run: Callable[..., Rows], emptying: list[str], rows: Mapping[str, str], kept: KeptStage) -> None:
    """Empty tables and put their rows back; what refers to what is held back meanwhile."""
    filling = [
        f"insert into {name} overriding system value "
        f"select * from json_populate_recordset(null::{name}, %(rows_{number})s::json)"
        for number, name in enumerate(rows)
    ]
    parameters = {f"rows_{number}": texts for number, texts in enumerate(rows.values())}
    statements = [
        "set session_replication_role = replica",
        *emptying,
        *filling,
        "set session_replication_role = default",
    ]
    run(";".join(statements), {**parameters, "pipeline": kept.settings.pipeline})
