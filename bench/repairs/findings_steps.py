"""Run one step of a window with many findings, as its task does; print its seconds, its memory and what came of it."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.windows.service import PIPELINE
from makewhole.compensation.approval.answer import Answer, Decision, record_answer
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.planning.unanswered import read_unanswered
from makewhole.compensation.preview.dry_report import Forecast
from makewhole.compensation.preview.dry_run import dry_run
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import plans, windows
from makewhole.journal.database import connect
from makewhole.journal.deployment.address import journal_dsn
from makewhole.model.plan import Plan
from makewhole.signing.keys import SigningKey
from makewhole.window.certifying.certify import certify_window
from makewhole.window.context import WindowContext, find_pipeline, window_context


def main() -> None:
    """Run the step that the arguments name, then wait for the end of the input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=_STEPS)
    parser.add_argument("--window", type=int, required=True)
    parser.add_argument("--revision", type=int, required=True)
    wanted = parser.parse_args()
    with connect() as journal:
        window = windows.load(journal, PIPELINE, wanted.window, wanted.revision)
    context = window_context(window, find_pipeline(PIPELINE))
    began = time.perf_counter()
    message = _STEPS[wanted.step](context)
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "peak_bytes": _peak_bytes(), "message": message}), flush=True)
    sys.stdin.read()


def _plan(context: WindowContext) -> str:
    frozen = plan_window(context)
    with connect() as journal:
        read_unanswered(journal, context.pipeline, context.window)
    return f"{len(frozen.refusals)} refusals, plan {frozen.plan.id if frozen.plan else None}"


def _dry_run(context: WindowContext) -> str:
    report = dry_run(journal_dsn(), _plan_of(context).id, targets_of(context.pipeline, context.connections))
    return ", ".join(f"{part.actions} {part.remedy}: {_counts(part.forecasts)}" for part in report.parts)


def _counts(forecasts: Mapping[Forecast, int]) -> str:
    return ", ".join(f"{count} {forecast}" for forecast, count in forecasts.items() if count)


def _approve(context: WindowContext) -> str:
    plan = _plan_of(context)
    answer = Answer(sha256=plan.sha256, decision=Decision.APPROVED, by="bench")
    return record_answer(journal_dsn(), plan.id, answer, context.pipeline.approval).state.value


def _compensate(context: WindowContext) -> str:
    receipts = compensate_window(context, lambda _: None)
    return f"{len(receipts)} chunks, {sum(receipt.actions for receipt in receipts)} actions"


def _verify(context: WindowContext) -> str:
    verification = verify_window(context, lambda *_: None)
    return f"{verification.whole} of {verification.gaps} whole, {verification.gate.answer.value}"


def _certify(context: WindowContext) -> str:
    with connect() as journal:
        closed = certify_window(journal, context.pipeline, context.window, context.storage, SigningKey.new())
    return f"{closed.state.value}{f': {closed.reason}' if closed.reason else ''}"


def _plan_of(context: WindowContext) -> Plan:
    with connect() as journal:
        window = context.window
        stored = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
    assert stored is not None
    return stored.plan


def _peak_bytes() -> int:
    """Return the most memory that this process held: `getrusage` would count that of its parent."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


_STEPS: Mapping[str, Callable[[WindowContext], str]] = {
    "plan": _plan,
    "dry_run": _dry_run,
    "approve": _approve,
    "compensate": _compensate,
    "verify": _verify,
    "certify": _certify,
}

if __name__ == "__main__":
    main()
