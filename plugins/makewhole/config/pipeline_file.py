"""Read pipeline files: YAML in, `makewhole.model.pipeline.Pipeline` out. docs/pipeline-file.md describes every key.

Read whenever Airflow parses its DAG files, so nothing heavy is imported here.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from makewhole.config import values
from makewhole.config.datasets import note_positions, with_dataset_topics
from makewhole.config.erased import with_tombstone_topics
from makewhole.config.hops.compared import read_compare
from makewhole.config.hops.read_hops import read_hops
from makewhole.config.hops.remedies import VERDICTS, read_wanted
from makewhole.config.people.access import read_access
from makewhole.config.people.notify import read_notify, usable
from makewhole.config.places.columns import note_unbuilt, note_unused
from makewhole.config.places.masked import note_unfit_mask, read_mask
from makewhole.config.places.place_units import note_unfit_units
from makewhole.config.points import PointDraft, note_fed, read_points
from makewhole.config.policy import (
    below,
    note_rows_taken_away,
    read_approval,
    read_gate,
    read_history,
    read_keep,
    read_limits,
    read_pending_max_age,
    read_time_limits,
)
from makewhole.config.publish import read_publish
from makewhole.config.self_check.read_self_check import SELF_CHECK, with_self_check
from makewhole.config.topics_alone import with_topics_alone
from makewhole.config.tree import Problems, Section, read_tree
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.hops import Hop, Reach
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import Point, PointKind

_CHECKOUT = Path(__file__).resolve().parents[3]
_NAME_LINE = re.compile(r"^pipeline:[ \t]*[\"']?([a-z][a-z0-9_]*)[\"']?[ \t]*(?:#.*)?$", re.MULTILINE)
_ONCE_A_DAY = "@daily"
_VERSION = 2
_KEYS = (
    "version",
    "pipeline",
    "description",
    "schedule",
    "start",
    "until",
    "settle",
    "pending",
    "late",
    "history",
    "keep",
    "reach",
    "compare",
    "mask",
    "points",
    "hops",
    "gate",
    "compensation",
    "retry_for",
    "time_limits",
    "notify",
    "access",
    SELF_CHECK,
)


@dataclass(frozen=True, kw_only=True)
class PipelineFile:
    """One file as read: its pipeline, or its problems. `name` and `name_place` are known even when other things are
    wrong; `stand_in` is then a pipeline of this name that joins nothing, reaches the same people and runs when the
    file's would, or once a day where that cannot be read."""

    path: Path
    name: str | None
    name_place: str
    pipeline: Pipeline | None
    stand_in: Pipeline | None
    problems: tuple[Problem, ...]


def pipeline_folders() -> tuple[Path, ...]:
    """Return `dags/pipelines` of the checkout (an installed wheel has none), then the folders in
    `MAKEWHOLE_PIPELINES`."""
    own = _CHECKOUT / "dags" / "pipelines"
    extra = os.environ.get("MAKEWHOLE_PIPELINES", "").split(os.pathsep)
    folders = [own] if own.is_dir() else []
    folders += [Path(folder).expanduser() for folder in extra if folder.strip()]
    return tuple(dict.fromkeys(folders))


def load_pipeline(path: Path) -> Pipeline:
    """Return the pipeline that a file describes.

    Raises:
        ConfigurationError: with every problem of the file, in the order of its lines.
    """
    read = read_file(path)
    if read.pipeline is None:
        raise ConfigurationError(read.problems)
    return read.pipeline


def read_pipelines(folders: Sequence[Path]) -> tuple[dict[str, Pipeline], tuple[Problem, ...]]:
    """Return the good pipelines of the folders, and the problems of the others: one bad file must not stop the rest."""
    problems = [
        Problem(
            file=str(folder),
            path="folder",
            found="does not exist",
            remedy="Create it, or take it out of MAKEWHOLE_PIPELINES",
        )
        for folder in folders
        if not folder.is_dir()
    ]
    files = read_files(pipeline_files(folders))
    problems += [problem for file in files for problem in file.problems]
    pipelines = {file.pipeline.name: file.pipeline for file in files if file.pipeline is not None}
    return dict(sorted(pipelines.items())), tuple(problems)


