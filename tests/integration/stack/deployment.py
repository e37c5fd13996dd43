"""Follow docs/deploy.md as it stands, in an environment of its own: its commands, its settings, its lines."""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from makewhole.stack.airflow_server import COMPONENTS
from makewhole.stack.ports import LOOPBACK, free_ports
from makewhole.stack.process import ServerProcess

BUNDLES = "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"
_CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
_JSON = re.compile(r"```json\n(.*?)```", re.DOTALL)
_SETTING = re.compile(r"^\| (?:connection )?`(\w+)` \| (.*) \|$", re.MULTILINE)
_LITERAL = re.compile(r"`(\{.*\})`")
_OURS = ("MAKEWHOLE_", "AIRFLOW_", "PYTEST_", "POLARS_", "JDK_", "PYTHON", "SPARK_", "VIRTUAL_ENV")
_READY_SECONDS = 240.0
_POLL_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Page:
    """The page's commands, block by block, its file of connections, and its literal settings by name."""

    blocks: tuple[tuple[str, ...], ...]
    connections: str
    settings: Mapping[str, str]

    @classmethod
    def read(cls, file: Path) -> "Page":
        """Read it; `settings` are those whose description gives the value in full, as JSON."""
        text = file.read_text(encoding="utf-8")
        blocks = [
            [line[2:] for line in block.splitlines() if line.startswith("$ ")] for block in _CONSOLE.findall(text)
        ]
        matches = {name: _LITERAL.search(description) for name, description in _SETTING.findall(text)}
        settings = {name: match.group(1) for name, match in matches.items() if match}
        [connections] = _JSON.findall(text)
        return cls(blocks=tuple(map(tuple, blocks)), connections=connections, settings=settings)


@dataclass(kw_only=True)
class Deployment:
    """An installation by the page's steps, in `folder`, with the programs of the virtual environment `venv`. `places`:
    what stands for the page's examples of hosts and files. `seconds`: how long each command took. `beside`: those that
    a line leaves running."""

    folder: Path
    venv: Path
    places: Mapping[str, str]
    variables: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    beside: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with the shell's variables that are not ours."""
        shell = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        programs = f"{self.venv / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        self.variables = shell | {"PATH": programs, "HOME": str(self.folder), "COLUMNS": "200"}

    def run(self, command: str, *, expected: int = 0, timeout: float = 600.0) -> str:
        """Run a line of the page in a shell; return what it printed."""
        command = self.here(command)
        began = time.monotonic()
        done = subprocess.run(
            ["bash", "-c", command],
            env=self.variables,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        self.seconds[command] = time.monotonic() - began
        assert done.returncode == expected, (
            f"{command}: {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
        )
        return done.stdout

    def here(self, text: str) -> str:
        """Return a text of the page with this deployment's places."""
        for example, place in self.places.items():
            text = text.replace(example, place)
        return text

    def start(self, command: str) -> None:
        """Leave a line of the page running."""
        with (self.folder / "beside.log").open("ab") as log:
            line = ["bash", "-c", f"exec {command}"]
            started = subprocess.Popen(line, env=self.variables, cwd=self.folder, stdout=log, stderr=log)
        self.beside.append(started)

    def end(self) -> None:
        """Wait for what was left running.

        Raises:
            AssertionError: some of it failed.
        """
        ends = [(process.args, process.wait(timeout=600)) for process in self.beside]
        assert [end for _, end in ends] == [0] * len(ends), f"{ends}\n{(self.folder / 'beside.log').read_text()}"

    @contextmanager
    def airflow(self) -> Iterator[None]:
        """Run Airflow's components with the variables as they are now; its connections are in its database."""
        processes = [ServerProcess(name=component, directory=self.folder / "run") for component in COMPONENTS]
        program = str(self.venv / "bin" / "airflow")
        own = {name: value for name, value in self.variables.items() if not name.startswith("AIRFLOW_CONN_")}
        began = time.monotonic()
        try:
            for process in processes:
                process.start([program, process.name], environment=own)
            self._wait()
            self.seconds["Airflow is started"] = time.monotonic() - began
            yield
        finally:
            for process in processes:
                process.ask_to_end()
            for process in processes:
                process.stop(grace_seconds=15.0)

    def use_airflow(self, dsn: str, password: str) -> None:
        """Configure an Airflow as a platform team has it, with one person: `admin`."""
        port, worker_logs, trigger_logs = free_ports(3)
        passwords = self.folder / "passwords.json"
        passwords.write_text(json.dumps({"admin": password}))
        passwords.chmod(0o600)
        self.variables |= {
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": dsn.replace("postgresql://", "postgresql+psycopg2://", 1),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://{LOOPBACK}:{port}/execution/",
            "AIRFLOW__API__HOST": LOOPBACK,
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__BASE_URL": f"http://{LOOPBACK}:{port}",
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API__SECRET_KEY": "a secret of this test",
            "AIRFLOW__API_AUTH__JWT_SECRET": "another secret of this test, long enough for a signature by it",
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(worker_logs),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_logs),
            "MAKEWHOLE_AIRFLOW_URL": f"http://{LOOPBACK}:{port}",
            "MAKEWHOLE_AIRFLOW_USER": "admin",
            "MAKEWHOLE_AIRFLOW_PASSWORD": password,
            "SPARK_LOCAL_IP": LOOPBACK,
        }

    def _wait(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not self._is_ready():
            assert time.monotonic() < deadline, [
                file.read_text()[-2000:] for file in (self.folder / "run").glob("*.log")
            ]
            time.sleep(_POLL_SECONDS)

    def _is_ready(self) -> bool:
        try:
            url = f"{self.variables['MAKEWHOLE_AIRFLOW_URL']}/api/v2/monitor/health"
            report = httpx.get(url, timeout=3, trust_env=False).raise_for_status().json()
        except (httpx.HTTPError, ValueError):
            return False
        return all(report[part]["status"] == "healthy" for part in ("scheduler", "dag_processor", "triggerer"))
