"""Demonstrate with `examples/cdc`: an outbox through Debezium, Kafka and two sinks, judged in one window."""

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console

from makewhole.cli.demo.commands import example, exit_code, makewhole
from makewhole.model.errors import TransientError
from makewhole.stack.settings import home_folder, project_root

_CERTIFIED, _GAPS_REMAIN = 0, 1


class CdcDemo:
    """The example of change data capture, as a demo drives it."""

    name = pipeline = "cdc"
    dag = "makewhole_reconcile_cdc"
    title = "An outbox, Debezium, Kafka, a JDBC sink, an Iceberg sink: killed at their weak points"
    expected_windows = 1
    variables: Mapping[str, str] = {"MAKEWHOLE_PIPELINES": str(project_root() / "examples" / "cdc")}

    def __init__(self, *, seed: int) -> None:
        self._seed = seed

    def environment(self, status: Mapping[str, Any]) -> dict[str, str]:
        """Return the variables by which the example finds its systems."""
        folder = str(home_folder() / "cdc")
        return {
            "CDC_BOOTSTRAP": status["kafka"]["bootstrap"],
            "CDC_DSN": status["postgres"]["dsn"],
            "CDC_FOLDER": folder,
            "CDC_LAKE": str(home_folder() / "lake"),
        }

    @property
    def run(self) -> list[str]:
        """The command that sets the example up, and makes things go wrong."""
        return example("cdc", "run", "--seed", str(self._seed))

    @property
    def stop(self) -> list[str]:
        """The command that ends what the example leaves running."""
        return example("cdc", "stop", "--folder", str(home_folder() / "cdc"))

    def judge(self, out: Console, access: Mapping[str, str], title: Callable[[str], None], planted: int) -> None:
        """Run one window over all that happened.

        Raises:
            TransientError: it could not be run.
        """
        title(f"One window, by `makewhole run cdc` in {access['url']}: {planted} findings are planted")
        command = makewhole("run", self.pipeline, "--reason", "demo")
        if (code := exit_code(out, command)) not in (_CERTIFIED, _GAPS_REMAIN):
            raise TransientError(f"`makewhole run {self.pipeline}` ended with {code}; its message is above")

    def counted(self, proof: Mapping[str, Any]) -> str:
        """Sum up the proof."""
        return (
            f"{proof['outbox']} orders in the outbox, {proof['topic_orders']} in the topic "
            f"({proof['topic_records']} records), {proof['warehouse_orders']} in the warehouse "
            f"({proof['warehouse_rows']} rows), {proof['lake_orders']} in the lake ({proof['lake_rows']} rows)"
        )
