"""Test the wheel: what it carries, and that it works where plain pip has installed it with all that it asks for."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).resolve().parents[3]
MIGRATIONS = sorted((CHECKOUT / "sql" / "migrations").glob("*.sql"))
COUNTS_IN_SPARK = (
    "import pyspark; from pyspark.sql import SparkSession;"
    "session = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate();"
    "print(pyspark.__version__, session.range(3).count())"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True, timeout=120)
    (made,) = folder.glob("*.whl")
    return made


@pytest.mark.timeout(180)
def test_an_installed_wheel_brings_its_sql_along(wheel: Path, tmp_path: Path, database: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    program = (
        "from makewhole.journal.database import migrate; from makewhole.sql import load_queries, sql_root;"
        f"print(sql_root()); print(len(migrate({database!r})), 'judged' in load_queries('window_history'))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(tmp_path / "installed"), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )

    root, said = ran.stdout.splitlines()
    assert root == str(tmp_path / "installed" / "makewhole" / "_sql")
    assert said == f"{len(MIGRATIONS)} True"


@pytest.mark.extended
@pytest.mark.timeout(1800)
def test_plain_pip_leaves_a_spark_that_counts(wheel: Path, tmp_path: Path) -> None:
    """Takes minutes: pip finds and installs all packages that the wheel asks for, without a lock."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path)], check=True, timeout=120)
    python = str(tmp_path / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True, cwd=tmp_path, timeout=1500)

    ran = subprocess.run(
        [python, "-c", COUNTS_IN_SPARK], check=True, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    usage = subprocess.run(
        [tmp_path / "bin" / "makewhole", "--help"], check=True, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )

    assert ran.stdout.split() == [asked_version("pyspark"), "3"]
    assert "Usage" in usage.stdout


def test_the_two_packages_with_the_files_of_pyspark_have_one_version() -> None:
    assert asked_version("pyspark-client") == asked_version("pyspark")


def asked_version(package: str) -> str:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [asked] = [str(line) for line in project["dependencies"] if line.startswith(f"{package}==")]
    return asked.removeprefix(f"{package}==")
