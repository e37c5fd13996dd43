"""Provide Kafka's own jars: resolved by the Ivy that pyspark carries, verified by hash, kept in a cache."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from makewhole.model.errors import CorruptionError, PermanentError, TransientError

KAFKA_VERSION = "4.2.1"
_HASHES = Path(__file__).with_name("kafka_jars.sha256")
_RESOLVE_TIMEOUT_SECONDS = 600


def cache_root() -> Path:
    """Return `$MAKEWHOLE_CACHE`, or `makewhole` in the user's cache folder."""
    if configured := os.environ.get("MAKEWHOLE_CACHE"):
        return Path(configured).resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "makewhole"


def java() -> str:
    """Return the `java` command.

    Raises:
        PermanentError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    command = shutil.which("java", path=f"{home}/bin") if home else None
    command = command or shutil.which("java")
    if command is None:
        raise PermanentError("no Java found; install Java 17 (Debian: apt-get install openjdk-17-jre-headless)")
    return command


def expected_hashes() -> Mapping[str, str]:
    """Return file name to SHA-256 of every jar that belongs to this Kafka."""
    lines = (line.split() for line in _HASHES.read_text(encoding="ascii").splitlines())
    return {name: digest for digest, name in lines}


def kafka_libs() -> Path:
    """Return the folder with Kafka's jars; fill the cache first when it is empty. Safe to call from several processes.

    Raises:
        TransientError: the jars could not be resolved.
        CorruptionError: what was resolved is not what was expected.
    """
    libs = cache_root() / f"kafka-{KAFKA_VERSION}"
    if libs.is_dir():
        return libs
    with _locked(cache_root() / f"kafka-{KAFKA_VERSION}.lock"):
        if not libs.is_dir():
            _fill(libs)
    return libs


def verify(libs: Path) -> None:
    """Compare the jars in a folder with the committed hashes.

    Raises:
        CorruptionError: a jar is missing, is too many, or differs.
    """
    expected = expected_hashes()
    hashes = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in libs.glob("*.jar")}
    differing = sorted(name for name in expected.keys() | hashes.keys() if expected.get(name) != hashes.get(name))
    if differing:
        raise CorruptionError(
            f"Kafka's jars in {libs} are not the expected ones: {', '.join(differing)}; "
            "remove that folder and try again, and if it stays, do not use this registry"
        )


def _fill(libs: Path) -> None:
    """Resolve beside the final place and rename: the folder is complete, or it does not exist."""
    with tempfile.TemporaryDirectory(dir=libs.parent, prefix="resolving-") as work:
        resolved = Path(work) / "libs"
        _resolve(Path(work) / "ivy", resolved)
        verify(resolved)
        resolved.rename(libs)


def _resolve(ivy_cache: Path, target: Path) -> None:
    command = [java(), "-jar", str(_ivy_jar()), "-cache", str(ivy_cache)]
    command += ["-dependency", "org.apache.kafka", "kafka_2.13", KAFKA_VERSION, "-types", "jar", "bundle"]
    command += ["-retrieve", f"{target}/[artifact]-[revision](-[classifier]).[ext]"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_RESOLVE_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise TransientError("resolving Kafka's jars took more than ten minutes; check the network") from error
    if done.returncode != 0 or not target.is_dir():
        tail = "\n".join(done.stdout.splitlines()[-10:])
        raise TransientError(f"Kafka's jars could not be resolved; check the network and try again\n{tail}")


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    jars = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec and spec.origin else []
    if not jars:
        raise PermanentError("pyspark is not installed, and with it the Ivy that resolves Kafka; run `make install`")
    return jars[0]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
