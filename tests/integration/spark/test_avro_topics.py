"""Test windows whose topic has Avro values: the same verdicts as with JSON, and bad records kept in their places."""

import json
import time
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.window import WindowState
from tests.unit.compute.decode.avro.written import body, unscaled
from tests.world.environment import set_connection
from tests.world.orders import Order, orders
from tests.world.registry_server import RegistryServer, registry_server
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

COMPARE = '{amount: "decimal(8,2)", region: string, at: timestamp, number: int}'


REPORT = {"compensation": "{missing: report}"}


def schema(**more: Any) -> dict[str, Any]:
    fields = {
        "id": "string",
        "region": {"type": "enum", "name": "Region", "symbols": ["EU", "US"]},
        "number": "long",
        "amount": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2},
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        **more,
    }
    return {
        "type": "record",
        "name": "Order",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


def raw(order: Order) -> dict[str, Any]:
    """Return an order as an Avro library takes it, without logical types."""
    return {
        **order,
        "amount": unscaled(int(Decimal(order["amount"]) * 100)),
        "at": int(datetime.fromisoformat(order["at"]).timestamp()) * 10**6,
    }


@pytest.fixture
def registry(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    with registry_server() as server:
        set_connection(monkeypatch, "registry", server.connection())
        yield server


@pytest.fixture
def avro(shop: ReconciledShop, registry: RegistryServer) -> ReconciledShop:
    """A shop whose topic has Avro values of schema 7."""
    prefix = registry.register(7, schema())
    shop.format = {"value": "avro", "registry": "{connection: registry, subject: orders-value}"}
    shop.encode = lambda order: prefix + body(schema(), raw(order))
    shop.describe(compare=COMPARE, is_observing=True)
    return shop


def test_values_of_the_topic_and_of_tables_are_the_same(avro: ReconciledShop) -> None:
    avro.trade(orders(range(60)))

    context, closed = avro.whole_way()

    assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)
    for hop in (LEDGER_HOP, STORE_HOP):
        assert avro.counts(context, hop).matched == 60


def test_what_is_lost_changed_and_repeated_is_found_and_nothing_else(avro: ReconciledShop) -> None:
    made = orders(range(20))
    avro.trade(made, unsent=made[3:4], unloaded=made[7:8])
    avro.send(made[11:12])
    avro.sql("update warehouse set amount = amount + 0.01 where id = 'O15'")

    context, _ = avro.whole_way()

    assert avro.found(context, LEDGER_HOP) == {
        "O3": ("missing", "never_produced"),
        "O11": ("duplicate", "retry_without_idempotence"),
    }
    assert avro.found(context, STORE_HOP) == {
        "O7": ("missing", "lost_after_topic"),
        "O15": ("mismatched", "value_differs"),
    }


def test_bad_records_are_kept_in_their_places_and_shift_no_neighbour(avro: ReconciledShop) -> None:
    made = orders(range(20))
    avro.write("outbox", made[:16])
    avro.send(made[:4])
    whole = avro.encode(made[4])
    bad = {
        "value ends before its schema does": whole[:-2],
        "value goes on behind what its schema describes": whole + b"\x00",
        "schema ids/8 is not in the registry": b"\x00\x00\x00\x00\x08" + whole[5:],
        "value does not begin with the zero byte before the number of its schema": b"\x01" + whole[1:],
    }
    for number, value in enumerate(bad.values()):
        avro.send_raw(value, key=f"bad{number}".encode())
    avro.send(made[4:16])
    avro.write("warehouse", made[:16])

    context, closed = avro.whole_way()

    assert avro.counts(context, LEDGER_HOP).matched == 16
    assert avro.found(context, LEDGER_HOP) == {}
    kept = context.storage.read_parquet(avro.manifests(context)["orders"]["undecodable_files"], ["place", "reason"])
    assert kept is not None
    assert kept.sort("place").rows() == [(f"0:{4 + number}", reason) for number, reason in enumerate(bad)]
    assert closed.state is WindowState.NOT_KNOWN
    assert "4 records of orders have no usable key, 0 allowed" in str(closed.reason)


def test_schemas_may_change_within_a_topic(avro: ReconciledShop, registry: RegistryServer) -> None:
    made = orders(range(30))
    avro.write("outbox", made)
    avro.send(made[:10])
    newer = schema(number=["null", "int"], amount="double", note=["null", "string"])
    prefix = registry.register(9, newer)
    avro.encode = lambda order: prefix + body(newer, {**raw(order), "amount": float(order["amount"]), "note": None})
    avro.send(made[10:])
    avro.write("warehouse", made)

    context, closed = avro.whole_way()

    assert closed.state is WindowState.CERTIFIED
    assert avro.counts(context, STORE_HOP).matched == 30


def test_values_of_a_schema_file_have_no_prefix(shop: ReconciledShop) -> None:
    (shop.file.parent / "order.avsc").write_text(json.dumps(schema()))
    shop.format = {"value": "avro", "schema": "order.avsc"}
    shop.encode = lambda order: body(schema(), raw(order))
    shop.describe(compare=COMPARE, is_observing=True)
    shop.trade(orders(range(10)))

    _, closed = shop.whole_way()

    assert closed.state is WindowState.CERTIFIED


def test_a_lost_record_is_sent_again_byte_for_byte_and_a_row_is_written_of_it(avro: ReconciledShop) -> None:
    made = orders(range(10))
    avro.describe(
        compare=COMPARE, hop={"compensation": "{missing: redeliver}"}, ledger_hop={"compensation": "{missing: report}"}
    )
    avro.trade(made, unloaded=made[5:6])
    context = avro.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)

    assert avro.read()[-1].value == avro.read()[5].value == avro.encode(made[5])


