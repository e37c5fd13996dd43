"""Write records that are one value as a whole: a text, or any bytes. They carry the region of an order, and its key."""

from tests.histories.shapes.formats import RecordFormat
from tests.world.orders import Order

CARRIED = "region"
"""The column that the whole of a value is compared with."""
_SETTINGS = {"columns": f"{{{CARRIED}: $.value}}"}


def in_bytes(order: Order) -> Order:
    r"""Return an order whose region is written as bytes are in a text: `\x4555`."""
    return {**order, CARRIED: rf"\x{order[CARRIED].encode().hex()}"}


TEXTS = RecordFormat(
    name="a text as a whole",
    value=lambda order: str(order[CARRIED]).encode(),
    key="kafka.key",
    settings={"value": "string", **_SETTINGS},
)
BYTES = RecordFormat(
    name="bytes as a whole",
    value=lambda order: bytes.fromhex(order[CARRIED].removeprefix(r"\x")),
    key="kafka.key",
    settings={"value": "bytes", **_SETTINGS},
)
WHOLE_FORMATS = (TEXTS, BYTES)
