"""Hold both kernels to an oracle that looks at one key at a time, and to what they have in common."""

import random
from types import ModuleType
from typing import Any, NamedTuple

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.frames import JUDGED, KEYS, TOPIC_KEYS, empty
from makewhole.compute.judge.judge_copies import BucketInput, judge
from makewhole.compute.judge.judge_versions import judge_versions
from makewhole.model.errors import CorruptionError
from tests.unit.compute.judge import event_oracle, version_oracle
from tests.unit.compute.judge.bucket_input import HOP, Kernel, copies, one, verdict_by_key
from tests.world.examples import examples

pytestmark = pytest.mark.unit


class Judging(NamedTuple):
    """A kernel with the module that has its oracle and draws situations for it."""

    kernel: Kernel
    oracle: ModuleType


BOTH = pytest.mark.parametrize(
    "judging",
    [
        pytest.param(Judging(judge, event_oracle), id="events"),
        pytest.param(Judging(judge_versions, version_oracle), id="versions"),
    ],
)


@BOTH
@settings(max_examples=examples(400, share=10), deadline=None)
@given(st.data())
def test_every_verdict_is_the_one_of_the_oracle(judging: Judging, data: st.DataObject) -> None:
    oracle = judging.oracle
    known: dict[str, Any] = data.draw(oracle.situations())
    expected = {key: verdict for key in oracle.NAMES if (verdict := oracle.oracle(key, known)) is not None}

    assert verdict_by_key(judging.kernel, oracle.bucket_of(known)) == expected


@BOTH
@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(judging: Judging, data: st.DataObject, chance: random.Random) -> None:
    known: dict[str, Any] = data.draw(judging.oracle.situations())
    first = judging.kernel(judging.oracle.bucket_of(known))
    shuffled = {
        name: chance.sample(value, len(value)) if isinstance(value, list) else value for name, value in known.items()
    }

    assert dict(first.schema) == JUDGED
    assert judging.kernel(judging.oracle.bucket_of(shuffled)).equals(first)


@BOTH
def test_nothing_gives_nothing(judging: Judging) -> None:
    assert judging.kernel(BucketInput(hop=HOP, source=empty(KEYS), target=empty(TOPIC_KEYS))).is_empty()


@BOTH
def test_two_keys_with_one_hash_stop_everything(judging: Judging) -> None:
    source = copies([one("a", 0)], True)
    forged = source.with_columns(pl.lit("b").alias("key"))

    with pytest.raises(CorruptionError, match="two different business keys share one 128-bit hash"):
        judging.kernel(BucketInput(hop=HOP, source=source, target=forged))
