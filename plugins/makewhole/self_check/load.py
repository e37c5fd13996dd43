"""Load the store of a self-check from its topic, as the loader of a pipeline of people's own does all the time."""

import json
from datetime import datetime
from decimal import Decimal

from makewhole.kafka.scratch_topic import ScratchRecord, unread
from makewhole.postgres.scratch_tables import ScratchRow
from makewhole.self_check.systems import ScratchSystems


def load(systems: ScratchSystems) -> int:
    """Write every record that the group of the loader has not read yet into the store, each key once; return their
    number. Killed between the two, it reads them again, and writes none twice.

    Raises:
        TransientError: a server does not answer.
    """
    with unread(systems.kafka, systems.topic, systems.settings.group) as records:
        rows = [_row(record) for record in records]
        if rows:
            systems.tables.load(rows)
    return len(rows)


def _row(record: ScratchRecord) -> ScratchRow:
    value = json.loads(record.value)
    sent_at = datetime.fromisoformat(value["sent_at"])
    return ScratchRow(key=str(value["id"]), amount=Decimal(value["amount"]), sent_at=sent_at)
