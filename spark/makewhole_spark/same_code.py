"""Make sure that the Python workers of Spark run the code that sent them their tasks.

On a cluster they have makewhole from an archive or an installation of their own. Of another version, a task would be
read with fields missing or judged by other rules, and the report would be of both.
"""

import hashlib
import socket
from functools import cache
from pathlib import Path

import makewhole
import makewhole_spark
from makewhole.model.errors import PermanentError

REMEDY = (
    "Make the archive of the workers' environment again from what the driver runs (docs/cluster.md), and start the "
    "task again"
)
_OF_WHEELS = ("_dags", "_jobs")


@cache
def code_digest() -> str:
    """Return the SHA-256 of makewhole's modules, by name and content, without the copies of DAG files and jobs that
    only a wheel has beside them."""
    digest = hashlib.sha256()
    for package in (makewhole, makewhole_spark):
        folder = Path(package.__path__[0])
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
            f"the Python workers on {socket.gethostname()} have another makewhole than the driver. {REMEDY}"
        )
