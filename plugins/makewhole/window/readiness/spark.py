"""Check the connection by which the jobs of Spark are submitted, and what a machine needs to submit them."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from makewhole.config.extras import Extra
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.shipped import shipped
from makewhole.window.readiness.mistakes import Readiness

SPARK_CONNECTION = "spark_default"
JOBS = ("snapshot", "reconcile", "validate", "publish")
_EXAMPLE = '{"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}'
_HOW = f"Write it as {_EXAMPLE}, or with the master of your cluster (docs/cluster.md)"
_MASTER = re.compile(r"yarn|local(\[.+\])?|local-cluster\[.+\]|(spark|k8s)://[^/].*")
_CLIENT = 'Write {"deploy-mode": "client"} into its extra: executors run on the cluster all the same'
_YARN_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_PYTHONS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def look_at_spark(readiness: Readiness, fields: Mapping[str, object] | None) -> None:
    """Check the connection of Spark: `fields` as Airflow has them (`conn_type`, `host`, `port`, `extra` as a mapping);
    None: there is none."""
    with readiness.asking(f"connection {SPARK_CONNECTION}", "Airflow connection"):
        problems = list(_of_connection(fields))
        if problems:
            raise ConfigurationError(problems)


def look_at_machine(readiness: Readiness, fields: Mapping[str, object] | None) -> None:
    """Check that this machine can submit jobs: Java, spark-submit, the files of the jobs, its Pythons, and, for the
    master that `fields` of the connection name, the settings of YARN."""
    with readiness.asking("Spark on this machine", "environment"):
        problems = [*_of_programs(), *_of_jobs(), *_of_pythons(), *_of_yarn(fields)]
        if problems:
            raise ConfigurationError(problems)


def _of_connection(fields: Mapping[str, object] | None) -> Iterator[Problem]:
    if fields is None:
        yield _problem(SPARK_CONNECTION, "is not there, and without it Spark is submitted to YARN", _HOW)
        return
    master, extra = _master(fields), _extra(fields)
    mode = str(extra.get("deploy-mode") or "client")
    if _MASTER.fullmatch(master) is None:
        yield _problem(SPARK_CONNECTION, f"names the master {master!r}, which is none of Spark's", _HOW)
    if mode not in ("client", "cluster"):
        yield _problem(f"{SPARK_CONNECTION} deploy-mode", f"is {mode!r}", _CLIENT)
    if mode == "cluster" and (why := _unfit_for_cluster(master)):
        yield _problem(f"{SPARK_CONNECTION} deploy-mode", f"is cluster, and {why}", _CLIENT)
    if "spark-home" in extra:
        yield _problem(f"{SPARK_CONNECTION} spark-home", "is refused by Airflow's operator", "Take it out of the extra")
    if master.startswith("k8s://") and not _is_installed("airflow.providers.cncf.kubernetes"):
        yield _problem(
            f"{SPARK_CONNECTION} host",
            "is a Kubernetes master, and Airflow's provider for Kubernetes is not installed here",
            "pip install apache-airflow-providers-cncf-kubernetes, or name another master",
        )


def _master(fields: Mapping[str, object]) -> str:
    """Return the master, made of the fields as Airflow's hook does it: one from a URI has its scheme as the type."""
    kind, host, port = str(fields.get("conn_type") or ""), str(fields.get("host") or ""), fields.get("port")
    is_whole = kind == "spark" and bool(host) and ("://" in host or not port)
    return (host if is_whole else f"{kind}://{host}") + (f":{port}" if port else "")


def _extra(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return the extra, which is JSON text or read already; one that cannot be read is none."""
    extra = fields.get("extra")
    if isinstance(extra, str):
        try:
            extra = json.loads(extra)
        except ValueError:
            extra = None
    return extra if isinstance(extra, Mapping) else {}


def _unfit_for_cluster(master: str) -> str | None:
    """Return why a driver cannot run on the cluster of a master; None: it can."""
    if master.startswith("local"):
        return f"the master {master} is this machine alone"
    if master == "yarn":
        return "Airflow's operator refuses that on YARN"
    if master.startswith("spark://"):
        return "Spark's own clusters run no driver in Python"
    return None


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _of_programs() -> Iterator[Problem]:
    home = os.environ.get("JAVA_HOME")
    is_java_there = bool(home and shutil.which("java", path=f"{home}/bin")) or shutil.which("java") is not None
    if not is_java_there:
        yield _problem("java", "is not found by this user", "Install Java 17, or set JAVA_HOME to it", "environment")
    if not _is_installed("pyspark"):
        yield _problem("pyspark", "is not installed", f"Run in this environment: {Extra.SPARK.command}", "environment")
    elif shutil.which("spark-submit") is None:
        remedy = f"Put the folder of the programs of this environment into PATH: {Path(sys.executable).parent}"
        yield _problem("spark-submit", "is not in PATH", remedy, "environment")


def _of_jobs() -> Iterator[Problem]:
    folder = shipped("spark/jobs")
    absent = [name for name in JOBS if not (folder / f"{name}.py").is_file()]
    if absent:
        found = f"has no job {', '.join(f'{name}.py' for name in absent)}"
        yield _problem(str(folder), found, "Install makewhole again: the wheel has them", "files")


def _of_yarn(fields: Mapping[str, object] | None) -> Iterator[Problem]:
    """Yield that Spark would not find YARN: it takes the folder from the environment alone, and refuses to begin."""
    if fields is None or _master(fields) != "yarn":
        return
    named = [variable for variable in _YARN_FOLDERS if os.environ.get(variable)]
    if not any(Path(os.environ[variable]).is_dir() for variable in named):
        place = " and ".join(f"{variable} is {os.environ[variable]}" for variable in named)
        found = (
            f"names the master yarn; here {place}, and there is no such folder"
            if named
            else ("names the master yarn, and neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set here")
        )
        remedy = f"Set HADOOP_CONF_DIR of the workers to the folder with yarn-site.xml. Without a cluster: {_EXAMPLE}"
        yield _problem(SPARK_CONNECTION, found, remedy)


def _of_pythons() -> Iterator[Problem]:
    """Yield the Pythons that Spark would start its workers with and that are none, or not of this version: they unpack
    what this one has packed."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    for variable in _PYTHONS:
        named = os.environ.get(variable, "").strip()
        if not named:
            continue
        version = _version_of(named)
        if version != own:
            found = f"is {named}, which " + (f"is Python {version}" if version else "is no Python here")
            remedy = f"Set it to a Python {own} that has makewhole: {sys.executable}"
            yield _problem(variable, found, remedy, "environment")


def _version_of(python: str) -> str | None:
    try:
        answer = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def _problem(path: str, found: str, remedy: str, file: str = "Airflow connection") -> Problem:
    return Problem(file=file, path=path, found=found, remedy=remedy)
