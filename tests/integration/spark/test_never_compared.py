"""Test columns that have no value at either end of a hop, as a name that the file misspells: nothing of them is
compared, and that is said until there is a value."""

import json
from collections.abc import Sequence

import pytest

from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.incidents.settlements import settled_by
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import Order, milliseconds, orders
from tests.world.pipeline_file import topic as topic_point
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

HOP = "raw→orders"


def describe(shop: ReconciledShop, columns: str) -> str:
    """Describe topic → topic → store, where the first hop compares these columns; return the first topic."""
    raw = shop.more_topics[0] if shop.more_topics else shop.add_topic()
    shop.describe(
        has_ledger=False,
        allow_empty=True,
        more_points={"raw": topic_point("log", raw, key="$.id")},
        more_hops=[{"from": "raw", "to": "orders", "compare": columns}],
    )
    return raw


def copied(shop: ReconciledShop, raw: str, made: Sequence[Order]) -> None:
    """Send orders to the first topic, to the second and into the store."""
    client = producer(shop.bootstrap)
    for order in made:
        client.produce(raw, value=json.dumps(order), timestamp=milliseconds(order["at"]))
    assert client.flush(30) == 0
    shop.send(made)
    shop.write("warehouse", [{name: order[name] for name in order if name != "note"} for order in made])


def said(shop: ReconciledShop, context: WindowContext) -> list[Incident]:
    with connect(shop.journal) as journal:
        return [
            incident
            for incident in incidents.of(journal, context.window)
            if incident.kind is IncidentKind.NEVER_COMPARED
        ]


def test_a_name_that_is_misspelt_at_both_ends_is_said_and_the_certificate_has_it(shop: ReconciledShop) -> None:
    raw = describe(shop, "{amuont: 'decimal(8,2)', region: string}")
    copied(shop, raw, orders(range(4)))
    context, closed = shop.whole_way()
    (incident,) = said(shop, context)
    assert incident.kind is IncidentKind.NEVER_COMPARED
    assert incident_sentence(incident) == (
        f"neither end of {HOP} has ever had a value of `amuont`, so that nothing of it was compared"
    )
    assert settled_by(incident).startswith("look whether `compare` has the name")
    assert closed.state is WindowState.CERTIFIED
    assert closed.certificate is not None
    limits = {limit["limit"]: limit for limit in closed.certificate.body["reach"]["cannot_exclude"]}
    assert (limits["never_compared"]["at"], limits["never_compared"]["count"]) == (HOP, 1)
    assert "never_valued" not in shop.manifests(context)["warehouse"]

    describe(shop, "{amount: 'decimal(8,2)', region: string}")
    again, _ = shop.whole_way()
    assert said(shop, again) == []


def test_a_field_that_had_a_value_in_a_window_before_is_not_said_again(shop: ReconciledShop) -> None:
    raw = describe(shop, "{note: string}")
    for day, has_note in enumerate([False, False, True, False]):
        made = orders(range(day * 10, day * 10 + 3), day)
        copied(shop, raw, [order | ({"note": "kept"} if has_note else {}) for order in made])
        context, closed = shop.whole_way(day)
        assert [incident.detail["columns"] for incident in said(shop, context)] == ([["note"]] if day < 2 else [])
        assert closed.state is WindowState.CERTIFIED


def test_one_end_with_a_value_is_compared_and_nothing_but_tombstones_says_nothing(shop: ReconciledShop) -> None:
    raw = describe(shop, "{note: string}")
    made = orders(range(3))
    client = producer(shop.bootstrap)
    for order in made:
        client.produce(raw, value=json.dumps(order | {"note": "x"}), timestamp=milliseconds(order["at"]))
    assert client.flush(30) == 0
    shop.send(made)
    shop.write("warehouse", made)
    context, _ = shop.whole_way()
    assert said(shop, context) == []
    assert shop.found(context, HOP) == {order["id"]: ("mismatched", "value_differs") for order in made}
    assert shop.manifests(context)["orders"]["never_valued"] == ["note"]
