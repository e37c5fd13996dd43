"""Test that Airflow loads our DAG files, light and without errors, and no plugin."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scenarios.pipeline_files import FILES
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

DAGS = Path(__file__).resolve().parents[2] / "dags"
DAG_FILES = sorted(DAGS.glob("*.py"))
ALWAYS = ("makewhole_accept", "makewhole_continue", "makewhole_housekeeping", "makewhole_oncall", "makewhole_undo")
HEAVY = ("pyspark", "great_expectations")


def in_a_process_of_its_own(program: str, *arguments: str, **variables: str) -> Any:
    """What the program prints as its last line, as JSON. The variables are all that it has."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments], capture_output=True, text=True, env=variables
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def surroundings(home: Path, pipelines: Path) -> dict[str, str]:
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(DAGS.parent / "plugins"),
        "AIRFLOW__CORE__DAG_DISCOVERY_SAFE_MODE": "False",
        "MAKEWHOLE_PIPELINES": str(pipelines),
        "PATH": "/usr/bin:/bin",
    }


@pytest.fixture
def pipelines(tmp_path: Path) -> Path:
    folder = tmp_path / "pipelines"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_there_are_dag_files() -> None:
    """Takes long where it is the first one: a whole stack starts."""
    assert [file.name for file in DAG_FILES] == [
        "makewhole_accept.py",
        "makewhole_continue.py",
        "makewhole_housekeeping.py",
        "makewhole_oncall.py",
        "makewhole_pipeline_files.py",
        "makewhole_reconcile.py",
        "makewhole_undo.py",
    ]


def test_importing_a_dag_file_imports_neither_spark_nor_the_gate(tmp_path: Path, pipelines: Path) -> None:
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

    found = in_a_process_of_its_own(program, *map(str, DAG_FILES), **surroundings(tmp_path, pipelines))

    for file, (dags, modules) in zip(DAG_FILES, found, strict=True):
        assert bool(dags) is (file.name != "makewhole_pipeline_files.py"), file
        assert "airflow" in modules
        assert set(HEAVY) & set(modules) == set(), file


def test_all_dag_files_parse_in_under_two_seconds_without_errors(tmp_path: Path, pipelines: Path) -> None:
    """The time is that of the files: what Airflow itself takes to be imported is over before."""
    program = """
        import json, sys, time
        from airflow.dag_processing.dagbag import DagBag
        import airflow.sdk
        started = time.process_time()
        bag = DagBag(sys.argv[1])
        print(json.dumps([time.process_time() - started, sorted(bag.dags), bag.import_errors]))
    """

    seconds, dags, errors = in_a_process_of_its_own(program, str(DAGS), **surroundings(tmp_path, pipelines))

    assert errors == {}
    assert dags == sorted([*ALWAYS, *(f"makewhole_reconcile_{name}" for name in ("flights", *FILES))])
    assert seconds < 2


def test_a_pipeline_file_with_mistakes_is_an_import_error_and_all_pipelines_keep_their_dags(
    tmp_path: Path, pipelines: Path
) -> None:
    """Airflow takes away the DAGs of a file with an import error, so that there is none in it. Takes long: Airflow is
    imported, beside scenarios."""
    (pipelines / "bad.yaml").write_text("version: 2\npipeline: bad\npoints: {}\n")
    program = """
        import json, sys
        from airflow.dag_processing.dagbag import DagBag
        bag = DagBag(sys.argv[1])
        print(json.dumps([sorted(bag.dags), bag.import_errors]))
    """

    dags, errors = in_a_process_of_its_own(program, str(DAGS), **surroundings(tmp_path, pipelines))

    ((file, message),) = errors.items()
    assert Path(file).name == "makewhole_pipeline_files.py"
    assert "bad.yaml" in message
    assert dags == sorted([*ALWAYS, *(f"makewhole_reconcile_{name}" for name in ("bad", "flights", *FILES))])


def test_this_airflow_has_no_import_errors(stage: Stage, wanted: frozenset[str]) -> None:
    for dag in (*ALWAYS, *(f"makewhole_reconcile_{name}" for name in wanted)):
        stage.wait_for_dag(dag)
    assert stage.get("/importErrors") == {"import_errors": [], "total_entries": 0}
    assert stage.get("/plugins/importErrors") == {"import_errors": [], "total_entries": 0}
