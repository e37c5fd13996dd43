"""Import pyspark from where it is installed, and not from its zip file, whose modules each process compiles again."""

import sys
from pathlib import Path

_ZIP = "pyspark.zip"


def prefer_installed_pyspark() -> None:
    """Take the zip files that Spark puts on the path off it, where they lie in the installed pyspark that is imported
    then: it is the same. To be called before pyspark is imported.

    A second of a core is saved where all of pyspark is imported, as Great Expectations does.
    """
    folders = (Path(entry).resolve() / "pyspark" for entry in sys.path if not entry.endswith(".zip"))
    installed = next((folder for folder in folders if (folder / "__init__.py").is_file()), None)
    for entry in [path for path in sys.path if path.endswith(f"/{_ZIP}")]:
        lib = Path(entry).resolve().parent
        if lib.parent.parent == installed:
            same = {entry, *(path for path in sys.path if _is_installed_py4j(Path(path).resolve(), lib))}
            sys.path[:] = [path for path in sys.path if path not in same]


def _is_installed_py4j(entry: Path, lib: Path) -> bool:
    """Return whether this is the zip file of py4j beside that of pyspark, and its version is installed beside
    pyspark."""
    version = entry.name.removeprefix("py4j-").removesuffix("-src.zip")
    return entry.parent == lib and (lib.parent.parent.parent / f"py4j-{version}.dist-info").is_dir()
