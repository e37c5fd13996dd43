"""Provide jars of Maven: resolved by the Ivy that pyspark carries, verified by hash, kept in a cache."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from makewhole.config.extras import Extra
from makewhole.model.errors import CorruptionError, PermanentError, TransientError

Artifact = tuple[str, str, str]
"""Organisation, name, version."""
_RESOLVE_TIMEOUT_SECONDS = 600
_TYPES = ("jar", "bundle", "maven-plugin", "eclipse-plugin")
_WITH_DEPENDENCIES, _ALONE = "default", "master"


@dataclass(frozen=True, kw_only=True)
class JarFolder:
    """A folder of the cache with the jars of some artifacts, all of them or none.

    `title` says in messages whose jars they are. `hashes` is a file with the SHA-256 of each jar. Without
    `has_dependencies` there is one jar for each artifact, and the file may have hashes of others. `left_out` begins the
    names of jars that are resolved and not wanted. `module` is a file of Ivy's own that names the artifacts, where some
    have a classifier.
    """

    name: str
    title: str
    artifacts: tuple[Artifact, ...]
    hashes: Path
    has_dependencies: bool = True
    left_out: tuple[str, ...] = ()
    module: Path | None = None

    @property
    def place(self) -> Path:
        return cache_root() / self.name

    def provide(self) -> Path:
        """Return the folder; fill it first when it is not there. Safe to call from several processes.

        Raises:
            TransientError: the jars could not be resolved.
            CorruptionError: what was resolved is not what was expected.
        """
        if self.place.is_dir():
            return self.place
        with _locked(cache_root() / f"{self.name}.lock"):
            if not self.place.is_dir():
                self._fill()
        return self.place

    def verify(self, folder: Path) -> None:
        """Compare the jars in a folder with the expected hashes.

        Raises:
            CorruptionError: a jar is missing, is too many, or differs.
        """
        expected = self.expected_hashes()
        hashes = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in folder.glob("*.jar")}
        differing = sorted(name for name in expected.keys() | hashes.keys() if expected.get(name) != hashes.get(name))
        if differing:
            raise CorruptionError(
                f"{self.title} in {folder} are not the expected ones: {', '.join(differing)}; "
                "remove that folder and try again, and if it stays, do not use this registry"
            )

    def expected_hashes(self) -> Mapping[str, str]:
        """Return file name to SHA-256 of every jar that belongs into the folder."""
        lines = (line.split() for line in self.hashes.read_text(encoding="ascii").splitlines())
        known = {name: digest for digest, name in lines}
        if self.has_dependencies:
            return known
        names = (f"{artifact}-{version}.jar" for _, artifact, version in self.artifacts)
        return {name: known.get(name, "no hash is known") for name in names}

    def _fill(self) -> None:
        """Resolve beside the final place and rename: the folder is complete, or it does not exist."""
        with tempfile.TemporaryDirectory(dir=self.place.parent, prefix="resolving-") as work:
            resolved = Path(work) / "libs"
            wanted = [["-dependency", *artifact] for artifact in self.artifacts]
            for request in wanted if self.module is None else [["-ivy", str(self.module)]]:
                self._resolve(request, Path(work) / "ivy", resolved)
            for jar in resolved.glob("*.jar"):
                if jar.name.startswith(self.left_out):
                    jar.unlink()
            self.verify(resolved)
            resolved.rename(self.place)

    def _resolve(self, request: Sequence[str], ivy_cache: Path, target: Path) -> None:
        command = [java(), "-jar", str(_ivy_jar()), "-cache", str(ivy_cache), *request]
        command += ["-types", *_TYPES, "-confs", _WITH_DEPENDENCIES if self.has_dependencies else _ALONE]
        command += ["-retrieve", f"{target}/[artifact]-[revision](-[classifier]).[ext]"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_RESOLVE_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise TransientError(f"resolving {self.title} took more than ten minutes; check the network") from error
        if done.returncode != 0 or not target.is_dir():
            tail = "\n".join(done.stdout.splitlines()[-10:])
            raise TransientError(f"{self.title} could not be resolved; check the network and try again\n{tail}")


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


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    jars = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec and spec.origin else []
    if not jars:
        raise PermanentError(
            "pyspark is not installed, and with it the Ivy that resolves jars; run `make install` in a checkout, or "
            f"{Extra.DEMO.command}"
        )
    return jars[0]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
