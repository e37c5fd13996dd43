"""Run a Spark job that hangs, as an application of its own: an argument says the exit code of its time limit."""

import logging
import sys
import time
from datetime import timedelta

from makewhole_spark.spark_carrier import SparkCarrier, spark_context
from makewhole_spark.time_limit import ending_process_after

if __name__ == "__main__":
    logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(name)s: %(message)s")
    spark = spark_context("a job that hangs")
    with ending_process_after(timedelta(seconds=3), "it hangs", int(sys.argv[1])):
        SparkCarrier(spark).carry([600], time.sleep)
