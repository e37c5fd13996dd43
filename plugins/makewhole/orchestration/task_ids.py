"""Name the tasks of a window, in their order, and of an undo. DAG files import it: it imports nothing."""

OPEN_WINDOW = "open_window"
SETTLE = "settle"
SNAPSHOT = "snapshot"
RECONCILE = "reconcile"
VALIDATE = "validate"
PLAN = "plan"
APPROVE = "approve"
COMPENSATE = "compensate"
VERIFY = "verify"
CERTIFY = "certify"

UNDO_DAG = "makewhole_undo"
RESTORE = "restore"
REOPEN = "reopen"

SETTLE_POLL_SECONDS = 60.0
"""The longest wait of `settle` in its process; for a longer one it is rescheduled."""

CERTIFIED_ALIAS = "makewhole_certified"
"""The asset alias of runs whose form names the pipeline: its event is one of the pipeline's asset."""


def certified_asset(pipeline: str) -> tuple[str, str]:
    """Return name and URI of the asset that a certificate of a pipeline updates."""
    return f"makewhole_{pipeline}", f"makewhole://certified/{pipeline}"
