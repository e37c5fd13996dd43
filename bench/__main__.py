"""Run `python -m bench`: start a broker, fill topics, measure, write `results.md` and `results.json`."""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench import plan
from bench.measuring import machine
from bench.measuring.data_set import DataSet
from bench.measuring.results import Measured, Results, as_json, from_json
from bench.report.page import page
from bench.run import Bench
from bench.topics.fill import fill
from makewhole.stack.kafka_server import KafkaServer

_PLANS = {"full": plan.full, "quick": plan.quick, "tiny": plan.tiny}
_PARTS = (
    "duels",
    "scans",
    "snapshots",
    "formats",
    "elements",
    "replays",
    "upserts",
    "windows",
    "avro",
    "scale",
    "cluster",
    "history",
    "latency",
    "findings",
)


def main() -> None:
    wanted = _arguments()
    if wanted.scratch is not None:
        wanted.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="makewhole-bench-", dir=wanted.scratch) as scratch:
        known = _written_before(wanted.output) if wanted.only else {}
        for name, measured in _measured(Path(scratch), _PLANS[wanted.plan](), tuple(wanted.only or _PARTS)):
            known[name] = measured
            _write(wanted.output, {part: known[part] for part in _PARTS if part in known})
    _report(f"written: {wanted.output / 'results.md'}")


def _written_before(output: Path) -> dict[str, Measured]:
    """Return what was measured before: the parts that are not wanted now stay as they are."""
    written = output / "results.json"
    return from_json(json.loads(written.read_text(encoding="utf-8"))) if written.exists() else {}


def _write(output: Path, results: Results) -> None:
    output.mkdir(parents=True, exist_ok=True)
    (output / "results.md").write_text(page(results), encoding="utf-8")
    document = json.dumps(as_json(results), indent=1, ensure_ascii=False)
    (output / "results.json").write_text(document + "\n", encoding="utf-8")


def _measured(scratch: Path, chosen: plan.Plan, parts: tuple[str, ...]) -> Iterator[tuple[str, Measured]]:
    server = KafkaServer(scratch / "kafka")
    try:
        server.start()
        for data in chosen.topics(parts):
            _fill(server.bootstrap, data)
        bench = Bench(bootstrap=server.bootstrap, plan=chosen, folder=scratch, report=_report)
        for part in parts:
            load, day = machine.load(), datetime.now(UTC).date().isoformat()
            _report(f"{part}: load of the machine before {load:.1f}")
            series = list(getattr(bench, part)())
            yield part, Measured(day=day, load=load, machine=machine.described(), series=series)
    finally:
        server.stop()


def _fill(bootstrap: str, data: DataSet) -> None:
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        if done % 1_000_000 < more:
            _report(f"produced {done / 1e6:.0f} M of {data.title}")

    fill(bootstrap, data, count)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", dest="plan", action="store_const", const="quick", help="a million records, minutes")
    sizes.add_argument("--tiny", dest="plan", action="store_const", const="tiny", help="proves only that it runs")
    parser.add_argument(
        "--only", action="append", choices=_PARTS, help="this part, the others' results stay; may be several"
    )
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="where the results go")
    parser.add_argument("--scratch", type=Path, help="where the data of all servers and the snapshots go: 40 GB")
    parser.set_defaults(plan="full")
    return parser.parse_args()


_began = time.monotonic()


def _report(text: str) -> None:
    print(f"{time.monotonic() - _began:7.1f}  {text}", flush=True)


if __name__ == "__main__":
    main()
