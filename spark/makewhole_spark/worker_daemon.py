"""Be the process from which Spark forks its Python workers, with what all tasks need loaded before.

Each worker would take two seconds of a core to load it for itself, most of them for numba. polars is left to the
workers: it has threads from its import on, and threads do not live on in a process that is forked.
"""

import gc
import os
import sys
from contextlib import redirect_stdout, suppress
from importlib import import_module

from makewhole_spark.unzipped import prefer_installed_pyspark

MODULE = "makewhole_spark.worker_daemon"
"""Names this module to Spark, as `spark.python.daemon.module`."""
MORE_MODULES = "MAKEWHOLE_WORKER_MODULES"
"""The variable that names further modules, separated by commas: those of a library by which a point is read."""
_MODULES = (
    "pyarrow.compute",
    "pyarrow.fs",
    "pyarrow.json",
    "pyarrow.parquet",
    "makewhole.compute.indexed_keys.filters",
    "makewhole.config.pipeline_file",
    "makewhole.file_stores.local_store",
    "makewhole.journal.history.older_results",
    "makewhole.journal.key_index.runs",
    "makewhole.journal.plans",
    "makewhole.journal.replayed_positions",
    "makewhole.journal.results.handover_keys",
    "makewhole.journal.results.hop_results",
    "makewhole.journal.results.snapshot_manifests",
    "makewhole.journal.retention.erasures",
    "makewhole.journal.retention.removable",
    "makewhole.journal.windows",
    "makewhole.kafka.log.reader",
    "makewhole.model.actions",
    "makewhole.model.incidents.progress",
    "makewhole.model.incidents.sentences",
    "makewhole.postgres.read.copy_binary.render",
    "makewhole.signing.keys",
    "makewhole.tables.description",
    "makewhole.tables.effects",
    "makewhole.tables.identities",
    "makewhole.tables.in_doubt",
    "makewhole.tables.progress",
    "makewhole.tables.receipts",
    "makewhole.window.consumer_groups",
    "makewhole_spark.spark_carrier",
)


def load() -> None:
    """Load libraries, makewhole's modules without polars, and numba's machine code.

    What fails here is met again by the first task that needs it, which reports the error.
    """
    gc.disable()
    with redirect_stdout(sys.stderr), suppress(Exception):  # Spark reads the daemon's standard output
        _load_modules()
    gc.enable()
    gc.freeze()  # the workers share these pages, which a collection of garbage would write to


def _load_modules() -> None:
    for name in (*_MODULES, *filter(None, os.environ.get(MORE_MODULES, "").split(","))):
        import_module(name)

    import numpy as np

    from makewhole.kafka.log.records import decode
    from makewhole.native.digest_lines import sum_of_matched_lines
    from makewhole_spark.same_code import code_digest

    code_digest()
    none = np.zeros(0, dtype=np.uint64)
    sum_of_matched_lines(none, none, none)  # of all compiled functions, the first call is the slow one
    list(decode(0, []))


if __name__ == "__main__":
    prefer_installed_pyspark()

    from pyspark.daemon import manager

    load()
    manager()  # type: ignore[no-untyped-call]
