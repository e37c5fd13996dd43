"""Test keys that cannot be read any more: undecidable where they could be there, missing where not, judged again."""

import pytest

from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

EXPIRED = ("undecidable", "expired")


def pretend(
    shop: ReconciledShop, context: WindowContext, kind: IncidentKind, lo: int, hi: int, **detail: object
) -> None:
    """Write an incident as if the log had been found so: one broker alone truncates nothing."""
    topic_id = context.window.ranges["orders"][0].topic_id
    incident = Incident(
        kind=kind, point="orders", topic=shop.topic, topic_id=topic_id, partition=0, lo=lo, hi=hi, detail=detail
    )
    with connect(shop.journal) as journal:
        incidents.put(journal, context.window, [incident])


def test_keys_and_rows_whose_record_may_have_expired_are_undecidable_and_never_missing(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made, unsent=made[8:9])
    context = shop.open()
    shop.delete_records({0: 4})
    shop.judge(context)
    shop.validate(context)

    expired = dict.fromkeys(("O0", "O1", "O2", "O3"), EXPIRED)
    assert shop.found(context, LEDGER_HOP) == expired | {"O8": EXPIRED}
    assert shop.found(context, STORE_HOP) == expired
    counts = shop.counts(context, STORE_HOP)
    assert (counts.matched, counts.undecidable, counts.source_keys, counts.unexpected) == (5, 4, 5, 0)
    assert shop.certify(context).state is WindowState.NOT_KNOWN

    later = orders(range(100, 105), 1)
    shop.trade(later, unsent=later[:1])
    second, closed = shop.whole_way(1)
    assert shop.found(second, LEDGER_HOP) == {"O100": ("missing", "never_produced")}
    assert shop.found(second, STORE_HOP) == {}
    assert closed.state is WindowState.GAPS


def test_a_row_that_came_long_after_its_record_may_be_of_one_that_expired(shop: ReconciledShop) -> None:
    """As long as `late` and `pending.max_age` allow. What comes later than that is of no record."""
    shop.describe(late="6h", max_age="18h", compensation={"limits": "{share: 1.0}", "unexpected": "quarantine"})
    made = orders(range(10))
    shop.trade(made)
    context = shop.open()
    shop.delete_records({0: 4})
    shop.judge(context)
    shop.validate(context)
    shop.certify(context)
    shop.trade(orders(range(100, 105), 1))
    shop.write("warehouse", orders([177], 1))
    second, closed = shop.whole_way(1)
    assert shop.found(second, STORE_HOP) == {"O177": EXPIRED}
    assert closed.state is WindowState.NOT_KNOWN

    shop.trade(orders(range(200, 205), 2))
    shop.write("warehouse", orders([277], 2))
    third, closed = shop.whole_way(2)
    assert shop.found(third, STORE_HOP) == {"O277": ("unexpected", "not_in_source")}
    assert closed.state is WindowState.GAPS


def test_a_window_that_is_judged_again_lacks_what_a_later_one_could_not_read(shop: ReconciledShop) -> None:
    """By its producer's clock a record was of the day after its rows: the first window found it in the log's tail."""
    shop.describe(allow_empty=True)
    (made,) = orders([5])
    shop.write("outbox", [made])
    shop.write("warehouse", [made])
    shop.send([{**made, "at": orders([5], 1)[0]["at"]}])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.delete_records({0: 1})
    shop.trade(orders(range(100, 105), 1))
    assert shop.whole_way(1)[1].state is WindowState.NOT_KNOWN

    again, closed = shop.whole_way()

    assert (again.window.revision, closed.state) == (2, WindowState.NOT_KNOWN)
    assert [shop.found(again, hop) for hop in (LEDGER_HOP, STORE_HOP)] == [{"O5": EXPIRED}, {"O5": EXPIRED}]


def test_a_row_may_have_its_value_from_a_record_that_expired(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made)
    shop.send([{**made[0], "amount": "77.70"}])
    context = shop.open()
    shop.delete_records({0: 4})
    shop.judge(context)

    assert shop.found(context, STORE_HOP)["O0"] == EXPIRED
    assert shop.counts(context, STORE_HOP).mismatched == 0


