"""Check what `makewhole windows --window` says of the readers of topics."""

from io import StringIO

import pytest
from rich.console import Console

from makewhole.cli.report import show_readers

pytestmark = pytest.mark.unit


def test_readers_are_described_hop_by_hop_where_anything_is_known() -> None:
    ends = {"from": "orders", "to": "copies"}
    copier = {"group": "g", "within": 3, "outside": 0}
    partitions = {"whole": {"1": 25}, "others": {"missing": 0, "records": 30}}
    hops = [{**ends, "copier": copier, "partitions": partitions}, {"from": "outbox", "to": "orders"}]
    out = StringIO()

    show_readers(Console(file=out, width=300), [{"window": 4, "hops": hops}])

    assert out.getvalue().splitlines() == [
        "window 4: orders→copies: group `g` commits its offsets in its transactions (3 commits known)",
        "window 4: orders→copies: nothing of partition 1 of orders is in copies (25 records), and 0 of 30 records of "
        "the others are missing: does its reader take all partitions?",
    ]
