"""The names of a window's tasks, in the order of its way. Light: DAG files import it."""

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

SETTLE_POLL_SECONDS = 60.0
"""How long `settle` waits in its process; a longer wait gives the worker back in between."""
