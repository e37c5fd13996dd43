"""Run `makewhole check`: report every problem of pipeline files with its place and remedy."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from json import dumps
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from makewhole.config.pipeline_file import PipelineFile, pipeline_files, read_files
from makewhole.model.errors import ConfigurationError
from makewhole.model.text import counted

_WRONG = 2


def check(
    files: Annotated[list[Path], typer.Argument(help="Pipeline files, or folders of them.", metavar="FILE…")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
    tables: Annotated[
        bool, typer.Option("--tables", help="Ask the databases, too, whether their tables and columns fit the files.")
    ] = False,
) -> None:
    """Check pipeline files: every problem at once, each with its place and remedy. Exit code 0: all good, 2: not."""
    read = read_files(_expanded(files))
    if tables:
        read = _with_tables(read)
    if json:
        typer.echo(dumps(_document(read), ensure_ascii=False))
    else:
        _print(Console(soft_wrap=True, highlight=False), read)
    if not read or any(file.problems for file in read):
        raise typer.Exit(_WRONG)


def _expanded(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Replace folders by the pipeline files in them; no path twice."""
    files = [inner for path in paths for inner in (pipeline_files([path]) if path.is_dir() else [path])]
    return tuple(dict.fromkeys(files))


def _with_tables(read: Sequence[PipelineFile]) -> tuple[PipelineFile, ...]:
    """Add what opening a window would refuse of the tables of each file."""
    from makewhole.cli.environment import chosen_service, reporting_errors
    from makewhole.window.context import connections_of
    from makewhole.window.opening.readable import problems_of_tables

    def of(file: PipelineFile) -> PipelineFile:
        if file.pipeline is None:
            return file
        try:
            problems = problems_of_tables(file.pipeline, connections_of(file.pipeline))
        except ConfigurationError as error:
            problems = error.problems
        return replace(file, pipeline=None, problems=problems) if problems else file

    with reporting_errors():
        chosen_service()
        return tuple(of(file) for file in read)


def _document(read: Sequence[PipelineFile]) -> dict[str, object]:
    problems = [asdict(problem) for file in read for problem in file.problems]
    pipelines = [file.pipeline.name for file in read if file.pipeline]
    return {"ok": bool(read) and not problems, "pipelines": pipelines, "problems": problems}


def _print(console: Console, read: Sequence[PipelineFile]) -> None:
    for file in read:
        if file.pipeline is not None:
            points, hops = len(file.pipeline.points), len(file.pipeline.hops)
            size = f"{counted(points, 'point')}, {counted(hops, 'hop')}"
            console.print(Text.assemble(("✓ ", "green"), f"{file.path}: {file.name}, {size}"))
            continue
        console.print(Text.assemble(("✗ ", "red"), f"{file.path}: {counted(len(file.problems), 'problem')}"))
        for problem in file.problems:
            console.print(Text.assemble("  ", (problem.path, "bold"), f": {problem.found}"))
            console.print(Text.assemble("    ", (problem.remedy, "cyan")))
    wrong = sum(1 for file in read if file.problems)
    if wrong:
        console.print(f"{counted(wrong, 'file')} to mend. Nothing is reconciled by a file that is wrong.")
    elif not read:
        console.print("No pipeline files there. Name files that end in .yaml or .yml, or a folder that holds some.")
