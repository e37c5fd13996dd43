"""Hold what a demo showed against what was planted, and print it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from makewhole.cli.demo.commands import json_lines, makewhole, output_of
from makewhole.cli.demo.planted_and_found import Line, as_table, found_ones, lines, planted_ones
from makewhole.model.self_check.planted import Discrepancy
from makewhole.model.window import WindowState


@dataclass(frozen=True, kw_only=True)
class DemoOutcome:
    """The results of a demo. `missed`/`invented` are the findings that are not as planted."""

    lines: Sequence[Line]
    missed: Sequence[Discrepancy]
    invented: Sequence[Discrepancy]
    windows: Sequence[Mapping[str, Any]]
    expected_windows: int
    proof: Mapping[str, Any]
    seconds: float
    airflow_url: str

    @property
    def certified(self) -> int:
        return sum(1 for window in self.windows if window["state"] == WindowState.CERTIFIED)

    @property
    def problems(self) -> list[str]:
        """Reasons why the demo failed; empty when it succeeded."""
        problems = []
        if self.missed or self.invented:
            problems.append(f"found is not planted: {len(self.missed)} missed, {len(self.invented)} invented")
        if not self.certified == len(self.windows) == self.expected_windows:
            problems.append(
                f"of {self.expected_windows} windows {len(self.windows)} exist and {self.certified} are certified"
            )
        if not self.proof["holds"]:
            problems.append(f"the independent proof fails for {len(self.proof['wrong'])} keys")
        return problems

    def document(self) -> dict[str, Any]:
        """Return the outcome as `--json` prints it."""
        return {
            "ok": not self.problems,
            "problems": self.problems,
            "lines": [asdict(line) for line in self.lines],
            "missed": [asdict(discrepancy) for discrepancy in self.missed],
            "invented": [asdict(discrepancy) for discrepancy in self.invented],
            "windows": list(self.windows),
            "proof": dict(self.proof),
            "seconds": round(self.seconds, 1),
            "airflow": self.airflow_url,
        }


def read_outcome(
    pipeline: str,
    planted_rows: Sequence[Mapping[str, Any]],
    proof: Mapping[str, Any],
    *,
    expected_windows: int,
    began: float,
    url: str,
) -> DemoOutcome:
    """Read from the journal what was found, and compare it with what was planted. `began`: of the monotonic clock."""
    planted = planted_ones(planted_rows)
    findings = found_ones(json_lines(output_of(makewhole("findings", pipeline, "--json"), may_fail=True)))
    windows = json_lines(output_of(makewhole("windows", pipeline, "--json"), may_fail=True))
    wrong_now = frozenset(Discrepancy(**row) for row in proof["wrong"])
    return DemoOutcome(
        lines=lines(planted, findings, wrong_now),
        missed=sorted(planted - findings),
        invented=sorted(findings - planted),
        windows=_latest(windows),
        expected_windows=expected_windows,
        proof=proof,
        seconds=time.monotonic() - began,
        airflow_url=url,
    )


def _latest(windows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the latest revision of each window, oldest window first."""
    by_number = {window["window"]: window for window in sorted(windows, key=lambda window: window.get("revision", 1))}
    return [by_number[number] for number in sorted(by_number)]


def show_outcome(out: Console, outcome: DemoOutcome, pipeline: str, counted: str, dag: str) -> None:
    """Print the table of planted and found, the proof (`counted` sums it up), and where to look further."""
    out.print()
    out.print(as_table(outcome.lines))
    out.print(f"proof: {counted}")
    out.print(f"windows: {outcome.certified} of {outcome.expected_windows} certified")
    for window in outcome.windows[-3:]:
        out.print(f"  window {window['window']}: {window_text(window)}")
    for discrepancy in [*outcome.missed[:5], *outcome.invented[:5]]:
        kind = "missed" if discrepancy in outcome.missed else "invented"
        out.print(f"  {kind}: {discrepancy.hop} {discrepancy.verdict} {discrepancy.key}")
    out.print(f"Airflow: {outcome.airflow_url}/dags/{dag}  (user and password: makewhole status)")
    out.print(f"Certificates: makewhole windows {pipeline}, makewhole certificate verify {pipeline}")
    if outcome.problems:
        out.print(Text.assemble(("not whole: ", "bold red"), "; ".join(outcome.problems)))
    else:
        out.print(
            Text.assemble(("whole: ", "bold green"), f"found is exactly what was planted ({outcome.seconds:.0f} s)")
        )


def window_text(window: Mapping[str, Any]) -> str:
    """Return the state of a window; of a certified one from where on it is proven, and what it leaves to others."""
    certificate, parts = window["certificate"], [str(window["state"])]
    if certificate and certificate["reach"]:
        parts.append(f"from the {certificate['reach']['from']}")
    if window["handed_over"]["keys"]:
        parts.append(f"{window['handed_over']['keys']:,} handed over")
    before = sum(hop["counts"]["before_baseline"] for hop in window["hops"])
    if before:
        parts.append(f"{before:,} before the baseline")
    return ", ".join([*parts, *([str(certificate["uri"])] if certificate else [])])