def test_a_row_is_written_of_an_avro_record(avro: ReconciledShop) -> None:
    made = orders(range(10))
    avro.describe(
        compare=COMPARE, hop={"compensation": "{missing: upsert}"}, ledger_hop={"compensation": "{missing: report}"}
    )
    avro.trade(made, unloaded=made[5:6])
    context = avro.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)

    [row] = avro.sql("select id, number, region, amount::text, at from warehouse where id = 'O5'")
    assert row == ("O5", 5, "US", "5.50", datetime.fromisoformat(made[5]["at"]))


def test_what_never_came_is_produced_by_the_newest_schema(avro: ReconciledShop, registry: RegistryServer) -> None:
    made = orders(range(10))
    avro.trade(made, unsent=made[5:6])
    newer = schema(note=["null", "string"])
    prefix = registry.register(12, newer)
    avro.describe(compare=COMPARE, compensation={"limits": "{share: 1.0}", "missing": "produce"})

    context = avro.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)

    assert avro.read()[-1].value == prefix + body(newer, {**raw(made[5]), "note": None})
    avro.write("warehouse", made[5:6])
    verify_window(context, lambda *_: None, patience_seconds=0.0)
    assert avro.certify(context).state is WindowState.CERTIFIED


def test_what_does_not_fit_the_schema_is_not_produced(avro: ReconciledShop, registry: RegistryServer) -> None:
    made = orders(range(10))
    avro.trade(made, unsent=made[5:6])
    registry.register(12, schema(amount={"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 1}))
    avro.sql("update outbox set amount = 5.25 where id = 'O5'")
    avro.describe(compare=COMPARE, compensation={"limits": "{share: 1.0}", "missing": "produce"})

    context = avro.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)

    assert len(avro.read()) == 9
    reason = "amount does not fit the type decimal of its topic's schema"
    refused = f"unfit: no record of orders can be made of it in avro: {reason}"
    assert avro.outcome_of(context, LEDGER_HOP, "O5") == ("refused", refused)


def test_a_window_is_read_as_before_when_the_registry_is_gone(
    avro: ReconciledShop, registry: RegistryServer, tmp_path: Path
) -> None:
    avro.trade(orders(range(10)))
    avro.whole_way()
    forget_schemas(avro)
    registry.answers.clear()
    registry.status = 503

    avro.trade(orders(range(100, 110), 1))
    _, closed = avro.whole_way(1)

    assert closed.state is WindowState.CERTIFIED


def test_a_registry_that_is_silent_stops_the_step_for_another_try(
    avro: ReconciledShop, registry: RegistryServer
) -> None:
    avro.trade(orders(range(10)))
    context = avro.open()
    registry.status = 503

    with pytest.raises(TransientError, match="the schema registry of connection registry did not answer"):
        avro.snapshot(context)


def test_a_registry_whose_numbers_mean_other_schemas_now_is_refused(
    avro: ReconciledShop, registry: RegistryServer
) -> None:
    avro.trade(orders(range(10)))
    avro.whole_way()
    forget_schemas(avro)
    registry.register(7, schema(amount="string"))

    avro.trade(orders(range(100, 110), 1))
    context = avro.open(1)
    with pytest.raises(RefusedError, match="schema ids/7 of connection registry is another one now"):
        avro.snapshot(context)


def test_a_window_is_read_again_when_its_connection_leads_to_another_registry(
    avro: ReconciledShop, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one of a test system has another schema of the same form under the number."""
    renamed = json.loads(json.dumps(schema()).replace('"number"', '"count"'))
    avro.trade(orders(range(10)))
    with registry_server() as other:
        other.register(7, renamed)
        set_connection(monkeypatch, "registry", other.connection())
        forget_schemas(avro)
        first, _ = avro.whole_way()
        assert set(avro.found(first, STORE_HOP)) == {order["id"] for order in orders(range(10))}

    set_connection(monkeypatch, "registry", registry.connection())
    forget_schemas(avro)
    again, closed = avro.whole_way()

    assert (avro.found(again, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)


def forget_schemas(shop: ReconciledShop) -> None:
    """Do what new processes do, here and in Spark's workers: they know no schema yet."""
    _forget(0)
    shop.carrier.carry(range(2), _forget)


def _forget(_: int) -> None:
    from makewhole.window import formats

    formats._of_registry.cache_clear()
    formats._avro.cache_clear()
    time.sleep(0.1)  # so that the other worker has the other task


def test_record_keys_of_the_same_registry_are_the_keys_and_bad_ones_are_kept(
    avro: ReconciledShop, registry: RegistryServer
) -> None:
    key_schema = {"type": "record", "name": "OrderKey", "fields": [{"name": "id", "type": "string"}]}
    start = registry.register(9, key_schema, "orders-key")
    avro.format = {**avro.format, "record_key": "avro"}
    avro.describe(compare=COMPARE, is_observing=True, topic_key="kafka.key.id")
    made = orders(range(20))
    avro.write("outbox", made)
    for order in [*made[:3], *made[4:16], made[11]]:
        avro.send_raw(avro.encode(order), key=start + body(key_schema, {"id": order["id"]}))
    avro.send_raw(avro.encode(made[16]), key=start[:-1] + b"\x0a" + body(key_schema, {"id": "O16"}))
    avro.write("warehouse", [*made[:3], *made[4:7], *made[8:16]])

    context = avro.judge_and_ask_the_gate()

    assert avro.found(context, STORE_HOP) == {"O7": ("missing", "lost_after_topic")}
    verdicts = avro.found(context, LEDGER_HOP)
    assert verdicts.pop("O11") == ("duplicate", "retry_without_idempotence")
    assert set(verdicts) == {"O3", "O16", "O17", "O18", "O19"}
    assert {verdict for verdict, _ in verdicts.values()} == {"undecidable"}, "any of them may have the unread key"
    assert "record key: schema ids/10 is not in the registry" in str(avro.certify(context).reason)