def test_a_record_that_differs_from_its_ledger_may_not_be_the_only_one(shop: ReconciledShop) -> None:
    """The right one may have expired, and been consumed before."""
    made = orders(range(6))
    shop.trade(made)
    shop.send([{**made[2], "amount": "9.99"}, {**made[5], "amount": "9.99"}])
    context = shop.open()
    shop.delete_records({0: 3})
    shop.judge(context)

    verdicts = shop.found(context, LEDGER_HOP)

    assert verdicts == dict.fromkeys(("O0", "O1", "O2"), EXPIRED) | {"O5": ("duplicate", "retry_without_idempotence")}


def test_a_record_of_another_value_may_follow_one_that_expired(shop: ReconciledShop) -> None:
    """The window of the ledger row saw the first one in the rest of the log, and the window that has it could not read
    it. Which of two rows is right is not known: none is moved aside."""
    shop.describe(compensation={"limits": "{share: 1.0}", "duplicate": "quarantine"})
    made = orders(range(10))
    shop.trade(made, unsent=made[9:])
    first = shop.open()
    shop.send(made[9:])
    shop.write("warehouse", made[9:])
    shop.judge(first)
    shop.trade(orders(range(100, 105), 1))
    second = shop.open(1)
    shop.delete_records({0: 10})
    shop.judge(second)
    wrong = [{**order, "amount": "0.01"} for order in orders([9], 2)]
    shop.send(wrong)
    shop.write("warehouse", wrong)

    third, closed = shop.whole_way(2)

    assert [shop.found(window, LEDGER_HOP) for window in (first, second, third)] == [{}, {}, {"O9": EXPIRED}]
    assert shop.found(third, STORE_HOP) == {"O9": ("duplicate", "written_before_committed")}
    assert shop.counts(third, LEDGER_HOP).undecidable == 1
    assert closed.state is WindowState.GAPS


def test_a_ledger_row_that_came_late_may_have_had_its_record_in_the_day_that_is_partial(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made[:8])
    context = shop.open()
    shop.delete_records({0: 4})
    shop.judge(context)
    shop.write("outbox", made[8:])
    later = orders(range(100, 105), 1)
    shop.trade(later, unsent=later[:1])

    second, _ = shop.whole_way(1)

    assert shop.found(second, LEDGER_HOP) == {
        "O8": EXPIRED,
        "O9": EXPIRED,
        "O100": ("missing", "never_produced"),
    }


