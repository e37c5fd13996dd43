"""Test how the tasks of an undo follow each other."""

from airflow.sdk import TriggerRule

from makewhole.orchestration.undo_dag import undo_dag
from tests.unit.orchestration.test_publishing import PLAIN


def test_the_window_is_judged_again_whatever_became_of_the_undo() -> None:
    dag = undo_dag(PLAIN)
    assert dag.get_task("reopen").trigger_rule == TriggerRule.ALL_DONE
    assert dag.get_task("reopen").upstream_task_ids == {"restore"}
    assert dag.get_task("restore").trigger_rule == TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS
