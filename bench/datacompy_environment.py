"""Provide the Python that datacompy runs in: it wants an older pandas and an older polars than makewhole.

An environment of its own, made by uv from a lock with hashes at the first use, and kept in the cache.
"""

import hashlib
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from makewhole.stack.maven_jars import cache_root

LOCK = Path(__file__).with_name("datacompy.lock")
_TIMEOUT_SECONDS = 900


def datacompy_python(lock: Path = LOCK) -> Path:
    """Return the `python` of the environment that a lock describes; make it first where there is none.

    Raises:
        RuntimeError: it could not be made.
    """
    folder = environment_folder(lock)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="installing-") as work:
            made = Path(work) / "environment"
            _uv("venv", "--python", sys.executable, str(made))
            python = str(made / "bin" / "python")
            _uv("pip", "sync", "--compile-bytecode", "--require-hashes", "--python", python, str(lock))
            made.rename(folder)
    return folder / "bin" / "python"


def environment_folder(lock: Path = LOCK) -> Path:
    """Return the folder of the cache where the environment of a lock is, or will be: another lock has another one."""
    described = lock.read_bytes() + platform.python_version().encode()
    return cache_root() / f"datacompy-{hashlib.sha256(described).hexdigest()[:16]}"


def locked_version(package: str) -> str:
    """Return the version of a package in the lock."""
    [version] = re.findall(rf"^{re.escape(package)}==(\S+)", LOCK.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return str(version)


def _uv(*arguments: str) -> None:
    command = [str(Path(sys.executable).with_name("uv")), "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS)
    if done.returncode:
        raise RuntimeError(f"datacompy's environment could not be made; check the network and try again\n{done.stderr}")
