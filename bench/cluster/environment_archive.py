"""Make the archive of the Python environment that the workers of a cluster unpack, as docs/cluster.md says.

It holds makewhole and makewhole_spark from a wheel. Their third-party packages are those of this environment, by a
path: a copy of them has more than a gigabyte, and each executor would unpack its own. `whole_environment_archive` makes
that one, too.
"""

import os
import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

_CHECKOUT = Path(__file__).parents[2]
NAME = "environment"


def environment_archive(folder: Path) -> Path:
    """Build the wheel, and an environment with it; return the archive."""
    place = folder / NAME
    venv.create(place, with_pip=False, symlinks=True)
    packages = place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    with zipfile.ZipFile(_wheel(folder)) as wheel:
        wheel.extractall(packages)
    # A path in a .pth file is searched, and the .pth files in that path are not read: no checkout comes in by them.
    (packages / "third_party.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return _packed(place)


def whole_environment_archive(folder: Path) -> Path:
    """Build the wheel, and an environment with it and all locked packages; return the archive: 0.9 GB, in minutes."""
    place = folder / NAME
    uv, python = [sys.executable, "-m", "uv"], str(place / "bin" / "python")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for command in (
        [*uv, "venv", "--relocatable", "--python", version, str(place)],
        [*uv, "pip", "sync", "--python", python, "--require-hashes", str(_CHECKOUT / ".ci" / "requirements.lock")],
        [*uv, "pip", "install", "--python", python, "--no-deps", str(_wheel(folder))],
    ):
        subprocess.run(command, cwd=folder, check=True, timeout=1200)
    return _packed(place)


def _packed(place: Path) -> Path:
    # What numba compiles lies beside the sources: no executor has to do it again.
    compiled = [str(place / "bin" / "python"), "-m", "makewhole.stack.compile_ahead"]
    subprocess.run(compiled, cwd=place.parent, env={"PATH": os.defpath}, check=True, timeout=120)
    archive = place.with_name(f"{NAME}.tar.gz")
    with tarfile.open(archive, "w:gz", compresslevel=1) as made:
        made.add(place, arcname=".")
    return archive


def unpacking(archive: Path) -> dict[str, str]:
    """Return Spark's settings by which executors unpack the archive and run its Python."""
    return {"spark.archives": f"{archive}#{NAME}", "spark.pyspark.python": f"./{NAME}/bin/python"}


def _wheel(folder: Path) -> Path:
    """Build the wheel of this checkout."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "wheel")]
    built = subprocess.run(command, cwd=_CHECKOUT, env=dict(os.environ), capture_output=True, text=True, timeout=120)
    if built.returncode:
        raise RuntimeError(f"the wheel could not be built: {built.stderr}")
    [wheel] = (folder / "wheel").glob("*.whl")
    return wheel
