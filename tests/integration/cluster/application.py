"""Submit the Spark jobs of a window by `spark-submit`, as Airflow's task does."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from bench.cluster.environment_archive import unpacking
from bench.cluster.spark_cluster import LOOPBACK, spark_home
from makewhole.config.connection_text import FILE_VARIABLE
from makewhole.stack.class_archive import short_job_jvm
from makewhole.window.context import WindowContext

_JOBS = Path(__file__).parents[3] / "spark" / "jobs"
_SECONDS = 240.0

SMALL = {
    "spark.driver.memory": "512m",
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.executor.memory": "1g",
    "spark.pyspark.python": sys.executable,
    "spark.pyspark.driver.python": sys.executable,
}


@dataclass(kw_only=True)
class Application:
    """A running `spark-submit`. What it and its driver write goes to the file `log`."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def end(self) -> str:
        """Wait for its end; return what it said."""
        code = self.process.wait(_SECONDS)
        assert code == 0, self.output
        return self.output

    def stop(self) -> None:
        """End it, if a test has left it running, and the driver's Python below it."""
        if self.process.poll() is None:
            below = psutil.Process(self.process.pid).children(recursive=True)
            self.process.kill()
            for process in below:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self.process.wait(10)


@dataclass(frozen=True, kw_only=True)
class Submitter:
    """Submits to one master, with the settings of a `spark-defaults.conf` in `folder`."""

    folder: Path
    master: str
    settings: Mapping[str, str] = field(default_factory=dict)
    more_environment: Mapping[str, str] = field(default_factory=dict)
    started: list[Application] = field(default_factory=list)

    @classmethod
    def to_cluster(cls, folder: Path, master: str, archive: Path, **more: str) -> "Submitter":
        """Submit to a cluster whose executors unpack the archive of the environment."""
        return cls(folder=folder, master=master, settings=unpacking(archive) | more)

    @classmethod
    def to_yarn(cls, folder: Path, client_settings: Path, archive: Path, settings: Mapping[str, str]) -> "Submitter":
        """Submit to a YARN; its addresses are in the folder `client_settings`."""
        own = {
            "spark.yarn.jars": f"local:{spark_home() / 'jars'}/*",
            "spark.yarn.stagingDir": (folder / "staging").as_uri(),
            "spark.yarn.maxAppAttempts": "1",
            "spark.executor.memoryOverhead": "1g",
        }
        made = cls.to_cluster(folder, "yarn", archive, **own, **settings)
        return replace(made, more_environment={"HADOOP_CONF_DIR": str(client_settings)})

    def with_settings(self, more: Mapping[str, str]) -> "Submitter":
        """Return a submitter with more settings."""
        return replace(self, settings={**self.settings, **more})

    def with_event_log(self) -> "Submitter":
        """Return a submitter whose application writes its events into the folder, as plain text."""
        self._events.mkdir(parents=True)
        plain = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
        return self.with_settings({**plain, "spark.eventLog.dir": self._events.as_uri()})

    def event_log(self) -> bytes:
        """Return the events of the one application that wrote them."""
        [written] = [path for path in self._events.rglob("*") if path.is_file() and "appstatus" not in path.name]
        return written.read_bytes()

    def tasks_of_stages(self) -> list[int]:
        """Return the number of tasks of each stage that the application submitted, in their order."""
        events = [json.loads(line) for line in self.event_log().splitlines()]
        submitted = [event["Stage Info"] for event in events if event["Event"] == "SparkListenerStageSubmitted"]
        return [stage["Number of Tasks"] for stage in submitted]

    @property
    def _events(self) -> Path:
        return self.folder / "events"

    def submit(self, context: WindowContext, step: str, through: str, program: Path | None = None) -> Application:
        """Submit the job of a step, which goes on through another one; or a program in its place."""
        window = context.window
        named = {"--pipeline": window.pipeline, "--window": window.number, "--revision": window.revision}
        arguments = [str(part) for pair in named.items() for part in pair]
        return self.start([str(program or _JOBS / f"{step}.py"), *arguments, "--through", through])

    def start(self, program: Sequence[str]) -> Application:
        """Submit any program."""
        (self.folder / "conf").mkdir(parents=True, exist_ok=True)
        defaults = "".join(f"{name} {value}\n" for name, value in (SMALL | dict(self.settings)).items())
        (self.folder / "conf" / "spark-defaults.conf").write_text(defaults)
        output = self.folder / f"output-{len(list(self.folder.glob('output-*')))}"
        command = [str(spark_home() / "bin" / "spark-submit"), "--master", self.master, *program]
        with output.open("wb") as file:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self._environment(), stdout=file, stderr=subprocess.STDOUT
            )
        self.started.append(Application(process=process, log=output))
        return self.started[-1]

    def stop(self) -> None:
        """End what still runs."""
        for service in self.started:
            service.stop()

    def _environment(self) -> dict[str, str]:
        """Return the environment of an Airflow task: it has the connections, and knows no file of them."""
        own = {
            "SPARK_HOME": str(spark_home()),
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "JDK_JAVA_OPTIONS": short_job_jvm(),
        }
        given = {name: value for name, value in os.environ.items() if name not in (FILE_VARIABLE, "PYSPARK_PYTHON")}
        return given | own | dict(self.more_environment)
