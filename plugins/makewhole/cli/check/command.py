"""Run `makewhole check`: report every problem of pipeline files, and of what they name, with its place and remedy."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from makewhole.cli.environment import printable
from makewhole.compensation.approval.rights import problem_of_groups
from makewhole.config.people.access import problems_of_roles
from makewhole.config.people.groups import VARIABLE, read_groups
from makewhole.config.pipeline_file import PipelineFile, pipeline_files, read_to_check
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.text import counted
from makewhole.window.readiness.mistakes import Mistake, Readiness, Weight

_WRONG = 2
_SERVICE = "the service"
_COLOURS = {Weight.ADVICE: "yellow"}


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """A thing that was checked, under the name that people know it by: a file with its pipeline, or the service."""

    title: str
    file: PipelineFile | None
    readiness: Readiness

    @property
    def is_good(self) -> bool:
        return self.readiness.is_ready and (self.file is None or not self.file.problems)

    @property
    def mistakes(self) -> list[Mistake]:
        of_file = () if self.file is None else self.file.problems
        mistakes = [*(Mistake(problem=problem, weight=Weight.WRONG) for problem in of_file), *self.readiness.mistakes]
        return list(dict.fromkeys(mistakes))


def check(
    files: Annotated[list[Path], typer.Argument(help="Pipeline files, or folders of them.", metavar="FILE…")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Ask every system, too: connections, topics, groups, tables, rights, indexes, journal, storage, "
            "signing key, Spark, Airflow.",
        ),
    ] = False,
    tables: Annotated[
        bool, typer.Option("--tables", help="Of what `--live` asks, the databases and their tables alone.")
    ] = False,
    in_airflow: Annotated[
        bool,
        typer.Option(
            "--in-airflow",
            help="With `--live`: ask from a task of Airflow, whose connections this machine need not have. Airflow has "
            "its own copy of the file.",
        ),
    ] = False,
) -> None:
    """Check pipeline files: every problem at once, each with its place and remedy. Exit code 0: all good, 2: not."""
    if in_airflow and (tables or not live):
        raise typer.BadParameter("it is of --live, and asks all of that", param_hint="--in-airflow")
    read = read_to_check(_expanded(files))
    is_asked = live or tables
    checked = _asked(read, live=live, in_airflow=in_airflow) if is_asked else [_of_file(file) for file in read]
    if json:
        typer.echo(dumps(_document(read, checked, is_asked=is_asked), ensure_ascii=False))
    else:
        _print(Console(soft_wrap=True, highlight=False), read, checked)
    if not read or not all(item.is_good for item in checked):
        raise typer.Exit(_WRONG)


def _expanded(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Replace folders by the pipeline files in them; no file twice."""
    files: dict[Path, Path] = {}
    for path in paths:
        for file in pipeline_files([path]) if path.is_dir() else [path]:
            files.setdefault(file.resolve(), file)
    return tuple(files.values())


def _of_file(
    file: PipelineFile, look: Callable[[Readiness, Pipeline], None] | None = None, *, has_people: bool = True
) -> _Checked:
    """Check a file; one that is good is asked about, where `look` does that. `has_people`: and who approves plans."""
    readiness = Readiness()
    if file.pipeline is not None and not file.problems:
        if has_people:
            _look_at_approvers(readiness, file.pipeline, str(file.path))
            _look_at_groups(readiness, file.pipeline, str(file.path))
            _look_at_roles(readiness, file.pipeline)
        if look is not None:
            look(readiness, file.pipeline)
    return _Checked(title=str(file.path), file=file, readiness=readiness)


def _look_at_approvers(readiness: Readiness, pipeline: Pipeline, path: str) -> None:
    """Note that a pipeline which writes names no person who answers for its plans."""
    writes = any(hop.remedies.chosen - {Remedy.REPORT} for hop in pipeline.hops)
    if writes and not pipeline.approval.by:
        problem = Problem(
            file=path,
            path="compensation.approval.by",
            found="is empty, and remedies of this file write: whoever may run the DAG could approve what they write",
            remedy="Name those who may, for example 'approval: {by: [anna, \"group:payments\"]}'",
        )
        readiness.note(problem, Weight.REPAIRS)


def _look_at_groups(readiness: Readiness, pipeline: Pipeline, path: str) -> None:
    """Note groups of approvers without a person in them, where this machine has the file that lists them."""
    if not os.environ.get(VARIABLE, "").strip():
        return
    with readiness.asking("groups of approvers", VARIABLE):
        problem = problem_of_groups(pipeline.approval, read_groups(), path)
        if problem is not None:
            readiness.note(problem, Weight.REPAIRS)


