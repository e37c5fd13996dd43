"""Draw damaged inputs for everything that reads what others wrote; try every input again that found a fault once."""

import tempfile
from pathlib import Path

import pytest

from tests.fuzz.process import FuzzProcess, Outcome
from tests.fuzz.targets import TARGETS

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(0)]

KEPT = Path(__file__).parent / "kept"


def _require_no_fault(target: str, outcome: Outcome) -> None:
    if outcome.fault is None:
        return
    kept_input = Path(tempfile.mkdtemp(prefix="makewhole-fuzz-")) / target  # pytest removes its own folders too early
    kept_input.write_bytes(outcome.content)
    pytest.fail(
        f"{target}: input {outcome.tried} has a fault. It stands in {kept_input}; once the fault is mended, keep it as "
        f"tests/fuzz/kept/{target}/NAME, NAME saying what it is.\n{outcome.content[:500]!r}\n{outcome.fault}",
        pytrace=False,
    )


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_gets_a_wrong_answer_or_none(
    target: str, fuzz_process: FuzzProcess, request: pytest.FixtureRequest
) -> None:
    chosen = [item for item in request.session.items if item.name.startswith("test_no_input")]
    seconds = request.config.getoption("--fuzz-seconds") / len(chosen)
    outcome = fuzz_process.ask({"target": target, "seconds": seconds, "seed": request.config.getoption("--fuzz-seed")})
    print(f"{target}: {outcome.tried} inputs")
    _require_no_fault(target, outcome)


@pytest.mark.parametrize("kept", sorted(KEPT.glob("*/*")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_found_a_fault_once_finds_none(kept: Path, fuzz_process: FuzzProcess) -> None:
    outcome = fuzz_process.ask({"target": kept.parent.name, "kept": str(kept)})
    _require_no_fault(kept.parent.name, outcome)
