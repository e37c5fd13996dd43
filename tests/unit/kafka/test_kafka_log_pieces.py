"""Test how records are divided into messages on their way to Spark."""

import pyarrow as pa
import pytest

from makewhole_spark.kafka_log.source import in_pieces

pytestmark = pytest.mark.unit

MIB = 1 << 20


@pytest.mark.parametrize("size", [1, 1_000, 3 * MIB])
def test_pieces_are_the_whole_in_its_order_and_no_larger_than_they_must_be(size: int) -> None:
    records = 10 * MIB // (size + 8) + 3
    batch = pa.record_batch({"offset": range(records), "value": [bytes(size)] * records})

    pieces = list(in_pieces(batch))

    assert pa.Table.from_batches(pieces).equals(pa.Table.from_batches([batch]))
    assert all(piece.nbytes < 2.1 * MIB or len(piece) == 1 for piece in pieces)
    assert len(pieces) <= min(len(batch), 1 + batch.nbytes // MIB)


def test_no_record_is_no_message() -> None:
    assert not list(in_pieces(pa.record_batch({"offset": pa.array([], pa.int64())})))