def scheduled_pipelines(folders: Sequence[Path]) -> dict[str, Pipeline]:
    """Return a pipeline for every name of a file, in the order of names; that of a file with problems stands in for it,
    and of files with one name the first that has a schedule."""
    named: dict[str, Pipeline] = {}
    for file in read_files(pipeline_files(folders)):
        pipeline = file.pipeline or file.stand_in
        if pipeline is not None and (pipeline.name not in named or named[pipeline.name].schedule is None):
            named[pipeline.name] = pipeline
    return dict(sorted(named.items()))


def find_pipeline(name: str) -> Pipeline:
    """Read the pipeline of this name from the pipeline folders.

    Raises:
        ConfigurationError: there is none, or its file has problems.
    """
    pipelines, problems = read_pipelines(pipeline_folders())
    if name in pipelines:
        return pipelines[name]
    files = read_files(pipeline_files(pipeline_folders()))
    if own := [problem for file in files if file.name == name for problem in file.problems]:
        raise ConfigurationError(own)
    missing = Problem(
        file="pipeline folders",
        path=name,
        found="no good pipeline file has this name",
        remedy=f"Known are: {', '.join(pipelines) or 'none'}. Check the files with `makewhole check`",
    )
    raise ConfigurationError([missing, *problems])


def history_of(name: str) -> timedelta | None:
    """Return how far back the key index of a pipeline is to know keys; None: for ever, also where no good file says
    it."""
    pipelines, _ = read_pipelines(pipeline_folders())
    return pipelines[name].history if name in pipelines else None


def pipeline_files(folders: Sequence[Path]) -> tuple[Path, ...]:
    """Return the `.yaml` and `.yml` files right in the folders, sorted within each, none twice."""
    files: dict[Path, Path] = {}
    for folder in folders:
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.suffix in (".yaml", ".yml") and not path.name.startswith("."):
                files.setdefault(path.resolve(), path)
    return tuple(files.values())


def read_files(paths: Sequence[Path]) -> tuple[PipelineFile, ...]:
    """Read each file. Those that have a pipeline name in common have a problem more, and none of them is good: which is
    the copy cannot be known."""
    files = [read_file(path) for path in paths]
    by_name: dict[str | None, list[Path]] = {}
    for file in files:
        by_name.setdefault(file.name, []).append(file.path)
    return tuple(_refused(file, [path for path in by_name[file.name] if path != file.path]) for file in files)


def read_to_check(paths: Sequence[Path]) -> tuple[PipelineFile, ...]:
    """Read each file as `read_files` does; one that lies in a pipeline folder is held to the others there, too."""
    beside = {path.resolve(): path for path in pipeline_files(pipeline_folders())}
    given = {path.resolve() for path in paths}
    if not given & set(beside):
        return read_files(paths)
    others = [read_file(path) for place, path in beside.items() if place not in given]
    return tuple(
        _refused(file, [other.path for other in others if other.name == file.name])
        if file.path.resolve() in beside
        else file
        for file in read_files(paths)
    )


def read_file(path: Path) -> PipelineFile:
    """Read one file. Never raises for what the file says."""
    problems = Problems(str(path))
    top = read_tree(path, problems)
    pipeline = _read_pipeline(top) if top else None
    name_place = top.get_quietly("pipeline") if top else None
    name = pipeline.name or None if pipeline else _name_in(path)
    return PipelineFile(
        path=path,
        name=name,
        name_place=f"pipeline (line {name_place.line if name_place else 1})",
        pipeline=None if problems.listed() else pipeline,
        stand_in=_stand_in(name, _schedule(top, pipeline), pipeline) if name and problems.listed() else None,
        problems=problems.listed(),
    )


