"""Run Kafka Connect with its connectors in one process: start it, end it, kill it, stop one connector in it."""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.error import URLError

from examples.cdc.connect_jars import class_path, link_plugins
from examples.cdc.connectors import Properties
from examples.cdc.settings import SLOT, SOURCE, Systems
from makewhole.stack.maven_jars import java
from makewhole.stack.ports import LOOPBACK, free_ports
from makewhole.stack.process import ServerProcess

START_SECONDS, ANSWER_SECONDS, POLL_SECONDS = 90.0, 5.0, 0.2
# How often connectors write down how far they are; as often the lake's sink answers its coordinator when it has nothing
# to read. A worker that is killed within `SELDOM_MS` of a connector's start has noted nothing of what that one did.
_OFTEN_MS, SELDOM_MS = 500, 120_000
_MAIN = "org.apache.kafka.connect.cli.ConnectStandalone"


class Worker:
    """The Connect worker of the example. Its port, its properties and its log are in the example's folder."""

    def __init__(self, systems: Systems, connectors: Mapping[str, Properties]) -> None:
        self._systems, self._connectors = systems, connectors
        self.process = process_in(systems.folder)

    def start(self, flush_ms: int = _OFTEN_MS) -> None:
        """Start it and wait until its connectors run. Harmless when they do. `flush_ms`: how often they write down how
        far they are.

        Raises:
            TransientError: it did not come up.
        """
        link_plugins(self._plugins)
        files = self._write_properties(flush_ms)
        command = [java(), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", class_path(), _MAIN, *map(str, files)]
        self.process.start(command, environment=os.environ)
        self.process.wait_until(
            lambda: self._are_in_state("RUNNING", *self._connectors) and self._has_slot(), timeout_seconds=START_SECONDS
        )

    def end(self) -> None:
        """End it as an operator does: the source writes down how far it has come, the sink does not."""
        self.process.stop()

    def kill(self) -> None:
        """Kill it, as a machine that dies does: nothing is written down."""
        self.process.stop(how=signal.SIGKILL)

    def stop_connector(self, name: str) -> None:
        """Stop one connector; it writes down how far it has come."""
        self._put(f"/connectors/{name}/stop")
        wait_for(f"connector {name} to stop", lambda: self._state(name)["connector"]["state"] == "STOPPED")

    def resume_connector(self, name: str) -> None:
        """Resume a stopped connector."""
        self._put(f"/connectors/{name}/resume")
        wait_for(f"connector {name} to run", lambda: self._are_in_state("RUNNING", name))

    def forget_source_offsets(self) -> None:
        """Remove what the source wrote down of how far it came; the worker must not run."""
        self._offsets.unlink(missing_ok=True)

    # -- its state -------------------------------------------------------------------------------------------------

    def _are_in_state(self, wanted: str, *names: str) -> bool:
        """Return whether each connector and its tasks are: Connect says RUNNING of a connector whose task failed."""
        try:
            states = [self._state(name) for name in names]
        except (URLError, ConnectionError, TimeoutError):
            return False
        return all(
            state["tasks"] and all(part["state"] == wanted for part in [state["connector"], *state["tasks"]])
            for state in states
        )

    def _has_slot(self) -> bool:
        """Return whether the source reads its replication slot: what is written before that is not sent."""
        if SOURCE not in self._connectors:
            return True
        with self._systems.database() as database, database.cursor() as cursor:
            cursor.execute("select active from pg_replication_slots where slot_name = %s", (SLOT,))
            row = cursor.fetchone()
            return bool(row and row[0])

    def _state(self, name: str) -> Any:
        with urllib.request.urlopen(f"{self._address}/connectors/{name}/status", timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)

    def _put(self, path: str) -> None:
        request = urllib.request.Request(f"{self._address}{path}", method="PUT")
        urllib.request.urlopen(request, timeout=ANSWER_SECONDS).close()

    @property
    def _address(self) -> str:
        return f"http://{LOOPBACK}:{self._port()}"

    def _port(self) -> int:
        file = self._systems.folder / "connect.port"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(str(free_ports(1)[0]))
        return int(file.read_text())

    # -- its files -------------------------------------------------------------------------------------------------

    @property
    def _plugins(self) -> Path:
        return self._systems.folder / "plugins"

    @property
    def _offsets(self) -> Path:
        return self._systems.folder / "connect.offsets"

    def _write_properties(self, flush_ms: int) -> list[Path]:
        """Write the files that Connect is started with; passwords are in them."""
        folder = self._systems.folder
        folder.mkdir(parents=True, exist_ok=True)
        files = {"worker": self._of_worker(flush_ms), **self._connectors}
        for name, properties in files.items():
            file = folder / f"{name}.properties"
            file.touch(mode=0o600)
            file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8")
        return [folder / f"{name}.properties" for name in files]

    def _of_worker(self, flush_ms: int) -> Mapping[str, Any]:
        return {
            "bootstrap.servers": self._systems.bootstrap,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "true",  # the sink asks for the schema of each record
            "offset.storage.file.filename": self._offsets,
            "offset.flush.interval.ms": flush_ms,
            "listeners": self._address,
            "plugin.path": self._plugins,
            "plugin.discovery": "service_load",
            # A killed worker is noticed after six seconds, not after 45.
            "consumer.session.timeout.ms": 6_000,
            "consumer.heartbeat.interval.ms": 1_000,
            "consumer.auto.offset.reset": "earliest",
        }


def process_in(folder: Path) -> ServerProcess:
    """Return the process of the worker whose folder this is."""
    return ServerProcess(name="connect", directory=folder)


def wait_for(what: str, condition: Callable[[], bool], seconds: float = START_SECONDS) -> None:
    """Wait until a condition holds.

    Raises:
        RuntimeError: it does not, in this time.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {seconds:.0f} s for {what}, in vain")
        time.sleep(POLL_SECONDS)
