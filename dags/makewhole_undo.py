"""Define the DAG that takes a plan back."""

from makewhole.orchestration.undo_dag import undo_dag

makewhole_undo = undo_dag()
