"""What Spark's Python workers carry from task to task."""

import sys
from zipimport import zipimporter


def forget_zips() -> None:
    """At the end of a task: spare the next one of this worker a third of a second.

    Spark has Python invalidate its caches before each task, and Python 3.11 then reads the whole directory of
    `pyspark.zip` again, once for every package in it that was imported from. Whatever is imported later finds the
    directory as it was read first.
    """
    for path in [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)]:
        del sys.path_importer_cache[path]
