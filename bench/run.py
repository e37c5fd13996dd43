"""Run the parts of a benchmark, one after the other, side by side within each."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bench.jars import connector_jars
from bench.measuring.contender import Contender, Task
from bench.measuring.data_set import DataSet
from bench.measuring.results import Series
from bench.plan import Plan
from bench.repairs import findings, replays, upserts
from bench.topics import elements, formats, headers, reads, snapshots
from bench.windows import history, latency, on_cluster, scale
from makewhole.config.connection_text import variable_of
from makewhole.stack.environment import connection_kafka

Report = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The settings that all parts need. `folder` is for files that come and go; `report` is called after every run."""

    bootstrap: str
    plan: Plan
    folder: Path
    report: Report

    def duels(self) -> Iterator[Series]:
        """Measure reads and writes of both sides, in turn, the one that begins changing from round to round."""
        with (
            Contender(reads.KAFKA_LOG, self.folder / "ours") as ours,
            Contender(reads.CONNECTOR, self.folder / "theirs", connector_jars()) as theirs,
        ):
            for number, data in enumerate(self.plan.reads):
                sides = (ours, theirs)
                cold = {side.name: self._once(side, "read", data) for side in sides} if number == 0 else {}
                self._require_agreement(sides, data)
                for part, rounds in (("read", self.plan.rounds), ("write", self.plan.writes)):
                    yield from self._duel(sides, part, data, rounds, cold if part == "read" else {})

    def _duel(
        self, sides: tuple[Contender, ...], part: str, data: DataSet, rounds: int, cold: dict[str, Series]
    ) -> Iterator[Series]:
        runs: dict[str, Series] = {side.name: self._once(side, part, data) for side in sides}  # warms up: not counted
        series_by_side = {
            name: Series(part=part, side=name, data=data, cold=cold[name].warm[0] if name in cold else None)
            for name in runs
        }
        for number in range(rounds):
            for side in sides if number % 2 == 0 else reversed(sides):
                series_by_side[side.name].warm.extend(self._once(side, part, data).warm)
        yield from series_by_side.values()

    def _once(self, side: Contender, part: str, data: DataSet) -> Series:
        task: Task = reads.read if part == "read" else reads.write
        target = () if part == "read" else (str(self.folder / "parquet"),)
        _, cost = side.run(task, side.name, self.bootstrap, data.topic, *target)
        self.report(
            f"{part:8} {data.title:18} {side.name:18} {cost.wall_seconds:6.2f} s, {cost.cpu_seconds:6.2f} s of cores"
        )
        return Series(part=part, side=side.name, data=data, warm=[cost])

    def _require_agreement(self, sides: tuple[Contender, ...], data: DataSet) -> None:
        """Require that both sides have read the same: all of it."""
        seen = [side.run(reads.checksum, side.name, self.bootstrap, data.topic)[0] for side in sides]
        if len(set(seen)) != 1 or seen[0][0] != data.records:
            raise RuntimeError(f"{data.title}: the sides do not agree on what is in the topic: {seen}")

    def scans(self) -> Iterator[Series]:
        """Measure scans of every batch's header, with and without the checksums."""
        for data in self.plan.scans:
            for is_checked in (True, False):
                series = Series(part="scan", side="checked" if is_checked else "not checked", data=data)
                for _ in range(self.plan.rounds):
                    records, cost = headers.scan(self.bootstrap, data.topic, is_checked)
                    if records != data.records:
                        raise RuntimeError(f"{data.title}: the scan counts {records} records")
                    self.report(f"scan     {data.title:18} {series.side:18} {cost.wall_seconds:6.2f} s")
                    series.warm.append(cost)
                yield series

    def snapshots(self) -> Iterator[Series]:
        """Measure snapshots in sessions of their own, in turn, smaller ones first, so that each size shows its own
        memory."""
        os.environ[variable_of(snapshots.CONNECTION)] = connection_kafka(self.bootstrap)  # Spark's workers look there
        with (
            Contender(snapshots.MAKEWHOLE, self.folder / "snapshot") as ours,
            Contender(snapshots.BY_HAND, self.folder / "by-hand", connector_jars()) as theirs,
        ):
            for number, data in enumerate(self.plan.snapshots):
                sides = (ours, theirs)
                first = {side.name: self._snapshot(side, data) for side in sides}
                for turn in range(self.plan.rounds):
                    for side in sides if turn % 2 == 0 else reversed(sides):
                        first[side.name].warm.extend(self._snapshot(side, data).warm)
                for series in first.values():
                    began = series.warm.pop(0)
                    yield replace(series, cold=began if number == 0 else None)

    def _snapshot(self, side: Contender, data: DataSet) -> Series:
        task: Task = snapshots.take if side.name == snapshots.MAKEWHOLE else snapshots.take_by_hand
        (rows, size), cost = side.run(task, self.bootstrap, data.topic, str(self.folder / "taken"))
        if rows != data.records:
            raise RuntimeError(f"{data.title}: the snapshot has {rows} rows")
        self.report(
            f"snapshot {data.title:18} {side.name:18} {cost.wall_seconds:6.2f} s, {cost.cpu_seconds:6.2f} s of cores"
        )
        return Series(part="snapshot", side=side.name, data=data, warm=[cost], written_bytes=size)

    def formats(self) -> Iterator[Series]:
        """Measure the decoding of binary values, Avro side by side with Spark's `from_avro`."""
        for data in self.plan.formats:
            yield from formats.measured(self.folder, data, self.plan.rounds, self.report)

    def elements(self) -> Iterator[Series]:
        """Measure the division of records into typed elements, side by side with Spark's `explode`."""
        for data in self.plan.elements:
            yield from elements.measured(self.folder, data, self.plan.rounds, self.report)

    def replays(self) -> Iterator[Series]:
        """Measure a plan of compensation, side by side with a plain producer of the same records."""
        for data in self.plan.replays:
            yield from replays.measured(self.bootstrap, self.folder, data, self.plan.rounds, self.report)

    def upserts(self) -> Iterator[Series]:
        """Measure plans of compensation that write rows, side by side with a plain COPY of the same rows."""
        for data in self.plan.upserts:
            yield from upserts.measured(self.folder, data, self.plan.rounds, self.report)

    def windows(self) -> Iterator[Series]:
        """Measure whole windows, side by side with the job that people write by hand and with datacompy."""
        for duel in self.plan.windows:
            yield from duel.measured(self.bootstrap, self.folder, self.report)

    def avro(self) -> Iterator[Series]:
        """Measure whole windows of Avro records, side by side with the job that people write by hand."""
        for duel in self.plan.avro:
            yield from duel.measured(self.bootstrap, self.folder, self.report)

    def scale(self) -> Iterator[Series]:
        """Measure makewhole's side of whole windows alone, smaller ones first."""
        for orders in self.plan.scales:
            yield from scale.measured(self.bootstrap, self.folder, orders, self.plan.window_runs, self.report)

    def cluster(self) -> Iterator[Series]:
        """Measure whole windows on a cluster of Spark, side by side with one application."""
        for orders in self.plan.clusters:
            yield from on_cluster.measured(self.bootstrap, self.folder, orders, self.plan.window_runs, self.report)

    def latency(self) -> Iterator[Series]:
        """Measure small windows through a real Airflow, from the trigger to the verdict."""
        yield from latency.measured(
            self.folder / "latency", tuple(self.plan.latencies), self.plan.window_runs, self.report
        )

    def history(self) -> Iterator[Series]:
        """Measure windows of an early and of a late day of the same pipeline."""
        for days in self.plan.histories:
            yield from history.measured(self.bootstrap, self.folder, days, self.plan.window_runs, self.report)

    def findings(self) -> Iterator[Series]:
        """Measure windows in which nearly every key is missing, from the comparison to the certificate."""
        for number in self.plan.findings:
            yield from findings.measured(self.bootstrap, self.folder, number, self.report)
