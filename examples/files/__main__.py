"""Write a topic of flat JSON values into Parquet files: `python -m examples.files BOOTSTRAP TOPIC CONNECTION PATH`.

All columns are texts here; give `ExactWriter` a schema of your own. The connection is Airflow's, as makewhole has it.
"""

import sys

import pyarrow as pa
from confluent_kafka import Consumer

from examples.files.writer import ExactWriter
from makewhole.config.connections import from_environment
from makewhole.file_stores.open_store import file_store


def main() -> None:
    """Write until the end of the topic."""
    bootstrap, topic, connection, path, *columns = sys.argv[1:]
    client = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"files-{topic}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",  # records that were deleted before they were written are not skipped
            "enable.partition.eof": True,
        }
    )
    store = file_store(from_environment(connection), path)
    schema = pa.schema([pa.field(name, pa.string()) for name in columns])
    try:
        ExactWriter(client=client, store=store, topic=topic, schema=schema).write_to_end()
    finally:
        client.close()


if __name__ == "__main__":
    main()
