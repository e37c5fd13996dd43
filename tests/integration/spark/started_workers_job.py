"""Start a session as a job does, wait for its workers, and print how many of them ran the first tasks, and how many
megabytes of a frame that polars freed a worker still holds."""

import threading
import time

from makewhole_spark.spark_carrier import SparkCarrier
from makewhole_spark.spark_start import STARTING, spark_in_thread
from tests.integration.spark.test_python_workers import kept_megabytes, started_at

if __name__ == "__main__":
    starting = spark_in_thread("a job whose workers are ready")
    starting.worker_modules.set_result(())
    spark = starting.context.result()
    for thread in threading.enumerate():
        if thread.name == STARTING:
            thread.join()
    ready = time.clock_gettime(time.CLOCK_BOOTTIME)
    print("ready:", [moment < ready for moment in SparkCarrier(spark).carry(range(2), started_at)])
    print("kept:", SparkCarrier(spark).carry([200], kept_megabytes)[0] > 150)
    spark.stop()
