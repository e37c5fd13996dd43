"""Test that parts are run by pytest, side by side, and that what they did is noted."""

from pathlib import Path

import pytest

from tests.parts.__main__ import Ended, Runner
from tests.parts.parts import Part

pytestmark = pytest.mark.integration

PASSES = 'def test_one():\n    """Takes long, because."""\n\ndef test_other():\n    pass\n'
FAILS = "import pytest\n\n@pytest.fixture\ndef broken():\n    raise OSError\n\ndef test_it(broken):\n    pass\n"


def run(folder: Path, *stages: dict[str, str], more: tuple[str, ...] = ()) -> list[Ended]:
    """Run parts, each a file with a text, stage by stage."""
    for stage in stages:
        for name, text in stage.items():
            (folder / f"test_{name}.py").write_text(text)
    parts = [
        [Part(name=name, arguments=(str(folder / f"test_{name}.py"), "-q", *more)) for name in stage]
        for stage in stages
    ]
    return Runner(folder, ["-p", "no:cacheprovider"]).run(parts)


def test_each_part_has_its_outcomes_and_seconds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    good, bad, none = run(tmp_path, {"good": PASSES, "bad": FAILS}, {"none": ""})

    assert (good.counts, good.code, good.is_good) == (["good: 2 passed, 0 failed"], 0, True)
    assert [test.is_explained for test in good.timings.tests] == [True, False]
    assert (bad.counts, bad.code, bad.is_good) == (["bad: 0 passed, 1 failed"], 1, False)
    assert (none.counts, none.code, none.is_good) == (["none ran no test (exit code 5)"], 5, False)
    lines = capfd.readouterr().out.splitlines()
    assert all(line.startswith(("good ", "bad ", "none ")) for line in lines)


@pytest.mark.extended
def test_tests_in_several_processes_are_counted_once(tmp_path: Path) -> None:
    [part] = run(tmp_path, {"good": PASSES}, more=("-n", "2"))

    assert part.counts == ["good: 2 passed, 0 failed"]
    assert sorted(test.is_explained for test in part.timings.tests) == [False, True]


@pytest.mark.extended
def test_folders_with_a_conftest_each_are_noted_together(tmp_path: Path) -> None:
    """Pytest looks for the plugins that it was given among those of the other folder."""
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "conftest.py").write_text("")
        (tmp_path / name / f"test_{name}.py").write_text(PASSES)
    part = Part(name="both", arguments=(str(tmp_path / "ours"), str(tmp_path / "theirs"), "-q"))
    (both,) = Runner(tmp_path, ["-p", "no:cacheprovider"]).run([[part]])
    assert (both.code, len(both.timings.tests)) == (0, 4)
