"""Test that long steps say how far they are, and short ones nothing."""

import logging

import pytest

from makewhole.compensation.count_log import CountLog

pytestmark = pytest.mark.unit


def test_the_count_is_logged_each_time_that_so_many_more_are_done(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    counted = CountLog(logging.getLogger("step"), "%d done", every=10)
    for more in (4, 5, 1, 3, 27, 0, 1):
        counted.add(more)
    assert caplog.messages == ["10 done", "40 done"]
    assert counted.count == 41
