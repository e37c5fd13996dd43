"""Build the environment of the service: makewhole's own variables, Airflow's, and what Spark needs to be found."""

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from makewhole.model.errors import PermanentError
from makewhole.signing.key_files import FILE_PREFIX, KEY_VARIABLE, PRIVATE_FILE, PUBLIC_FILE, PUBLIC_KEYS_VARIABLE
from makewhole.stack.class_archive import launcher_jvm, short_job_jvm
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.ports import LOOPBACK
from makewhole.stack.postgres_server import postgres
from makewhole.stack.settings import USERS, AirflowSettings, load, project_root

AIRFLOW_DATABASE, JOURNAL_DATABASE, PEOPLES_DATABASE = "airflow", "makewhole", "local"
DATABASES = (AIRFLOW_DATABASE, JOURNAL_DATABASE, PEOPLES_DATABASE)

# Short for who waits before the screen; a longer one in the shell's environment holds.
_SHORT_INTERVALS = {
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "20",
    "AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "2",
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
    "AIRFLOW__SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "2",
}
_SMALL = {
    "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
    "AIRFLOW__CORE__PARALLELISM": "4",
    "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
    "AIRFLOW__API__WORKERS": "1",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    # Thin DAG files need not say "airflow", which is what the safe mode looks for before it reads one.
    "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
}


def environment(home: Path) -> dict[str, str]:
    """Return every variable that the parts of the stack in `home`, and commands that use it, have in addition to the
    shell's.

    Raises:
        PermanentError: there was never a stack in `home`.
    """
    settings = load(home)
    if settings is None:
        raise PermanentError(f"there is no local stack in {home}; start one with `makewhole up`")
    return {**_makewhole(home), **_connections(home), **_airflow(home, settings), **_spark()}


def connection_kafka(bootstrap: str) -> str:
    """Return an Airflow connection to a Kafka, as JSON."""
    return json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": bootstrap}})


def connection_postgres(dsn: str) -> str:
    """Return an Airflow connection to a PostgreSQL database, as JSON."""
    parts = urlsplit(dsn)
    return json.dumps(
        {
            "conn_type": "postgres",
            "host": parts.hostname,
            "port": parts.port,
            "login": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            "schema": unquote(parts.path.lstrip("/")),
        }
    )


def connection_lake(dsn: str, warehouse: Path) -> str:
    """Return an Airflow connection to a catalogue `lake` of Iceberg tables in a PostgreSQL database, as JSON."""
    parts = urlsplit(dsn)
    uri = f"postgresql+psycopg2://{{login}}:{{password}}@{parts.hostname}:{parts.port}{parts.path}"
    return json.dumps(
        {
            "conn_type": "iceberg",
            "login": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            "schema": "lake",
            "extra": {"type": "sql", "uri": uri, "warehouse": f"file://{warehouse}"},
        }
    )


def airflow_url(settings: AirflowSettings) -> str:
    """Return the address at which people open Airflow."""
    return f"http://{LOOPBACK}:{settings.api_port}"


def passwords_file(home: Path) -> Path:
    """Return the file in which Airflow's simple authentication looks up passwords."""
    return home / "airflow" / "passwords.json"


def signing_folder(home: Path) -> Path:
    """Return the folder of the keys of certificates; the private one is for its owner alone."""
    return home / "signing"


def _makewhole(home: Path) -> dict[str, str]:
    return {
        "MAKEWHOLE_HOME": str(home),
        "MAKEWHOLE_STORAGE": str(home / "storage"),
        "MAKEWHOLE_JOURNAL_DSN": postgres(home / "postgres").dsn(JOURNAL_DATABASE),
        "MAKEWHOLE_PIPELINES": os.environ.get("MAKEWHOLE_PIPELINES", ""),
        KEY_VARIABLE: f"{FILE_PREFIX}{signing_folder(home) / PRIVATE_FILE}",
        PUBLIC_KEYS_VARIABLE: f"{FILE_PREFIX}{signing_folder(home) / PUBLIC_FILE}",
    }


def _connections(home: Path) -> dict[str, str]:
    spark = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    return {
        "AIRFLOW_CONN_LOCAL_KAFKA": connection_kafka(KafkaServer(home / "kafka").bootstrap),
        "AIRFLOW_CONN_LOCAL_POSTGRES": connection_postgres(postgres(home / "postgres").dsn(PEOPLES_DATABASE)),
        "AIRFLOW_CONN_LOCAL_LAKE": connection_lake(postgres(home / "postgres").dsn(PEOPLES_DATABASE), home / "lake"),
        "AIRFLOW_CONN_SPARK_DEFAULT": os.environ.get("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark)),
    }


def _airflow(home: Path, settings: AirflowSettings) -> dict[str, str]:
    url = airflow_url(settings)
    database = postgres(home / "postgres").dsn(AIRFLOW_DATABASE)
    return {
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(project_root() / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(project_root() / "plugins"),
        "AIRFLOW__CORE__FERNET_KEY": settings.fernet_key,
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in USERS.items()),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords_file(home)),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database.replace("postgresql://", "postgresql+psycopg2://", 1),
        "AIRFLOW__API__HOST": LOOPBACK,
        "AIRFLOW__API__PORT": str(settings.api_port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__SECRET_KEY": settings.secret_key,
        "AIRFLOW__API_AUTH__JWT_SECRET": settings.jwt_secret,
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "airflow" / "logs"),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(settings.worker_log_port),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(settings.trigger_log_port),
        **_SMALL,
        **{name: os.environ.get(name, seconds) for name, seconds in _SHORT_INTERVALS.items()},
    }


def _spark() -> dict[str, str]:
    """Return the variables by which `spark-submit` is found, with this Python on both its sides."""
    spec = find_spec("pyspark")
    programs = str(Path(sys.executable).parent)
    variables = {
        "PATH": os.pathsep.join([programs, os.environ.get("PATH", os.defpath)]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": LOOPBACK,
        "JDK_JAVA_OPTIONS": short_job_jvm(),
        "SPARK_LAUNCHER_OPTS": launcher_jvm(),
    }
    if spec and spec.origin:
        variables["SPARK_HOME"] = str(Path(spec.origin).parent)
    return variables
