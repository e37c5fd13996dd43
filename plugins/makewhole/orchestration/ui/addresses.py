"""Name the addresses of pages: Airflow's own, and makewhole's beside them."""

from airflow.sdk import conf

from makewhole.orchestration.ui.runbook import RUNBOOK

PREFIX = "/makewhole"
"""Where Airflow's API server has makewhole's pages."""


def base_url() -> str:
    """Return the address of Airflow, without a slash at its end."""
    return str(conf.get("api", "base_url", fallback="") or "http://localhost:8080").rstrip("/")


def task_url(dag: str, run: str, task: str) -> str:
    """Return the page of a task of a run, with its log."""
    return f"{base_url()}/dags/{dag}/runs/{run}/tasks/{task}"


def result_url(dag: str, run: str, part: str) -> str:
    """Return the page with the result of a run, at one of its parts: findings, plan, certificate."""
    return f"{base_url()}{PREFIX}/dags/{dag}/runs/{run}#{part}"


def runbook_url(entry: str) -> str:
    """Return the page of the runbook at an entry, which is named by its anchor."""
    return f"{base_url()}{PREFIX}/docs/{RUNBOOK}#{entry}"
