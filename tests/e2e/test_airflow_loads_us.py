"""Test that Airflow loads our DAG files, light and without errors, and no plugin."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scenarios.pipeline_files import FILES, GROUPS
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

DAGS = Path(__file__).resolve().parents[2] / "dags"
DAG_FILES = sorted(DAGS.glob("*.py"))
ALWAYS = (
    "makewhole_accept",
    "makewhole_ask",
    "makewhole_housekeeping",
    "makewhole_notify",
    "makewhole_oncall",
)
OF_EACH = ("reconcile", "continue", "undo")
OF_GUARDED = ("oncall", "accept", "ask")
"""The DAGs of a pipeline whose file has `access`, in place of those for several."""
HEAVY = ("pyspark", "great_expectations", "pyarrow", "polars", "numpy")


def in_a_process_of_its_own(program: str, *arguments: str, **variables: str) -> Any:
    """Return what the program prints as its last line, as JSON. The variables are all that it has."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments], capture_output=True, text=True, env=variables
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def surroundings(home: Path, pipelines: Path) -> dict[str, str]:
    groups = home / "groups.yaml"
    groups.write_text(GROUPS)
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(DAGS.parent / "plugins"),
        "MAKEWHOLE_PIPELINES": str(pipelines),
        "MAKEWHOLE_GROUPS": str(groups),
        "PATH": "/usr/bin:/bin",
    }


def in_files(folder: Path) -> Path:
    """Write the pipeline files of the scenarios into a new folder; return it."""
    folder.mkdir()
    for name, text in FILES.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def own_dags(*pipelines: str) -> list[str]:
    """Return the DAGs of these pipelines alone."""
    return [
        f"makewhole_{kind}_{name}"
        for name in pipelines
        for kind in (*OF_EACH, *(OF_GUARDED if "access:" in FILES.get(name, "") else ()))
    ]


def test_there_are_dag_files() -> None:
    """Takes long where it is the first one: a whole stack starts."""
    assert [file.name for file in DAG_FILES] == [
        "makewhole_accept.py",
        "makewhole_ask.py",
        "makewhole_continue.py",
        "makewhole_housekeeping.py",
        "makewhole_notify.py",
        "makewhole_oncall.py",
        "makewhole_pipeline_files.py",
        "makewhole_reconcile.py",
        "makewhole_undo.py",
    ]


def test_importing_a_dag_file_imports_nothing_that_judges(tmp_path: Path) -> None:
    """Takes long: Airflow is imported, once, and each file in a copy of that process, beside scenarios."""
    program = """
        import json, multiprocessing, runpy, sys
        from airflow.sdk import DAG

        def load(file):
            found = runpy.run_path(file)
            dags = [name for name, value in found.items() if isinstance(value, DAG)]
            return dags, sorted({name.partition(".")[0] for name in sys.modules})

        with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
            print(json.dumps(pool.map(load, sys.argv[1:], chunksize=1)))
    """

    pipelines = in_files(tmp_path / "pipelines")
    loaded = in_a_process_of_its_own(program, *map(str, DAG_FILES), **surroundings(tmp_path, pipelines))

    for file, (dags, modules) in zip(DAG_FILES, loaded, strict=True):
        assert bool(dags) is (file.name != "makewhole_pipeline_files.py"), file
        assert "airflow" in modules
        assert set(HEAVY) & set(modules) == set(), file


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """Hold what Airflow finds in the folder of DAG files, and how many seconds of a core it takes for it.
    `own_seconds`: what Airflow took to be imported."""

    seconds: float
    own_seconds: float
    dags: Sequence[str]
    errors: Mapping[str, str]


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Parsed, Parsed]:
    """The folder as it is, and with a pipeline file with mistakes: one after the other, in a process that has imported
    Airflow once."""
    folder = tmp_path_factory.mktemp("parsed")
    program = """
        import json, pathlib, sys, time
        from airflow.dag_processing.dagbag import DagBag
        import airflow.sdk

        own = time.process_time()

        def parsed():
            started = time.process_time()
            bag = DagBag(sys.argv[1])
            seconds = time.process_time() - started
            return dict(seconds=seconds, own_seconds=own, dags=sorted(bag.dags), errors=bag.import_errors)

        good = parsed()
        pathlib.Path(sys.argv[2], "bad.yaml").write_text("version: 2\\npipeline: bad\\npoints: {}\\n")
        print(json.dumps([good, parsed()]))
    """
    pipelines = in_files(folder / "pipelines")
    good, bad = in_a_process_of_its_own(program, str(DAGS), str(pipelines), **surroundings(folder, pipelines))
    return Parsed(**good), Parsed(**bad)


def test_all_dag_files_parse_without_errors_in_less_time_than_airflow_is_imported(
    parsed: tuple[Parsed, Parsed],
) -> None:
    good, _ = parsed
    assert good.errors == {}
    assert good.dags == sorted([*ALWAYS, *own_dags("flights", *FILES)])
    assert good.seconds < good.own_seconds


def test_a_pipeline_file_with_mistakes_is_an_import_error_and_all_pipelines_keep_their_dags(
    parsed: tuple[Parsed, Parsed],
) -> None:
    """Airflow takes away the DAGs of a file with an import error, so that there is none in it."""
    dags, errors = parsed[1].dags, parsed[1].errors

    ((file, message),) = errors.items()
    assert Path(file).name == "makewhole_pipeline_files.py"
    assert "bad.yaml" in message
    assert dags == sorted([*ALWAYS, "makewhole_reconcile_bad", *own_dags("flights", *FILES)])


def test_this_airflow_has_no_import_errors(stage: Stage, wanted: frozenset[str]) -> None:
    for dag in (*ALWAYS, *own_dags(*(wanted & set(FILES)))):
        stage.wait_for_dag(dag)
    assert stage.get("/importErrors") == {"import_errors": [], "total_entries": 0}
    assert stage.get("/plugins/importErrors") == {"import_errors": [], "total_entries": 0}
