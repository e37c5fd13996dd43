"""Test the limits of plans at their border."""

import pytest

from makewhole.compensation.planning.draft import over_limits
from makewhole.model.pipeline import Limits

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("share", "window_keys", "most"), [(0.29, 100, 29), (0.07, 100, 7), (0.57, 100, 57)])
def test_a_share_is_the_number_that_was_written(share: float, window_keys: int, most: int) -> None:
    """As a binary fraction 0.29 of 100 is a little less than 29."""
    limits = Limits(actions=1_000, share=share, records_per_second=1)

    assert over_limits(limits, actions=most, keys=most, window_keys=window_keys) is None
    assert over_limits(limits, actions=most + 1, keys=most + 1, window_keys=window_keys) == (
        f"{most + 1} keys are more than the share of {share:g} of the window's {window_keys} keys; find out what broke "
        "before repairing it, then raise compensation.limits.share"
    )
