"""Show in Airflow's own pages how a run ended and where to read on: its note, the links of its tasks, the runbook."""