def _look_at_roles(readiness: Readiness, pipeline: Pipeline) -> None:
    """Note roles that are given no right, where this machine has the file that lists them."""
    for problem in problems_of_roles([pipeline]) if os.environ.get(VARIABLE, "").strip() else ():
        readiness.note(problem, Weight.REPAIRS)


def _asked(read: Sequence[PipelineFile], *, live: bool, in_airflow: bool) -> list[_Checked]:
    """Ask what the files name; and where `live`, everything that windows of theirs need besides."""
    from makewhole.cli.environment import chosen_service, reporting_errors
    from makewhole.window.readiness.points import look_at_tables

    with reporting_errors():
        if not live:
            chosen_service()
            return [_of_file(file, look_at_tables, has_people=False) for file in read]
        from makewhole.cli.check.live import Live

        with suppress(ConfigurationError):  # a service that is not configured is one more line of the list
            chosen_service()
        service = Readiness()
        with Live(service, in_airflow=in_airflow) as asking:
            asking.look_at_service()
            return [
                *(_of_file(file, asking.look_at_pipeline) for file in read),
                _Checked(title=_SERVICE, file=None, readiness=service),
            ]


def _document(read: Sequence[PipelineFile], checked: Sequence[_Checked], *, is_asked: bool) -> dict[str, Any]:
    mistakes = [mistake for item in checked for mistake in item.mistakes]
    document: dict[str, Any] = {
        "ok": bool(read) and all(item.is_good for item in checked),
        "pipelines": [item.file.name for item in checked if item.file is not None and item.is_good],
        "problems": [asdict(mistake.problem) for mistake in mistakes if mistake.weight is not Weight.ADVICE],
    }
    if is_asked:
        document |= {
            "away": [asdict(mistake.problem) for mistake in mistakes if mistake.weight is Weight.AWAY],
            "advice": [asdict(mistake.problem) for mistake in mistakes if mistake.weight is Weight.ADVICE],
            "asked": list(dict.fromkeys(thing for item in checked for thing in item.readiness.asked)),
            "not_asked": [thing for item in checked for thing in item.readiness.not_asked],
        }
    return document


def _print(console: Console, read: Sequence[PipelineFile], checked: Sequence[_Checked]) -> None:
    for item in checked:
        _print_one(console, item)
    wrong = sum(not item.is_good for item in checked if item.file is not None)
    if wrong:
        console.print(f"{counted(wrong, 'file')} to mend. Nothing is reconciled by a file that is wrong.")
    elif not read:
        console.print("No pipeline files there. Name files that end in .yaml or .yml, or a folder that holds some.")
    elif not all(item.is_good for item in checked):
        console.print("The files are good, and no window can be judged before the service is.")


def _print_one(console: Console, item: _Checked) -> None:
    if item.is_good:
        console.print(Text.assemble(("✓ ", "green"), f"{item.title}: {_summary(item)}"))
    else:
        problems = sum(mistake.weight is not Weight.ADVICE for mistake in item.mistakes)
        console.print(Text.assemble(("✗ ", "red"), f"{item.title}: {counted(problems, 'problem')}"))
    for mistake in sorted(item.mistakes, key=lambda mistake: mistake.weight is Weight.ADVICE):
        _print_problem(console, mistake.problem, mistake.weight)
    for thing in item.readiness.not_asked:
        console.print(Text(f"  not asked: {printable(thing)}", style="dim"))


def _summary(item: _Checked) -> str:
    file, asked = item.file, len(item.readiness.asked)
    of_asked = f"{counted(asked, 'thing')} asked" if asked else ""
    if file is None or file.pipeline is None:
        return of_asked
    points, hops = len(file.pipeline.points), len(file.pipeline.hops)
    return f"{file.name}, {counted(points, 'point')}, {counted(hops, 'hop')}" + (f", {of_asked}" if of_asked else "")


def _print_problem(console: Console, problem: Problem, weight: Weight) -> None:
    fault, remedy = printable(problem.found), printable(problem.remedy)
    kind = "advice: " if weight is Weight.ADVICE else ""
    console.print(Text.assemble("  ", kind, (printable(problem.path), _COLOURS.get(weight, "bold")), f": {fault}"))
    console.print(Text.assemble("    ", (remedy, "cyan")))
