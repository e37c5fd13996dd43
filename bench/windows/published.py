"""Measure consumers that read what was published once, beside as many that each deduplicate by themselves.

    python -m bench.windows.published --records 10000000

Each consumer decodes every order and adds the amounts up by status. On one side it reads the topic (`kafka_log`, the
faster of Spark's ways to it) and drops repeated keys, as consumers do without makewhole; on the other it reads what
the manifest names. All must have the same answer. What publishing costs, once for all, is measured besides: the
application from its start to its end.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.measuring.contender import Contender, Task
from bench.measuring.meter import Cost, Meter
from bench.windows.orders import Orders
from bench.windows.service import PIPELINE
from bench.windows.stage import Report, Stage, prepared
from makewhole.journal.database import connect
from makewhole.model.window import Window
from makewhole.stack.class_archive import launcher_jvm, short_job_jvm
from makewhole.stack.kafka_server import KafkaServer
from makewhole_spark.kafka_log.source import register

_JOB = Path(__file__).parents[2] / "spark" / "jobs" / "publish.py"
_SCHEMA = "order_id string, amount decimal(12,2), status string"
_STRIDE = 100  # one order in a hundred is sent twice
OWN, ONCE = "own dedup", "published once"

Answer = list[tuple[str, int, Decimal]]


@dataclass(frozen=True, kw_only=True)
class Consumers:
    """The costs of consumers on each side, one after the other, and of publishing for one side of them."""

    records: int
    published: int
    own: Sequence[Cost]
    once: Sequence[Cost]
    publishing: Cost

    def ratio(self, figure: str, consumers: int) -> tuple[float, float]:
        """Return how much more so many consumers cost that deduplicate than those that read what was published:
        without what publishing costs, and with it."""
        own, once = (median(getattr(cost, figure) for cost in costs) * consumers for costs in (self.own, self.once))
        return own / once, own / (once + getattr(self.publishing, figure))

    def document(self, consumers: int) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        figures = ("wall_seconds", "cpu_seconds")
        ratios = {figure: self.ratio(figure, consumers) for figure in figures}
        return {
            "records": self.records,
            "published": self.published,
            "consumers": consumers,
            "ratio": {figure: round(alone, 2) for figure, (alone, _) in ratios.items()},
            "ratio_with_publishing": {figure: round(whole, 2) for figure, (_, whole) in ratios.items()},
            **{
                side: [{figure: round(getattr(cost, figure), 2) for figure in figures} for cost in costs]
                for side, costs in ((OWN, self.own), (ONCE, self.once), ("publishing", [self.publishing]))
            },
        }


def deduplicate(spark: SparkSession, bootstrap: str, topic: str) -> Answer:
    """Add up the orders of a topic, each once."""
    register(spark)
    reading = spark.read.format("kafka_log").option("topic", topic).option("columns", "value")
    values = reading.option("kafka.bootstrap.servers", bootstrap).load()
    return _added_up(_decoded(values).dropDuplicates(["order_id"]))


def read_published(spark: SparkSession, files: Sequence[str]) -> Answer:
    """Add up the orders of published files."""
    return _added_up(_decoded(spark.read.parquet(*files)))


def _decoded(values: DataFrame) -> DataFrame:
    return values.selectExpr(f"from_json(cast(value as string), '{_SCHEMA}') as o").select("o.*")


def _added_up(orders: DataFrame) -> Answer:
    totals = orders.groupBy("status").agg({"order_id": "count", "amount": "sum"}).orderBy("status")
    return [(row[0], row["count(order_id)"], row["sum(amount)"]) for row in totals.collect()]


def measured(bootstrap: str, folder: Path, orders: Orders, consumers: int, report: Report) -> Consumers:
    """Measure so many consumers on each side, in turns; one of each warms up and is not counted.

    Raises:
        RuntimeError: the two sides have other answers.
    """
    with prepared(bootstrap, folder, orders) as stage, ExitStack() as stack:
        manifest, publishing = _publish(stage)
        files = [str(_published(stage) / file["path"]) for file in manifest["files"]]
        tasks: dict[str, tuple[Task, tuple[Any, ...]]] = {
            OWN: (deduplicate, (bootstrap, orders.name)),
            ONCE: (read_published, (files,)),
        }
        sides = {side: stack.enter_context(Contender(side, folder)) for side in tasks}
        costs: dict[str, list[Cost]] = {side: [] for side in tasks}
        for number in range(1 + consumers):
            answers = {}
            for side in (OWN, ONCE) if number % 2 == 0 else (ONCE, OWN):
                task, arguments = tasks[side]
                answers[side], cost = sides[side].run(task, *arguments)
                costs[side] += [cost] if number else []
                report(stage.line("consumer", side, cost))
            if answers[OWN] != answers[ONCE]:
                raise RuntimeError(f"{orders.name}: {OWN} has {answers[OWN]}, {ONCE} has {answers[ONCE]}")
    return Consumers(
        records=orders.number,
        published=manifest["records"],
        own=costs[OWN],
        once=costs[ONCE],
        publishing=publishing,
    )


def _published(stage: Stage) -> Path:
    return stage.service.folder / "once"


def _publish(stage: Stage) -> tuple[dict[str, Any], Cost]:
    """Judge the window, and publish it; return its manifest, and what publishing cost.

    Its faults are not repaired here: it is called certified, which changes nothing of what publishing does.
    """
    service = stage.service
    text = stage.orders.pipeline_file(PIPELINE, kafka="log", postgres="db")
    key = 'key: "$.order_id"'
    service.write_pipeline(text.replace(key, f"{key}, publish: {{path: {_published(stage)}}}"))
    window = service.open_window(stage.end)
    service.run_window(window)
    with connect(service.journal) as journal, journal.cursor() as cursor:
        cursor.execute("update makewhole.window set state = 'certified'")
    cost = _run_job(stage, window)
    [path] = (_published(stage) / "manifests").glob("*.json")
    return json.loads(path.read_text()), cost


def _run_job(stage: Stage, window: Window) -> Cost:
    place = ["--pipeline", window.pipeline, "--window", str(window.number), "--revision", str(window.revision)]
    submit = str(Path(sys.executable).with_name("spark-submit"))
    settings = ["--master", "local[2]", "--driver-memory", "2g", "--conf", "spark.ui.enabled=false"]
    java = {"JDK_JAVA_OPTIONS": short_job_jvm(), "SPARK_LAUNCHER_OPTS": launcher_jvm()}
    variables = {**os.environ, **stage.service.environment, **java, "PYSPARK_PYTHON": sys.executable}
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen([submit, *settings, str(_JOB), *place], stdout=log, stderr=log, env=variables)
        with Meter(process.pid) as meter:
            process.wait()
        if process.returncode:
            log.seek(0)
            raise RuntimeError(f"publishing ended with {process.returncode}: {log.read()[-3000:]}")
    return meter.cost


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--consumers", type=int, default=4)
    wanted = parser.parse_args()
    orders = Orders(number=wanted.records, stride=_STRIDE)
    with tempfile.TemporaryDirectory(prefix="makewhole-bench-") as scratch:
        server = KafkaServer(Path(scratch) / "kafka")
        try:
            server.start()
            consumers = measured(server.bootstrap, Path(scratch), orders, wanted.consumers, _report)
        finally:
            server.stop()
    print(json.dumps(consumers.document(wanted.consumers), indent=1))


if __name__ == "__main__":
    main()
