"""Take the rounds of a self-check on real servers, step by step, as the tasks of its DAG do."""

import uuid
from dataclasses import dataclass, field
from pathlib import Path

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.config.pipeline_file import load_pipeline
from makewhole.journal.database import connect
from makewhole.journal.results.self_check_rounds import PlantedRound
from makewhole.lake.storage import Storage
from makewhole.model.pipeline import Pipeline
from makewhole.self_check.compare import compare
from makewhole.self_check.load import load
from makewhole.self_check.plant import plant
from makewhole.self_check.systems import ScratchSystems, systems_of
from makewhole.signing.key_files import signing_key_from_environment
from makewhole.window.certifying.certify import ClosedWindow, certify_window
from makewhole.window.context import WindowContext, connections_of, window_context
from makewhole.window.opening.interval import Request
from makewhole.window.opening.open import open_interval
from makewhole_spark.carrier import Carrier
from makewhole_spark.reconcile.judge_window import reconcile
from makewhole_spark.snapshot.take import take_snapshots
from makewhole_spark.validate import ask_gate, keep_answer
from tests.world.world import World

NAME = "self_check"


@dataclass(kw_only=True)
class CheckedWorld(World):
    """A self-check of the test's own: its file is in `folder`."""

    carrier: Carrier
    folder: Path
    topic: str = field(default_factory=lambda: f"scratch-{uuid.uuid4().hex[:12]}")
    size: int = 100

    def describe(self, **settings: str) -> None:
        """Write the pipeline file."""
        more = "".join(f", {name}: {value}" for name, value in settings.items())
        topic = "" if "topic" in settings else f", topic: {self.topic}"
        self.file.write_text(
            f"version: 2\npipeline: {NAME}\nsettle: 0s\n"
            f"self_check: {{kafka: log, postgres: db{topic}, records: {self.size}{more}}}\n"
        )

    @property
    def file(self) -> Path:
        """The pipeline file."""
        return self.folder / f"{NAME}.yaml"

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as its file has it now."""
        return load_pipeline(self.file)

    @property
    def systems(self) -> ScratchSystems:
        """The scratch topic and tables."""
        return systems_of(self.pipeline, connections_of(self.pipeline))

    def plant(self, run: str) -> PlantedRound:
        """Plant the faults of a run."""
        return plant(self.pipeline, connections_of(self.pipeline), run)

    def open(self, planted: PlantedRound) -> WindowContext:
        """Open the window that covers a round."""
        assert planted.planted_at is not None
        request = Request(id=planted.run, end=planted.planted_at)
        with connect(self.journal) as journal:
            opened = open_interval(journal, self.pipeline, connections_of(self.pipeline), request)
        return window_context(opened.window, self.pipeline)

    def judge(self, context: WindowContext) -> None:
        """Read, compare, ask the gate."""
        with connect(self.journal) as journal:
            take_snapshots(self.carrier, journal, context, 2, None)
        with connect(self.journal) as journal:
            reconcile(self.carrier, journal, context)
        with connect(self.journal) as journal:
            keep_answer(journal, context, ask_gate(self.carrier, journal, context))

    def repair(self, context: WindowContext, *, loads: bool = True) -> None:
        """Plan, replay, have the loader read it, judge again."""
        if plan_window(context).plan is not None:
            compensate_window(context, lambda _: None)
        if loads:
            load(self.systems)
        verify_window(context, lambda *_: None, patience_seconds=0)

    def certify(self, context: WindowContext) -> ClosedWindow:
        """Close the window."""
        with connect(self.journal) as journal:
            key = signing_key_from_environment()
            return certify_window(journal, context.pipeline, context.window, Storage.from_environment(), key)

    def take(self, planted: PlantedRound) -> ClosedWindow:
        """Take the window of a round from its opening to its end."""
        context = self.open(planted)
        self.judge(context)
        self.repair(context)
        return self.certify(context)

    def compare(self) -> list[PlantedRound]:
        """Compare what waits for it."""
        return compare(self.pipeline, connections_of(self.pipeline))

    def round(self, run: str) -> PlantedRound:
        """Take a whole round."""
        self.take(self.plant(run))
        [compared] = self.compare()
        return compared
