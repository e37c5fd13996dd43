"""Find until when Kafka keeps the original records of findings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from makewhole.kafka.retention import Deadline, RecordRetention, Retention, read_retention
from makewhole.model.connection import Connection, kafka_of
from makewhole.model.errors import MakewholeError
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import has_log
from makewhole.model.verdict import Finding

_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Deadlines:
    """Retention of the topics of a pipeline now. `silent`: topics that could not be asked, with the reason."""

    retention: Mapping[str, Retention]
    silent: Mapping[str, str]

    def of(self, hop: str, evidence: Mapping[str, Any]) -> Deadline | None:
        """Return the earliest deadline of the finding's copies in topics; None: it has none there."""
        source, _, target = hop.partition("→")
        copies = [(source, copy) for copy in evidence.get("source", ())]
        copies += [(target, copy) for copy in evidence.get("target", ())]
        deadlines = [
            self.retention[point].deadline(copy["partition"], copy["offset"], _time(copy))
            for point, copy in copies
            if point in self.retention and "offset" in copy and "partition" in copy
        ]
        return min(deadlines, key=lambda deadline: deadline.urgency, default=None)


class DeadlineCounts:
    """Counts the findings whose originals Kafka has `deleted`, or may delete (`due`), from the moment `first` on."""

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self.deleted = self.due = 0
        self.first: datetime | None = None

    def add(self, findings: Iterable[Finding]) -> None:
        """Count some findings."""
        for finding in findings:
            deadline = self._deadlines.of(finding.hop, finding.evidence)
            if deadline is None:
                continue
            self.deleted += deadline.fate is RecordRetention.DELETED
            if deadline.at is not None:
                self.due += 1
                self.first = deadline.at if self.first is None else min(self.first, deadline.at)


def read_deadlines(pipeline: Pipeline, connections: Mapping[str, Connection]) -> Deadlines:
    """Ask the brokers for the retention of every topic of the pipeline, and wait a few seconds for each."""
    retention, silent = {}, {}
    for point in pipeline.points.values():
        connection = connections.get(point.connection)
        if not has_log(point) or connection is None:
            continue
        try:
            retention[point.name] = read_retention(
                kafka_of(connection), point.topic, patience_seconds=_PATIENCE_SECONDS
            )
        except MakewholeError as error:
            silent[point.name] = str(error)
    return Deadlines(retention=retention, silent=silent)


def _time(copy: Mapping[str, Any]) -> datetime | None:
    return datetime.fromisoformat(copy["time"]) if copy.get("time") else None
