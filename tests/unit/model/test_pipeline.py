"""Test what a pipeline says of its parts."""

import pytest

from makewhole.model.errors import RefusedError
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline

pytestmark = pytest.mark.unit

REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)


def test_a_hop_that_the_file_has_lost_is_refused_with_what_to_do() -> None:
    hop = Hop(source="a", target="b", remedies=REPORT)
    shop = Pipeline(name="shop", points={}, hops=(hop,))

    assert shop.hop("a→b") is hop
    with pytest.raises(RefusedError, match=r"^pipeline shop has no hop b→c any more; put it back into its file until"):
        shop.hop("b→c")
