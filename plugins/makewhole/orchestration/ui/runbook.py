"""Name the entries of the runbook that belong to a task or to a window."""

import re

from makewhole.model.window import WindowState
from makewhole.orchestration import task_ids

RUNBOOK = "runbook.md"

_OF_TASKS = {
    task_ids.OPEN_WINDOW: "`open_window` is red or is tried again",
    task_ids.SETTLE: "`settle` waits",
    task_ids.SNAPSHOT: "`snapshot` is red",
    task_ids.RECONCILE: "`reconcile` is red",
    task_ids.VALIDATE: "`validate` is red, or the gate says ERROR",
    task_ids.PLAN: "`plan` went on without a plan",
    task_ids.APPROVE: "A plan is `awaiting_approval`",
    task_ids.COMPENSATE: "`compensate` is red",
    task_ids.VERIFY: "`certify` is red after a repair",
    task_ids.PUBLISH: "`publish` is red",
    task_ids.PLANT_FAULTS: "`plant_faults` is red",
    task_ids.COMPARE_FAULTS: "`compare_faults` is red: a self-check missed or invented something",
}
_OF_STATES = {
    WindowState.OPEN: "A window stays `open`",
    WindowState.CERTIFIED: "A window is `certified`",
    WindowState.GAPS: "A window has `gaps`",
    WindowState.NOT_KNOWN: "A window is `not_known`",
    WindowState.ERROR: "A window is in `error`",
}


def anchor(title: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def entry_of_task(task: str) -> str:
    """Return the entry of a task that does not end well; where it has none, the section of all tasks."""
    return anchor(_OF_TASKS.get(task, "Tasks"))


def entry_of_state(state: WindowState) -> str:
    """Return the entry of a window's state."""
    return anchor(_OF_STATES[state])
