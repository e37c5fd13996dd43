"""Name the DAGs, and the tasks of a window, in their order, of an undo, and of an acceptance. DAG files import it: it
imports nothing."""

ONCALL_DAG = "makewhole_oncall"
"""The form for all pipelines whose files say nothing of who may run them."""
HOUSEKEEPING_DAG = "makewhole_housekeeping"
NOTIFY_DAG = "makewhole_notify"
NOTIFY = "notify"

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
PUBLISH = "publish"
REPORT_REVOKED = "report_revoked"
REPORT_WATERMARK = "report_watermark"

PLANT_FAULTS, COMPARE_FAULTS = "plant_faults", "compare_faults"
"""The tasks around the window of a self-check."""

SPARK_STEPS = (SNAPSHOT, RECONCILE, VALIDATE)
"""The tasks that submit Spark, in their order: the application of one goes on with those after it."""

WINDOW_TASKS = frozenset(
    {
        *(OPEN_WINDOW, SETTLE, *SPARK_STEPS),
        *(PLAN, APPROVE, COMPENSATE, VERIFY, CERTIFY),
        *(PUBLISH, REPORT_REVOKED, REPORT_WATERMARK),
    }
)

RESTORE = "restore"
REOPEN = "reopen"
UNDONE_WINDOW = "window"
"""The XCom of `restore` that names the window whose rows are put back."""
BEHIND_CERTIFICATE = (PUBLISH, RESTORE, REOPEN)
"""The steps that may break after their window was certified."""
UNDO_STEPS = (PLAN, RESTORE, REOPEN)

ACCEPT_DAG = "makewhole_accept"
"""The form for the same pipelines as `ONCALL_DAG`."""
ACCEPT = "accept"

ASK_DAG = "makewhole_ask"
"""The form for the same pipelines as `ONCALL_DAG`."""
ASK = "ask"
DELIVERY, READINESS = "delivery", "readiness"
"""The questions: what weakens the claimed delivery, and what stands in the way of a window."""

END_OF_WINDOW, REASON_OF_FAILURE = "makewhole_end_of_window", "makewhole_reason_of_failure"
"""The keys of the XComs in which `certify`, and each task that fails, leave their line for the note of the run."""
CLOSED_WINDOW = "makewhole_closed_window"
"""The key of the XCom in which `certify` leaves the numbers of the window, for the page of the run."""

POLL_SECONDS = 60.0
"""The longest wait of a task in its process; for a longer one it gives its worker back and is rescheduled."""

CERTIFIED_ALIAS = "makewhole_certified"
"""The asset alias of runs whose form names the pipeline: its event is one of the pipeline's asset."""


def certified_asset(pipeline: str) -> tuple[str, str]:
    """Return name and URI of the asset that a certificate of a pipeline updates."""
    return f"makewhole_{pipeline}", f"makewhole://certified/{pipeline}"


REVOKED_ALIAS = "makewhole_revoked"
"""The asset alias of runs whose form names the pipeline: its event is one of the pipeline's revocations."""


def revoked_asset(pipeline: str) -> tuple[str, str]:
    """Return name and URI of the asset that each revocation of a certificate of a pipeline updates."""
    return f"makewhole_revoked_{pipeline}", f"makewhole://revoked/{pipeline}"


def self_check_asset(pipeline: str) -> tuple[str, str]:
    """Return name and URI of the asset that each green round of a self-check updates."""
    return f"makewhole_self_check_{pipeline}", f"makewhole://self_check/{pipeline}"


PUBLISHED_ALIAS = "makewhole_published"
"""The asset alias of runs whose form names the pipeline: its event is one of what the pipeline publishes."""


def published_asset(pipeline: str) -> tuple[str, str]:
    """Return name and URI of the asset that each published window of a pipeline updates."""
    return f"makewhole_published_{pipeline}", f"makewhole://published/{pipeline}"


_OURS = "makewhole_"
_RECONCILE, _CONTINUE, _UNDO = f"{_OURS}reconcile_", f"{_OURS}continue_", f"{_OURS}undo_"
_OWN_ONCALL, _OWN_ACCEPT, _OWN_ASK = f"{ONCALL_DAG}_", f"{ACCEPT_DAG}_", f"{ASK_DAG}_"
_OF_ONE_PIPELINE = (_RECONCILE, _CONTINUE, _UNDO, _OWN_ONCALL, _OWN_ACCEPT, _OWN_ASK)


def reconcile_dag_id(pipeline: str) -> str:
    """Return the id of the DAG of a pipeline."""
    return f"{_RECONCILE}{pipeline}"


def continue_dag_id(pipeline: str) -> str:
    """Return the id of the DAG that goes on with unfinished windows of a pipeline."""
    return f"{_CONTINUE}{pipeline}"


def undo_dag_id(pipeline: str) -> str:
    """Return the id of the DAG that takes plans of a pipeline back."""
    return f"{_UNDO}{pipeline}"


def own_oncall_dag_id(pipeline: str) -> str:
    """Return the id of the on-call form of a pipeline that is not in the one for several."""
    return f"{_OWN_ONCALL}{pipeline}"


def own_accept_dag_id(pipeline: str) -> str:
    """Return the id of the DAG that accepts findings of such a pipeline."""
    return f"{_OWN_ACCEPT}{pipeline}"


def own_ask_dag_id(pipeline: str) -> str:
    """Return the id of the DAG that asks about such a pipeline."""
    return f"{_OWN_ASK}{pipeline}"


def pipeline_of_dag(dag: str) -> str | None:
    """Return the pipeline whose DAG this is; None: it is of none, or of several."""
    return next((dag.removeprefix(begin) for begin in _OF_ONE_PIPELINE if dag.startswith(begin)), None)


def is_our_dag(dag: str) -> bool:
    """Return whether a DAG is one that makewhole makes, and not one of people's own with a window in it."""
    return dag.startswith(_OURS)


def request_id(dag: str, run: str) -> str:
    """Return what a run is known by in the journal: its id, and the DAG before it where that is none of ours. Neither
    has a slash in it."""
    return run if is_our_dag(dag) else f"{dag}/{run}"


def dag_and_run(request: str) -> tuple[str | None, str]:
    """Return the DAG and the run that a request names; of ours no DAG."""
    dag, slash, run = request.rpartition("/")
    return (dag or None if slash else None), run
