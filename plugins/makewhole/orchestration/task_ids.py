"""The names of the tasks: of a window in the order of its way, then of an undo. Light: DAG files import it."""

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
"""How long `settle` waits in its process; a longer wait gives the worker back in between."""
