"""Give people's own DAGs the tasks of a window: of the interval of each run, as the DAG of the pipeline has them."""

from collections.abc import Callable
from typing import Any

from airflow.sdk import DAG, TaskGroup

from makewhole.config.pipeline_file import find_pipeline
from makewhole.model.errors import RefusedError
from makewhole.orchestration.dags import wire_window
from makewhole.orchestration.deployment.settings import export_options, export_settings
from makewhole.orchestration.persistence import task_defaults
from makewhole.orchestration.task_ids import WINDOW_TASKS, is_our_dag


class MakewholeWindow(TaskGroup):
    """The tasks of one window of a pipeline, as a group in a DAG of one's own:

        with DAG("nightly", schedule="@daily", max_active_runs=1, …):
            load() >> MakewholeWindow(pipeline="orders") >> report()

    What comes behind it runs when the window is certified, and published where the pipeline publishes. The tasks have
    their own names (`open_window`, …, `certify`), by which the steps and the command line know them: a DAG holds one
    window. `group`: further arguments of Airflow's group; `default_args` go before those of the pipeline's file.

    Raises:
        ConfigurationError: there is no such pipeline, or its file has problems.
        RefusedError: the name of the DAG begins as those of makewhole's own do, or it has tasks of these names.
    """

    def __init__(
        self, *, pipeline: str, group_id: str = "makewhole_window", default_args: Any = None, **group: Any
    ) -> None:
        export_options()
        described = find_pipeline(pipeline)
        given = dict(default_args or {})
        if own := given.get("pre_execute"):
            given["pre_execute"] = _behind_ours(own)
        defaults: Any = task_defaults([described]) | given
        super().__init__(group_id=group_id, prefix_group_id=False, default_args=defaults, **group)
        if self.dag is not None:
            _require_room(self.dag)
        with self:
            wire_window(described)


def _behind_ours(own: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return what runs before a task: what ours need, then what people have there themselves."""

    def run(context: Any) -> None:
        export_settings(context)
        own(context)

    return run


def _require_room(dag: DAG) -> None:
    """Return where the tasks of a window can have their names in a DAG.

    Raises:
        RefusedError: they cannot.
    """
    if is_our_dag(dag.dag_id):
        raise RefusedError(
            f"a DAG of one's own with a window cannot be called {dag.dag_id}: names that begin with makewhole_ are "
            "those of makewhole's DAGs; give it another one"
        )
    taken = sorted(set(dag.task_ids) & WINDOW_TASKS)
    if taken:
        raise RefusedError(
            f"{dag.dag_id} has tasks called {', '.join(taken)}: those of a window have these names, and a DAG has room "
            "for one; rename them, or put the window into a DAG of its own"
        )
