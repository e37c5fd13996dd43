"""Give a demo a local stack without windows. Only a folder that a demo made itself is emptied for it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from makewhole.cli.demo.commands import makewhole, output_of, show
from makewhole.model.errors import RefusedError
from makewhole.stack.settings import home_folder


def start_over(out: Console, stop_example: Callable[[], None]) -> None:
    """Begin with an empty journal."""
    if _is_all_ours():
        out.print(f"starting over: {home_folder()} is from an earlier demo")
        stop_example()
        show(out, makewhole("down"))
        shutil.rmtree(home_folder())
    if not home_folder().exists():
        home_folder().mkdir(parents=True)
        _marker().write_text(json.dumps({"is_all_ours": True}), encoding="utf-8")


def refuse_used_stack(pipeline: str) -> None:
    """Refuse a stack that holds windows of the pipeline.

    Raises:
        RefusedError: it does.
    """
    if output_of(makewhole("windows", pipeline, "--json"), may_fail=True).strip():
        raise RefusedError(
            f"the stack in {home_folder()} already holds windows of the pipeline {pipeline}, and no demo "
            "made it; choose another folder: MAKEWHOLE_HOME=<folder> makewhole demo"
        )


def _is_all_ours() -> bool:
    return _marker().exists() and bool(json.loads(_marker().read_text(encoding="utf-8"))["is_all_ours"])


def _marker() -> Path:
    return home_folder() / "demo.json"
