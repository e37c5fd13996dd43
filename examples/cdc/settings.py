"""Find the example's broker and database, and define the few names its parts agree on."""

import os
from dataclasses import dataclass
from pathlib import Path

import psycopg2
from psycopg2 import extensions

from examples.cdc.lake import LakeTable

TOPIC, CONTROL_TOPIC = "shop.orders", "control-iceberg"
PARTITIONS = 4
SOURCE, SINK, LAKE_SINK = "outbox", "warehouse", "lake"
GROUP, LAKE_GROUP = f"connect-{SINK}", f"connect-{LAKE_SINK}"
LAKE_COORDINATOR = f"{LAKE_GROUP}-coord"
SLOT = "shop_outbox"
TO_TOPIC, TO_WAREHOUSE, TO_LAKE = "outbox→orders", "orders→warehouse", "orders→lake"


@dataclass(frozen=True, kw_only=True)
class Systems:
    """The addresses of the broker and the database, the folder of the Connect worker, and that of the lake (None: one
    within it)."""

    bootstrap: str
    dsn: str
    folder: Path
    lake_folder: Path | None = None

    @classmethod
    def of_environment(cls) -> "Systems":
        """Take them from the environment: a password has no place on a command line.

        Raises:
            SystemExit: a variable is missing.
        """
        try:
            names = ("CDC_BOOTSTRAP", "CDC_DSN", "CDC_FOLDER")
            bootstrap, dsn, folder = (os.environ[name] for name in names)
        except KeyError as absent:
            raise SystemExit(f"{absent.args[0]} is not set; `python -m examples.cdc demo` sets all three") from None
        lake = os.environ.get("CDC_LAKE")
        return cls(bootstrap=bootstrap, dsn=dsn, folder=Path(folder), lake_folder=Path(lake) if lake else None)

    @property
    def lake(self) -> LakeTable:
        """The lake, whose catalog is in the same database."""
        folder = self.lake_folder or self.folder / "lake"
        return LakeTable(dsn=self.dsn, folder=folder, control_topic=CONTROL_TOPIC)

    def database(self) -> extensions.connection:
        """Open a new connection, each statement of which commits by itself."""
        connection = psycopg2.connect(self.dsn, options="-c timezone=UTC", application_name="cdc")
        connection.autocommit = True
        return connection
