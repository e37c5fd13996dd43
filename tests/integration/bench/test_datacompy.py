"""Test datacompy beside makewhole: its environment is made once, and it finds what was planted."""

import subprocess
from pathlib import Path

import pytest

from bench.datacompy_environment import datacompy_python, environment_folder
from bench.windows.duel import DATACOMPY, Duel
from bench.windows.orders import Orders
from makewhole.stack.kafka_server import KafkaServer

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(300)]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MAKEWHOLE_CACHE", str(folder))
    return folder


def test_the_environment_is_made_once_and_has_nothing_but_what_is_locked(cache: Path, tmp_path: Path) -> None:
    lock = tmp_path / "empty.lock"
    lock.write_text("")

    python = datacompy_python(lock)
    made = python.parent.stat().st_mtime_ns

    finds = (
        "import importlib.util as u; print([u.find_spec(name) is None for name in ('json', 'makewhole', 'pyspark')])"
    )
    result = subprocess.run([str(python), "-c", finds], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == "[False, True, True]\n"
    assert (datacompy_python(lock), python.parent.stat().st_mtime_ns) == (python, made)
    assert list(cache.iterdir()) == [environment_folder(lock)]


def test_a_package_without_a_hash_is_refused_and_leaves_nothing_behind(cache: Path, tmp_path: Path) -> None:
    lock = tmp_path / "loose.lock"
    lock.write_text("ordered-set==4.1.0\n")

    with pytest.raises(RuntimeError) as refused:
        datacompy_python(lock)

    message = str(refused.value)
    assert message.startswith("datacompy's environment could not be made; check the network and try again\n")
    assert "ordered-set==4.1.0" in message
    assert list(cache.iterdir()) == []


@pytest.mark.skipif(not environment_folder().is_dir(), reason="make bench has not made datacompy's environment here")
def test_datacompy_finds_the_rows_that_were_planted(kafka: KafkaServer, tmp_path: Path) -> None:
    lines = list[str]()
    duel = Duel(orders=Orders(number=5_000, stride=500), runs=1, sides=(DATACOMPY,))

    [series] = duel.measured(kafka.bootstrap, tmp_path, lines.append)

    assert (series.part, series.side, series.data.records) == ("window 1.00%", "datacompy", 5_000)
    assert (series.cold, len(series.warm), len(lines)) == (None, 1, 1)
