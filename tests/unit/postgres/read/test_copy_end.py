"""Test that a COPY counts as whole only where everything says so."""

from typing import Any

import pytest
from psycopg2 import OperationalError

from makewhole.model.errors import TransientError
from makewhole.postgres.read.copy_end import CopyEnd

pytestmark = pytest.mark.unit

NO_SESSION: Any = None
BROKE_OFF = "reading ops.rows broke off after 7 rows; nothing of it was kept, try again"


def test_as_many_rows_as_were_sent_are_all() -> None:
    CopyEnd(table="ops.rows", sent_rows=7, arrived_rows=7, problem=None).require_whole(NO_SESSION)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ({"sent_rows": 8}, "ops.rows: 8 rows were sent and 7 arrived; try again"),
        ({"sent_rows": 6}, "ops.rows: 6 rows were sent and 7 arrived; try again"),
        ({"has_end": False}, BROKE_OFF),
        ({"problem": OSError("a pipe broke")}, BROKE_OFF),
        ({"problem": OperationalError("the server closed the connection")}, BROKE_OFF),
    ],
)
def test_what_is_short_or_broken_is_read_again(end: dict[str, Any], message: str) -> None:
    seven: dict[str, Any] = {"table": "ops.rows", "sent_rows": 7, "arrived_rows": 7, "problem": None}
    trailer = CopyEnd(**(seven | end))

    with pytest.raises(TransientError) as raised:
        trailer.require_whole(NO_SESSION)

    assert str(raised.value) == message