def _name_in(path: Path) -> str | None:
    """Return the name that stands in a file that is no YAML."""
    try:
        match = _NAME_LINE.search(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return match[1] if match else None


def _schedule(top: Section | None, pipeline: Pipeline | None) -> str | None:
    """Return when a file is to run that has problems."""
    schedule = pipeline.schedule if pipeline else None
    return _ONCE_A_DAY if schedule is None and (top is None or top.has("schedule")) else schedule


def _stand_in(name: str, schedule: str | None, pipeline: Pipeline | None) -> Pipeline:
    return Pipeline(
        name=name,
        description="Its pipeline file has problems, and nothing is checked until they are mended",
        points={},
        hops=(),
        schedule=schedule,
        until=pipeline.until if pipeline else None,
        access=pipeline.access if pipeline else None,
        notify=usable(pipeline.notify) if pipeline else None,
    )


def _refused(file: PipelineFile, others: Sequence[Path]) -> PipelineFile:
    """Return a file with the problem that `others` have its name, where there are any."""
    if file.name is None or not others:
        return file
    shared = Problem(
        file=str(file.path),
        path=file.name_place,
        found=f"{file.name!r} is the pipeline of {', '.join(map(str, others))} as well, and neither runs",
        remedy="Give one of them another name, or take a copy out of the folder",
    )
    stand_in = file.stand_in or _stand_in(file.name, file.pipeline.schedule if file.pipeline else None, file.pipeline)
    return replace(file, pipeline=None, stand_in=stand_in, problems=(*file.problems, shared))


def _read_pipeline(top: Section) -> Pipeline:
    """Return the pipeline as far as it can be read; only good when no problem was noted."""
    top.only(*_KEYS)
    top, self_check = with_self_check(top)
    _require_version(top)
    name = top.need("pipeline", "Name the pipeline, for example 'pipeline: daily_flights'")
    description = top.get("description")
    cron = top.get("schedule")
    begin, over = top.get("start"), top.get("until")
    settle, late, retry_for = top.get("settle"), top.get("late"), top.get("retry_for")
    compensation = below(top, "compensation", *VERDICTS, "limits", "approval")
    drafts = read_points(top)
    hops = read_hops(top, drafts, read_wanted(compensation))
    settle_time = settle.text(values.duration) if settle else None
    found_late = late.text(values.duration) if late else None
    late_time, pending = Pipeline.late if found_late is None else found_late, read_pending_max_age(top)
    retry_time = retry_for.text(values.duration) if retry_for else None
    compare = read_compare(top) or {}
    schedule = cron.text(values.schedule) if cron else None
    pipeline = Pipeline(
        name=(name.text(values.name) if name else None) or "",
        description=(description.text(str) if description else None) or "",
        schedule=schedule,
        start=begin.moment(values.start) if begin else None,
        until=over.moment(values.moment) if over else None,
        settle=timedelta(minutes=5) if settle_time is None else settle_time,
        pending_max_age=pending,
        late=late_time,
        reach=_read_reach(top, hops, drafts),
        history=read_history(top, late_time + pending),
        keep=read_keep(top, late_time + pending),
        compare=compare,
        points=_read_topics_of(drafts, hops, top),
        hops=hops,
        gate=read_gate(top),
        limits=read_limits(compensation),
        approval=read_approval(compensation),
        retry_for=Pipeline.retry_for if retry_time is None else retry_time,
        time_limits=read_time_limits(top),
        publish=read_publish(drafts, hops, compare),
        mask=read_mask(top),
        notify=read_notify(top, schedule),
        access=read_access(top),
        self_check=self_check,
    )
    note_rows_taken_away(top, pipeline)
    note_fed(pipeline, drafts)
    columns = {name: draft.columns for name, draft in drafts.items()}
    note_unused(pipeline, columns)
    note_unbuilt(pipeline, columns)
    note_unfit_mask(top, pipeline)
    note_unfit_units(pipeline, {name: draft.units for name, draft in columns.items()})
    return pipeline


def _read_topics_of(drafts: Mapping[str, PointDraft], hops: Sequence[Hop], top: Section) -> dict[str, Point]:
    """Return the points; those to which it matters know which topics lead into them."""
    points = {name: draft.point for name, draft in drafts.items() if draft.point is not None}
    note_positions(points, hops, {name: draft.place for name, draft in drafts.items()})
    return with_dataset_topics(with_tombstone_topics(with_topics_alone(points, hops), hops, top), hops)


def _read_reach(top: Section, hops: Sequence[Hop], drafts: Mapping[str, PointDraft]) -> Reach | None:
    """Return the reach that the file accepts; it must not be written where every chain begins at a ledger."""
    place = top.get("reach")
    reach = place.text(values.reach) if place else None
    targets = {hop.target for hop in hops}
    first = [drafts[hop.source].kind for hop in hops if hop.source not in targets and hop.source in drafts]
    if place is not None and first and all(kind is PointKind.LEDGER for kind in first):
        place.complain(
            "accepts that the log alone is proven, and every chain of hops begins at a ledger",
            "Take the line out: every window is proven from the ledger on",
        )
    return reach


def _require_version(top: Section) -> None:
    place = top.need("version", f"Write 'version: {_VERSION}'")
    version = place.whole(values.integer) if place else None
    if place is not None and version not in (None, _VERSION):
        place.complain(f"is {version}, which this makewhole does not read", f"Write 'version: {_VERSION}'")
