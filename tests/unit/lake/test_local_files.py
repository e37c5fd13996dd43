"""Test the files that a step works with."""

import pytest

from makewhole.lake.local_files import BatchFile, ObjectFile

pytestmark = pytest.mark.unit


def test_objects_are_read_and_added_in_any_order() -> None:
    with ObjectFile() as file:
        places = [file.add({"n": number, "text": "x" * (number * 997 % 20_000)}) for number in range(50)]
        assert file.read(places[7])["n"] == 7
        places.append(file.add({"n": 50, "text": "behind a read"}))
        places.append(file.add({"n": 51, "text": "behind an object"}))
        assert [file.read(place)["n"] for place in reversed(places)] == list(range(51, -1, -1))
        assert file.read(places[51]) == {"n": 51, "text": "behind an object"}


def test_lists_are_read_any_number_of_times_while_more_are_added() -> None:
    with BatchFile[int]() as file:
        file.add([1, 2])
        seen = []
        for batch in file:
            seen.append(batch)
            if len(seen) < 3:
                file.add([len(seen)])
        assert seen == [[1, 2], [1], [2]]
        assert list(file) == seen
