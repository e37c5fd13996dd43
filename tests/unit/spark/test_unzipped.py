"""Test which of two equal libraries is imported: the installed one, and the zip file where there is no other."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

pytestmark = pytest.mark.unit

_PROGRAM = """if True:
    import sys
    from makewhole_spark.unzipped import prefer_installed_pyspark
    prefer_installed_pyspark()
    from importlib.util import find_spec
    print([".zip" in find_spec(name).origin for name in ("pyspark", "py4j")], [one for one in sys.path if "zip" in one])
"""


def _zips_first(folder: Path, *others: str) -> str:
    [py4j] = folder.glob("py4j-*-src.zip")
    path = [str(folder / "pyspark.zip"), str(py4j), *others, *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_zip_files_of_the_installed_pyspark_are_left_aside() -> None:
    answer = _zips_first(Path(pyspark.__file__).parent / "python" / "lib")
    assert answer.startswith("[False, False]")
    assert "pyspark.zip" not in answer
    assert "py4j" not in answer


def test_zip_files_are_taken_where_another_pyspark_would_be_without_them(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    answer = _zips_first(Path(pyspark.__file__).parent / "python" / "lib", str(tmp_path))
    assert answer.startswith("[True, True]")


def test_zip_files_of_another_place_are_taken(tmp_path: Path) -> None:
    """Spark of another version may be installed than the one that runs the job."""
    lib = tmp_path / "pyspark" / "python" / "lib"
    shutil.copytree(Path(pyspark.__file__).parent / "python" / "lib", lib)
    (tmp_path / "pyspark" / "__init__.py").touch()
    assert _zips_first(lib).startswith("[True, True]")
