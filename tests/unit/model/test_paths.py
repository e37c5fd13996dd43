"""Test that the path to a field has one spelling, whatever its names are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.config.values import UnfitError, key_part, version_part
from makewhole.model.places.record_paths import path_names, written_path

pytestmark = pytest.mark.unit


@given(names=st.lists(st.text(st.characters(min_codepoint=32), min_size=1, max_size=6), min_size=1, max_size=4))
def test_a_written_path_has_the_names_that_it_was_made_of(names: list[str]) -> None:
    written = written_path(names)
    assert path_names(written) == tuple(names)
    assert key_part(f"${written}") == f"${written}"
    assert key_part(f"kafka.key{written}") == f"kafka.key{written}"


@pytest.mark.parametrize(
    ("text", "read", "names"),
    [
        ("$.order.total-net", "$.order.total-net", ("order", "total-net")),
        ("$['of order'].total", "$.['of order'].total", ("of order", "total")),
        ("$.a['b.c']['d']", "$.a.['b.c'].d", ("a", "b.c", "d")),
        (r"$['it\'s a \\']", r"$.['it\'s a \\']", ("it's a \\",)),
        ("$['order']", "$.order", ("order",)),
        ("$.['of order']", "$.['of order']", ("of order",)),
    ],
)
def test_a_step_in_brackets_takes_any_name(text: str, read: str, names: tuple[str, ...]) -> None:
    assert (key_part(text), path_names(read)) == (read, names)


@pytest.mark.parametrize("text", ["$", "$.", "$['']", "$['a'", "$[a]", "$[0]", "$['a\nb']", "$['a'b']", "$.a b", "$a"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(UnfitError, match="is not a place in a record"):
        key_part(text)


def test_a_field_of_the_record_key_and_of_an_event_may_have_any_name() -> None:
    assert key_part("kafka.key['order id']") == "kafka.key.['order id']"
    assert version_part("event:source['my lsn']") == "event:source.['my lsn']"
