"""Every interleaving of two runners that crash, stop, continue and lose their leases gives each chunk one effect.

The models are small and the search is complete. Breaking one rule of the protocol after the other shows that the search
finds violations.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.compensation.execution import kafka_model as kafka
from tests.unit.compensation.execution import postgres_model as postgres
from tests.unit.compensation.execution.interleavings import Model, SearchResult, search

pytestmark = pytest.mark.unit

TWO_EFFECTS = "no chunk has two effects"
JOURNAL_LEADS = "the journal never leads"
NEVER_DONE = "done can still be reached"


def test_in_kafka_every_chunk_takes_effect_once_and_the_plan_can_always_be_done() -> None:
    assert search(kafka.kafka_model(kafka.Rules())) == SearchResult(states=9_355)


def test_in_postgres_every_chunk_takes_effect_once_and_the_plan_can_always_be_done() -> None:
    assert search(postgres.postgres_model(postgres.Rules())) == SearchResult(states=9_928)


@pytest.mark.parametrize(
    ("rules", "broken"),
    [
        pytest.param(kafka.Rules(init_fences=False), TWO_EFFECTS, id="without the fence"),
        pytest.param(kafka.Rules(asks_after_init=False), TWO_EFFECTS, id="asking before the fence"),
        pytest.param(kafka.Rules(journal_follows=False), JOURNAL_LEADS, id="the journal first"),
        pytest.param(kafka.Rules(when_unknown=kafka.WhenUnknown.ABORT), TWO_EFFECTS, id="abort when unknown"),
        pytest.param(kafka.Rules(when_unknown=kafka.WhenUnknown.BELIEVE), TWO_EFFECTS, id="believe the abort"),
        pytest.param(kafka.Rules(marker_in_transaction=False), TWO_EFFECTS, id="the marker afterwards"),
        pytest.param(kafka.Rules(when_lost=kafka.WhenLost.NOTHING_DONE), TWO_EFFECTS, id="lost means nothing done"),
        pytest.param(kafka.Rules(when_lost=kafka.WhenLost.STOP), TWO_EFFECTS, id="lost stops what the journal saw"),
    ],
)
def test_in_kafka_each_rule_is_needed(rules: kafka.Rules, broken: str) -> None:
    assert search(kafka.kafka_model(rules)).broken == broken


@pytest.mark.parametrize(
    ("rules", "broken"),
    [
        pytest.param(postgres.Rules(receipt_with_rows=False), TWO_EFFECTS, id="the receipt afterwards"),
        pytest.param(postgres.Rules(journal_follows=False), JOURNAL_LEADS, id="the journal first"),
        pytest.param(
            postgres.Rules(locks_the_target=False, receipt_is_a_key=False), TWO_EFFECTS, id="neither lock nor key"
        ),
        pytest.param(
            postgres.Rules(checks_receipts_in_the_transaction=False, receipt_is_a_key=False),
            TWO_EFFECTS,
            id="asking before the lock, no key",
        ),
        pytest.param(postgres.Rules(server_ends_sessions=False), NEVER_DONE, id="sessions that are never ended"),
    ],
)
def test_in_postgres_each_rule_is_needed(rules: postgres.Rules, broken: str) -> None:
    assert search(postgres.postgres_model(rules)).broken == broken


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(kafka.kafka_model(kafka.Rules(guards_the_lease=False)), id="kafka: no lease at all"),
        pytest.param(postgres.postgres_model(postgres.Rules(receipt_is_a_key=False)), id="postgres: lock alone"),
        pytest.param(postgres.postgres_model(postgres.Rules(locks_the_target=False)), id="postgres: key alone"),
        pytest.param(postgres.postgres_model(postgres.Rules(older_epochs_give_way=False)), id="postgres: no epochs"),
    ],
)
def test_what_guards_twice_may_fail_once(model: Model[Any]) -> None:
    """The lease spares work and stops zombies early; effects are kept apart at the target itself, twice over."""
    assert search(model).broken == ""


def test_the_shortest_way_to_a_second_effect_is_reported() -> None:
    answer = search(kafka.kafka_model(kafka.Rules(when_unknown=kafka.WhenUnknown.BELIEVE)))
    assert answer.path[-6:] == (
        "A sends marker",
        "A sends commit, late",
        "A aborts",
        "A guards",
        "A sends records",
        "late commit of A arrives",
    )


def test_a_state_from_which_nothing_leads_on_is_found() -> None:
    def moves(number: int) -> Iterator[tuple[str, int]]:
        yield from {0: [("left", 1), ("right", 2)], 1: [("on", 3)], 2: [("stuck", 4)], 4: [("stuck", 4)]}.get(
            number, []
        )

    model = Model(start=0, moves=moves, laws={}, is_done=lambda number: number == 3)
    assert search(model) == SearchResult(states=5, broken=NEVER_DONE, path=("right",))
