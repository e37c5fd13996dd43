"""Test the wheel: what it carries, and that it works where plain pip has installed it with all that it asks for."""

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from makewhole.shipped import shipped

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).resolve().parents[3]
MIGRATIONS = sorted((CHECKOUT / "sql" / "migrations").glob("*.sql"))
JOBS = sorted((CHECKOUT / "spark" / "jobs").glob("*.py"))
DAGS = sorted((CHECKOUT / "dags").glob("*.py"))
PIPELINE = """\
version: 2
pipeline: orders
start: earliest
points:
  orders: {kind: topic, connection: log, topic: orders, key: "$.id"}
  store: {kind: store, connection: db, table: orders, key: id, time: at}
hops:
  - {from: orders, to: store}
"""
COUNTS_IN_SPARK = (
    "import pyspark; from pyspark.sql import SparkSession;"
    "session = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate();"
    "print(pyspark.__version__, session.range(3).count())"
)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def said_where(installed: Path, folder: Path, program: str, **variables: str) -> list[str]:
    """Return the lines of a program that has the packages of the tests, and makewhole from a wheel alone."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin", **variables},
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout.splitlines()


@pytest.mark.timeout(180)
def test_an_installed_wheel_brings_its_sql_along(installed: Path, tmp_path: Path, database: str) -> None:
    program = (
        "from makewhole.journal.database import migrate; from makewhole.sql import load_queries, sql_root;"
        f"print(sql_root()); print(len(migrate({database!r})), 'judged' in load_queries('window_history'))"
    )

    root, said = said_where(installed, tmp_path, program)
    assert root == str(installed / "makewhole" / "_sql")
    assert said == f"{len(MIGRATIONS)} True"


@pytest.mark.timeout(180)
def test_an_installed_wheel_brings_the_entry_points_of_spark_along(installed: Path, tmp_path: Path) -> None:
    program = "from makewhole.orchestration import dags; print(*sorted(dags._JOBS.glob('*.py')), sep='\\n')"

    jobs = said_where(installed, tmp_path, program, AIRFLOW_HOME=str(tmp_path))

    assert jobs == [str(installed / "makewhole" / "_jobs" / job.name) for job in JOBS]
    assert [Path(job).read_text() for job in jobs] == [job.read_text() for job in JOBS]


@pytest.mark.timeout(180)
def test_an_installed_wheel_brings_the_pages_and_their_documents_along(installed: Path, tmp_path: Path) -> None:
    program = (
        "from importlib.metadata import entry_points; "
        "from makewhole.shipped import shipped; "
        "plugin = entry_points(group='airflow.plugins')['makewhole'].load(); "
        "print(plugin.name, *(app['url_prefix'] for app in plugin.fastapi_apps), shipped('docs') / 'runbook.md')"
    )
    said = said_where(installed, tmp_path, program, AIRFLOW_HOME=str(tmp_path))[-1]
    runbook = installed / "makewhole" / "_docs" / "runbook.md"
    assert said == f"makewhole /makewhole {runbook}"
    assert runbook.read_bytes() == (shipped("docs") / "runbook.md").read_bytes()


@pytest.mark.timeout(180)
def test_one_item_of_airflows_settings_gives_the_dags_of_an_installed_wheel(installed: Path, tmp_path: Path) -> None:
    """Airflow has its own default for which files it opens: those that have the words in them."""
    (tmp_path / "orders.yaml").write_text(PIPELINE)
    program = """
import json
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag
bundle = DagBundlesManager().get_bundle("makewhole")
bag = DagBag(bundle.path, bundle_path=bundle.path)
print(bundle.path, json.dumps([sorted(bag.dags), sorted(bag.import_errors)]))
"""
    settings = {
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(
            [{"name": "makewhole", "classpath": "makewhole.orchestration.bundle.MakewholeBundle", "kwargs": {}}]
        ),
        "MAKEWHOLE_PIPELINES": str(tmp_path),
    }

    path, loaded = said_where(installed, tmp_path, program, **settings)[-1].split(" ", 1)

    dags, errors = json.loads(loaded)
    assert path == str(installed / "makewhole" / "_dags")
    assert sorted(file.name for file in Path(path).iterdir() if file.suffix == ".py") == [file.name for file in DAGS]
    assert errors == []
    assert dags == [
        "makewhole_accept",
        "makewhole_ask",
        "makewhole_continue_orders",
        "makewhole_housekeeping",
        "makewhole_oncall",
        "makewhole_reconcile_orders",
        "makewhole_undo_orders",
    ]


@pytest.mark.timeout(180)
def test_an_airflow_with_an_installed_wheel_knows_connections_to_kafka(installed: Path, tmp_path: Path) -> None:
    program = (
        "from airflow.providers_manager import ProvidersManager; hook = ProvidersManager().hooks['kafka'];"
        "print(hook.package_name, hook.hook_class_name, hook.connection_id_attribute_name)"
    )

    said = said_where(installed, tmp_path, program, AIRFLOW_HOME=str(tmp_path))[-1]

    assert said == "makewhole makewhole.orchestration.kafka_hook.KafkaHook kafka_conn_id"


@pytest.mark.extended
@pytest.mark.timeout(1800)
def test_plain_pip_leaves_a_spark_that_counts(wheel: Path, tmp_path: Path) -> None:
    """Takes minutes: pip finds and installs all packages that the wheel asks for with Spark, without a lock."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path)], check=True, timeout=120)
    python = str(tmp_path / "bin" / "python")
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", f"{wheel}[spark]"], check=True, cwd=tmp_path, timeout=1500
    )

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
    lines = [*project["dependencies"], *project["optional-dependencies"]["spark"]]
    [asked] = [str(line) for line in lines if line.startswith(f"{package}==")]
    return asked.removeprefix(f"{package}==")
