"""Run Airflow's four components side by side, each as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import httpx
import psycopg2

from makewhole.model.errors import PermanentError, TransientError
from makewhole.private_files import FOLDER_MODE
from makewhole.stack.environment import AIRFLOW_DATABASE, airflow_url, environment, passwords_file
from makewhole.stack.ports import becomes_free, holder
from makewhole.stack.postgres_server import postgres
from makewhole.stack.process import ServerProcess
from makewhole.stack.settings import load, load_or_create, write_private

COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
_HEALTH_KEYS = {"scheduler": "scheduler", "dag-processor": "dag_processor", "triggerer": "triggerer"}
_START_TIMEOUT_SECONDS = 300.0
_ANSWER_SECONDS = 15.0  # of a machine that is busy with many other things


class AirflowServer:
    """The Airflow of the stack in `home`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.directory = home / "airflow"
        self._migrated = self.directory / "migrated"

    def process(self, component: str) -> ServerProcess:
        """Return the process of one of `COMPONENTS`."""
        return ServerProcess(name=component, directory=self.directory)

    def migrate(self) -> bool:
        """Bring Airflow's database to this Airflow's version; return whether there was something to do.

        Raises:
            TransientError: it failed; what Airflow said is in the message.
        """
        if self._is_migrated():
            return False
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [_airflow_command(), "db", "migrate"]
        done = subprocess.run(command, env=self._environment(), cwd=self.directory, capture_output=True, text=True)
        if done.returncode != 0:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
            raise TransientError(f"Airflow's database could not be migrated; run `makewhole up` again\n{tail}")
        self._migrated.write_text(version("apache-airflow"))
        return True

    def launch(self) -> None:
        """Start the components that do not run, without waiting.

        Raises:
            PermanentError: a port is taken.
        """
        settings = load_or_create(self.home)
        write_private(passwords_file(self.home), settings.passwords)
        (self.directory / "run").mkdir(mode=FOLDER_MODE, exist_ok=True)
        for component, port in {
            "api-server": settings.api_port,
            "scheduler": settings.worker_log_port,
            "dag-processor": None,
            "triggerer": settings.trigger_log_port,
        }.items():
            process = self.process(component)
            if process.is_running():
                continue
            process.clear_leftovers()
            if port is not None and not becomes_free(port):
                raise PermanentError(
                    f"port {port}, which Airflow's {component} in {self.home} uses, is held by {holder(port)}; "
                    "end that process, or choose other ports with `makewhole up --new-ports`"
                )
            process.start([_airflow_command(), component], environment=self._environment())

    def wait_ready(self) -> None:
        """Wait until all components have reported to Airflow's health page since they were started.

        Raises:
            TransientError: one ended or was not ready in time; the end of its log is in the message.
        """
        for component in COMPONENTS:
            process = self.process(component)
            process.wait_until(lambda: self._is_fresh(component), timeout_seconds=_START_TIMEOUT_SECONDS)  # noqa: B023

    def stop(self) -> None:
        """End all components."""
        processes = [self.process(component) for component in COMPONENTS]
        for process in processes:
            process.ask_to_end()
        for process in processes:
            process.stop(grace_seconds=15.0)

    def health(self) -> dict[str, str]:
        """Return the state of each component as Airflow reports it. Empty when it does not answer."""
        report = self._report()
        states = {name: str(report.get(key, {}).get("status")) for name, key in _HEALTH_KEYS.items() if key in report}
        return {"api-server": "healthy", **states} if report else {}

    def _is_fresh(self, component: str) -> bool:
        """Return whether a component has reported since this start; an earlier heartbeat in the database does not
        count."""
        report = self._report()
        if component == "api-server" or not report:
            return bool(report)
        key = _HEALTH_KEYS[component]
        beat = report.get(key, {}).get(f"latest_{key}_heartbeat")
        started = self.process(component).pid_file.stat().st_mtime
        return beat is not None and datetime.fromisoformat(beat) >= datetime.fromtimestamp(started, UTC)

    def _report(self) -> dict[str, dict[str, str]]:
        settings = load(self.home)
        if settings is None:
            return {}
        try:
            answer = httpx.get(
                f"{airflow_url(settings)}/api/v2/monitor/health", timeout=_ANSWER_SECONDS, trust_env=False
            )
            report = answer.raise_for_status().json()
        except (httpx.HTTPError, ValueError):
            return {}
        return report if isinstance(report, dict) else {}

    def _is_migrated(self) -> bool:
        """Return whether the database is of this version. The file alone is not enough: the database may be a new
        one."""
        if not self._migrated.exists() or self._migrated.read_text() != version("apache-airflow"):
            return False
        dsn = postgres(self.home / "postgres").dsn(AIRFLOW_DATABASE)
        with closing(psycopg2.connect(dsn)) as connection, connection.cursor() as cursor:
            cursor.execute("select to_regclass('alembic_version') is not null")
            row = cursor.fetchone()
        return row == (True,)

    def _environment(self) -> Mapping[str, str]:
        runtime = {"XDG_RUNTIME_DIR": str(self.directory / "run")}  # without one, a library warns in every task
        return {**os.environ, **runtime, **environment(self.home)}


def _airflow_command() -> str:
    return str(Path(sys.executable).parent / "airflow")
