"""Make sure that the Python workers of Spark run the code that sent them their tasks.

On a cluster they have makewhole from an archive or an installation of their own. Of another version, a task would be
read with fields missing or judged by other rules, and the report would be of both. Other versions of the libraries that
read and hash values may make other texts of them.
"""

import hashlib
import socket
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import makewhole
import makewhole_spark
from makewhole.model.errors import PermanentError

REMEDY = (
    "Make the archive of the workers' environment again from what the driver runs (docs/cluster.md), and start the "
    "task again"
)
LIBRARIES = (
    "aiokafka",
    "google-crc32c",
    "msgspec",
    "numba",
    "numpy",
    "polars",
    "polars-hash",
    "protobuf",
    "psycopg2-binary",
    "pyarrow",
)
"""The packages that read, decode, convert or hash values."""
LIBRARIES_OF_KINDS = ("pyiceberg", "pyiceberg-core")
"""Libraries among them that only some kinds of tables need: not every machine has them."""
_OF_WHEELS = ("_dags", "_jobs")


def versions_of(packages: Iterable[str]) -> dict[str, str | None]:
    """Return the installed version of each package; None: it is not installed."""
    return {package: _version_of(package) for package in packages}


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def code_digest() -> str:
    """Return the SHA-256 of makewhole's modules, by name and content, without the copies of DAG files and jobs that
    only a wheel has beside them, and of the versions of `LIBRARIES`."""
    digest = hashlib.sha256()
    for package, installed in versions_of(LIBRARIES).items():
        digest.update(f"{package}=={installed}\n".encode())
    for module in (makewhole, makewhole_spark):
        folder = Path(module.__path__[0])
        for path in sorted(folder.rglob("*.py")):
            if path.relative_to(folder).parts[0] in _OF_WHEELS:
                continue
            content = path.read_bytes()
            digest.update(f"{folder.name}/{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def require_same_code(wanted: str) -> None:
    """Refuse to go on with other code than the driver's, which has this digest.

    Raises:
        PermanentError: this process has other code.
    """
    if code_digest() != wanted:
        raise PermanentError(
            f"the Python workers on {socket.gethostname()} have another makewhole than the driver, or "
            f"other versions of its libraries. {REMEDY}"
        )
