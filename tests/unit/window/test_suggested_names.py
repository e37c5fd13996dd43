"""Test the names that are suggested for columns of a table."""

from makewhole.config.values import logical_name
from makewhole.window.opening.suggested_names import names_for


def test_only_columns_that_no_line_can_name_get_names_and_each_another_one() -> None:
    columns = {
        "amount": "amount",
        "_kafka_metadata.offset": "_kafka_metadata.offset",
        "_kafka_metadata.partition": "_kafka_metadata.partition",
        "other.partition": "other.partition",
        '"total"': "total",
        "Größe in m²": "Größe in m²",
        "9.9": "9.9",
        "b.b": "b.b",
        "x" * 80: "x" * 80,
    }

    names = names_for(columns, ["offset", "b"])

    assert names == {
        "_kafka_metadata.offset": "kafka_metadata_offset",
        "_kafka_metadata.partition": "partition",
        "other.partition": "other_partition",
        '"total"': "own_total",
        "Größe in m²": "Gr_e_in_m",
        "9.9": "own_9_9",
        "b.b": "b_b",
        "x" * 80: "x" * 50,
    }
    assert [logical_name(name) for name in names.values()] == list(names.values())