def test_truncated_keys_are_judged_again_once_and_their_copies_count_no_more(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.send([{**made[6], "at": orders([6], 1)[0]["at"]}, {**made[7], "at": orders([7], 1)[0]["at"]}])
    shop.trade(orders(range(100, 105), 1))
    second = shop.open(1)
    pretend(shop, second, IncidentKind.TRUNCATED, 7, 10, before_it_was_read=False, lineage=0)
    shop.send([{**made[9], "at": orders([9], 2)[0]["at"]}])

    shop.judge(second)

    assert shop.found(second, LEDGER_HOP) == {
        "O6": ("duplicate", "retry_without_idempotence"),
        "O8": ("missing", "truncated"),
    }
    counts = shop.counts(second, LEDGER_HOP)
    assert (counts.source_keys, counts.matched) == (8, 7)
    evidence = shop.evidence(second, LEDGER_HOP, "O8")
    assert (evidence["values"], evidence["truncated"][0]["lo"]) == ({"amount": "8.50"}, 7)
    with connect(shop.journal) as journal:
        (cut,) = [
            incident for incident in incidents.of(journal, second.window) if incident.kind is IncidentKind.TRUNCATED
        ]
    assert (cut.detail["keys"], cut.detail["seen_again"]) == (3, 1)

    shop.validate(second)
    shop.certify(second)
    shop.send([{**made[8], "at": orders([8], 2)[0]["at"]}])
    shop.trade(orders(range(200, 205), 2))
    third, _ = shop.whole_way(2)
    assert shop.found(third, LEDGER_HOP) == {}


def test_a_row_that_no_record_explains_may_be_the_only_copy_left_of_a_log_that_was_cut_off(
    shop: ReconciledShop,
) -> None:
    shop.trade(orders(range(5)))
    shop.whole_way()
    shop.trade(orders(range(100, 105), 1))
    shop.write("warehouse", orders([77], 1))
    second = shop.open(1)
    pretend(shop, second, IncidentKind.TRUNCATED, 4, 5, before_it_was_read=False, lineage=0)

    shop.judge(second)

    assert shop.found(second, STORE_HOP) == {"O77": ("undecidable", "truncated")}
    assert shop.counts(second, STORE_HOP).undecidable == 1


def test_what_a_topic_held_that_was_made_again_is_known_and_no_first_copy_of_a_duplicate(shop: ReconciledShop) -> None:
    made = orders(range(5))
    shop.trade(made)
    shop.whole_way()
    shop.make_topic_again()
    later = orders(range(100, 105), 1)
    shop.send([{**order, "at": later[0]["at"]} for order in made[:3]])
    shop.trade(later, unsent=later[4:])
    shop.write("warehouse", orders([77], 1))

    context, closed = shop.whole_way(1)

    assert shop.found(context, LEDGER_HOP) == {"O104": ("missing", "topic_recreated")}
    assert shop.found(context, STORE_HOP) == {"O77": ("undecidable", "topic_recreated")}
    assert closed.state is WindowState.GAPS


def test_a_key_that_is_not_in_a_log_whose_leader_changed_may_have_gone_with_the_old_one(shop: ReconciledShop) -> None:
    made = orders(range(5))
    shop.trade(made, unsent=made[4:])
    context = shop.open()
    pretend(shop, context, IncidentKind.LEADER_CHANGED, 2, 4, epochs=[[0, 2], [1, 4]], before=None)

    shop.judge(context)

    assert shop.found(context, LEDGER_HOP) == {"O4": ("missing", "leader_changed")}
    (changed,) = shop.evidence(context, LEDGER_HOP, "O4")["leader_changes"]
    assert changed == {"partition": 0, "lo": 2, "hi": 4, "epochs": [[0, 2], [1, 4]], "before": None}


def test_a_key_behind_an_open_transaction_names_it_and_since_when(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made[:8])
    shop.write("outbox", made[8:])
    transaction = shop.begin_transaction(made[8:9])
    shop.send(made[9:])

    context, _ = shop.whole_way()

    assert shop.found(context, LEDGER_HOP) == dict.fromkeys(("O8", "O9"), ("pending", "in_flight"))
    held = shop.evidence(context, LEDGER_HOP, "O9")
    assert held["open"] == ["0:9"]
    (open_transaction,) = held["transactions"]
    assert (open_transaction["first_offset"], open_transaction["is_hanging"]) == (8, False)
    assert open_transaction["producer_id"] >= 0
    assert open_transaction["since"].startswith("2025-03-01T00:08")
    transaction.abort_transaction(30)


def test_a_finding_carries_what_the_numbering_of_its_producers_says(shop: ReconciledShop) -> None:
    made = orders(range(6))
    shop.write("outbox", made)
    shop.send(made, settings={"enable.idempotence": True})
    shop.whole_way()
    shop.send(
        [{**made[3], "at": orders([3], 1)[0]["at"]}, *orders(range(100, 103), 1)],
        settings={"enable.idempotence": True},
    )
    shop.write("outbox", orders(range(100, 103), 1))

    context, _ = shop.whole_way(1)

    assert shop.found(context, LEDGER_HOP) == {"O3": ("duplicate", "application_resend")}
    evidence = shop.evidence(context, LEDGER_HOP, "O3")
    (first,) = evidence["elsewhere_producers"]
    assert (first["place"], first["sequence"]) == ("0:3", 3)
    said = {sequence["producer_id"]: sequence["records"] for sequence in evidence["sequences"]}
    assert said == {first["producer_id"]: 6, evidence["target"][0]["producer_id"]: 4}
