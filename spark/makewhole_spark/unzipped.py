"""Import pyspark from where it is installed, and not from its zip file, whose modules each process compiles anew."""

import sys
from pathlib import Path

_ZIP = "pyspark.zip"


def prefer_installed_pyspark() -> None:
    """Take the zip files that Spark puts on the path off it, where they lie in an installed pyspark that is on it, too:
    then they are the same. To be called before pyspark is imported.

    Two seconds of a core are saved where all of pyspark is imported, as Great Expectations does.
    """
    folders = {str(Path(entry).resolve()) for entry in sys.path if not entry.endswith(".zip")}
    for entry in [one for one in sys.path if one.endswith(f"/{_ZIP}")]:
        lib = Path(entry).resolve().parent
        installed = lib.parent.parent
        if installed.name == "pyspark" and (installed / "__init__.py").is_file() and str(installed.parent) in folders:
            same = {entry, *(one for one in sys.path if _is_installed_py4j(Path(one).resolve(), lib))}
            sys.path[:] = [one for one in sys.path if one not in same]


def _is_installed_py4j(entry: Path, lib: Path) -> bool:
    """Tell whether this is the zip file of py4j beside that of pyspark, and its version is installed beside pyspark."""
    version = entry.name.removeprefix("py4j-").removesuffix("-src.zip")
    return entry.parent == lib and (lib.parent.parent.parent / f"py4j-{version}.dist-info").is_dir()
