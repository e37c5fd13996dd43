"""Start a session as a job does, wait for its workers, and print how many of them ran the first tasks."""

import threading
import time

from makewhole_spark.session_start import session_in_thread
from makewhole_spark.spark_carrier import SparkCarrier
from tests.integration.spark.test_python_workers import started_at

if __name__ == "__main__":
    spark = session_in_thread("a job whose workers are ready").session.result()
    for thread in threading.enumerate():
        if thread.name == "start session":
            thread.join()
    ready = time.clock_gettime(time.CLOCK_BOOTTIME)
    print("ready:", [moment < ready for moment in SparkCarrier(spark).carry(range(2), started_at)])
    spark.stop()
