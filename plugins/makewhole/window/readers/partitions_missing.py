"""Find the partitions of a topic of which nothing has reached the end of a hop: its reader may not take them."""

from collections.abc import Mapping
from typing import Any

from makewhole.model.text import counted

PARTITIONS = "partitions"
"""The name under which they are kept beside the result of a hop."""


def partitions_missing(missing: Mapping[int, int], records: Mapping[int, int]) -> dict[str, Any] | None:
    """Return the partitions whose records are all of missing keys, where others have records that are not; None where
    there are none. `missing` and `records`: numbers of records by partition."""
    whole = {partition: number for partition, number in missing.items() if number >= records.get(partition, 0) > 0}
    others = {partition: number for partition, number in records.items() if partition not in whole and number}
    if not whole or not others:
        return None
    return {
        "whole": {str(partition): number for partition, number in sorted(whole.items())},
        "others": {"missing": sum(missing.get(partition, 0) for partition in others), "records": sum(others.values())},
    }


def partitions_sentence(source: str, target: str, partitions: Mapping[str, Any]) -> str:
    """Return it as one sentence without its full stop."""
    numbers, others = partitions["whole"], partitions["others"]
    names = f"partition{'' if len(numbers) == 1 else 's'} {', '.join(numbers)}"
    return (
        f"nothing of {names} of {source} is in {target} ({counted(sum(numbers.values()), 'record')}), and "
        f"{others['missing']:,} of {others['records']:,} records of the others are missing: does its reader take all "
        "partitions?"
    )
