"""The next result is made in another thread, once, and an error of making it is raised when it is taken."""

from threading import Event, current_thread, main_thread

import pytest

from makewhole.compensation.execution.prefetch import Prefetch

pytestmark = pytest.mark.unit


def test_every_result_is_made_once_and_in_order_whether_it_was_started_or_not() -> None:
    made = []

    def make(number: int) -> str:
        made.append(number)
        return f"result {number}"

    with Prefetch(make, 5) as prefetch:
        assert prefetch.take(1) == "result 1"
        for number in (2, 2, 2):
            prefetch.start(number)
        assert [prefetch.take(number) for number in (2, 3)] == ["result 2", "result 3"]
        prefetch.start(4)
        assert prefetch.take(4) == "result 4"
        prefetch.start(5)
    assert made == [1, 2, 3, 4]


def test_a_result_is_made_while_the_caller_does_something_else() -> None:
    begun, may_end = Event(), Event()

    def make(_: int) -> bool:
        begun.set()
        assert may_end.wait(30)
        return current_thread() is not main_thread()

    with Prefetch(make, 2) as prefetch:
        prefetch.start(1)
        assert begun.wait(30)
        may_end.set()
        assert prefetch.take(1)


def test_an_error_is_raised_where_the_result_is_taken() -> None:
    def make(number: int) -> int:
        raise ValueError(f"result {number} is damaged")

    with Prefetch(make, 2) as prefetch:
        prefetch.start(0)
        prefetch.start(0)
        with pytest.raises(ValueError, match="result 0 is damaged"):
            prefetch.take(0)


def test_leaving_with_an_error_does_not_wait_for_what_was_not_started() -> None:
    made: list[int] = []
    with pytest.raises(KeyError), Prefetch(made.append, 9) as prefetch:
        prefetch.start(3)
        raise KeyError
    assert made in ([], [3])
