"""Run plans in processes of their own, to be stopped and killed: for each line on stdin one forked runner.

A line is JSON: journal, plan, holder, records_per_second. Answers, one line each: `started <pid>`, then when the runner
ends by itself `ended <pid> <what>`. The parent never touches Kafka, so that forking it is safe.
"""

import json
import os
import sys
import threading

from makewhole.compensation.execution.run_plan import RunOptions, run_plan
from makewhole.compensation.execution.targets import targets_of
from makewhole.model.connection import KafkaConnection, PostgresConnection
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint


def main() -> None:
    topic, bootstrap, dsn = sys.argv[1:]
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            run(json.loads(line), topic, bootstrap, dsn)
        say(f"started {pid}")
        threading.Thread(target=os.waitpid, args=(pid, 0), daemon=True).start()


def run(order: dict[str, object], topic: str, bootstrap: str, dsn: str) -> None:
    """One attempt in this process, which ends with it."""
    outcome = "done"
    try:
        targets = targets_of(
            pipeline(topic),
            {
                "kafka": KafkaConnection(id="kafka", properties={"bootstrap.servers": bootstrap}),
                "pg": PostgresConnection(id="pg", dsn=dsn),
            },
        )
        options = RunOptions(holder=str(order["holder"]), records_per_second=order.get("rate"))  # type: ignore[arg-type]
        run_plan(str(order["journal"]), str(order["plan"]), targets, options=options)
    except Exception as error:
        outcome = type(error).__name__
    say(f"ended {os.getpid()} {outcome}")
    os._exit(0)


def pipeline(topic: str) -> Pipeline:
    """As much of the test's pipeline as a runner needs."""
    remedies = Remedies(missing=Remedy.REDELIVER, duplicate=Remedy.QUARANTINE, mismatched=Remedy.UPSERT)
    return Pipeline(
        name=topic,
        points={
            "flights": TopicPoint(name="flights", connection="kafka", topic=topic, key=("$.id",)),
            "warehouse": TablePoint(
                name="warehouse",
                kind=PointKind.STORE,
                connection="pg",
                table="dw.departures",
                key=("id",),
                time="loaded_at",
            ),
        },
        hops=(Hop(source="flights", target="warehouse", remedies=remedies),),
    )


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    main()
