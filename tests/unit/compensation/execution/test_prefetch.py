"""The next thing is made beside the one before, once, and what goes wrong with it is said in its turn."""

from threading import Event, current_thread, main_thread

import pytest

from makewhole.compensation.execution.prefetch import Prefetch

pytestmark = pytest.mark.unit


def test_everything_is_made_once_and_in_order_whether_it_was_begun_or_not() -> None:
    made = []

    def make(number: int) -> str:
        made.append(number)
        return f"thing {number}"

    with Prefetch(make, 5) as ahead:
        assert ahead.take(1) == "thing 1"
        for number in (2, 2, 2):
            ahead.start(number)
        assert [ahead.take(number) for number in (2, 3)] == ["thing 2", "thing 3"]
        ahead.start(4)
        assert ahead.take(4) == "thing 4"
        ahead.start(5)
    assert made == [1, 2, 3, 4]


def test_it_is_made_while_the_caller_does_something_else() -> None:
    begun, may_end = Event(), Event()

    def make(_: int) -> bool:
        begun.set()
        assert may_end.wait(30)
        return current_thread() is not main_thread()

    with Prefetch(make, 2) as ahead:
        ahead.start(1)
        assert begun.wait(30)
        may_end.set()
        assert ahead.take(1)


def test_what_went_wrong_is_raised_where_the_thing_is_taken() -> None:
    def make(number: int) -> int:
        raise ValueError(f"thing {number} is damaged")

    with Prefetch(make, 2) as ahead:
        ahead.start(0)
        ahead.start(0)
        with pytest.raises(ValueError, match="thing 0 is damaged"):
            ahead.take(0)


def test_leaving_with_an_error_does_not_wait_for_what_was_not_begun() -> None:
    made = []
    with pytest.raises(KeyError), Prefetch(made.append, 9) as ahead:
        ahead.start(3)
        raise KeyError
    assert made in ([], [3])
