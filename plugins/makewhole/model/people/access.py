"""Describe which roles of Airflow may do what with the DAGs of a pipeline."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DagAccess:
    """The roles of Airflow's auth manager that the file gives rights on the DAGs of its pipeline, and on no other:
    `run` starts and steers runs, `approve` answers their questions, `read` looks at them. None named: no role has any
    right by the file."""

    run: tuple[str, ...] = ()
    approve: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
