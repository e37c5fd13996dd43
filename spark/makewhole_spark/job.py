"""Run a job's entry point: arguments, session, journal, and an exit code that says whether to try again."""

import argparse
import logging
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.model.errors import DEFECTS, MakewholeError, PermanentError
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext, window_context
from makewhole_spark.carrier import session

logger = logging.getLogger("makewhole")

EXIT_TRANSIENT, EXIT_PERMANENT = 1, 64


@dataclass(frozen=True, kw_only=True)
class Job:
    """A running job of one revision of a window."""

    spark: SparkSession
    journal: PgConnection
    context: WindowContext


def main(name: str, run: Callable[[Job], str]) -> None:
    """Parse the arguments, build the session, run, and exit: 0, or 1 (try again), or 64 (do not try again)."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stdout)
    for noisy in ("py4j", "great_expectations"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    arguments = argparse.ArgumentParser(description=name)
    arguments.add_argument("--pipeline", required=True)
    arguments.add_argument("--window", required=True, type=int)
    arguments.add_argument("--revision", required=True, type=int)
    wanted = arguments.parse_args()
    try:
        with connect() as journal:
            context = window_context(windows.load(journal, wanted.pipeline, wanted.window, wanted.revision))
            journal.commit()  # nothing is held open there while Spark starts
            spark = session(f"{name}: {context.window.label}")
            spark.sparkContext.setLogLevel("ERROR")
            logger.info("%s: %s", context.window.label, run(Job(spark=spark, journal=journal, context=context)))
            spark.stop()
    except MakewholeError as error:
        logger.error("%s", error)
        sys.exit(EXIT_PERMANENT if isinstance(error, PermanentError) else EXIT_TRANSIENT)
    except DEFECTS as error:
        traceback.print_exc()
        logger.error(
            "a defect (%s), which trying again does not mend; report it with the lines above", type(error).__name__
        )
        sys.exit(EXIT_PERMANENT)
