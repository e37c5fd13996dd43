"""Test windows whose topic has Protobuf values: the verdicts of JSON, and bad records kept in their places."""

import base64
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.window import WindowState
from tests.unit.compute.decode.protobuf.messages import FIELD, class_of, new_file
from tests.world.environment import set_connection
from tests.world.orders import Order, orders
from tests.world.registry_server import RegistryServer, registry_server
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

COMPARE = '{amount: "decimal(8,2)", region: string, at: timestamp, number: int}'
FILE = new_file(
    Order=[
        ("id", FIELD.TYPE_STRING),
        ("region", ".shop.State"),
        ("number", FIELD.TYPE_INT64),
        ("amount", FIELD.TYPE_STRING),
        ("at", ".google.protobuf.Timestamp"),
    ]
)
for value, symbol in zip(FILE.enum_type[0].value, ("EU", "US", "ASIA"), strict=True):
    value.name = symbol
Message = class_of(FILE)
REPORT = {"compensation": "{missing: report}"}


def body(order: Order) -> bytes:
    made = Message(id=order["id"], number=order["number"], amount=order["amount"])
    made.region = ("EU", "US").index(order["region"])
    made.at.FromDatetime(datetime.fromisoformat(order["at"]).replace(tzinfo=None))
    content: bytes = made.SerializeToString()
    return content


@pytest.fixture
def registry(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    with registry_server() as server:
        set_connection(monkeypatch, "registry", server.connection())
        yield server


@pytest.fixture
def protobuf(shop: ReconciledShop, registry: RegistryServer) -> ReconciledShop:
    """A shop whose topic has Protobuf values of schema 7."""
    text = base64.b64encode(FILE.SerializeToString()).decode()
    prefix = registry.register(7, text, schemaType="PROTOBUF")
    shop.format = {"value": "protobuf", "registry": "{connection: registry, subject: orders-value}"}
    shop.encode = lambda order: prefix + b"\x00" + body(order)
    shop.describe(compare=COMPARE, is_observing=True)
    return shop


def test_what_is_lost_and_changed_is_found_and_nothing_else(protobuf: ReconciledShop, registry: RegistryServer) -> None:
    made = orders(range(40))
    protobuf.trade(made, unsent=made[3:4], unloaded=made[7:8])
    protobuf.sql("update warehouse set at = at + interval '1 microsecond' where id = 'O15'")

    context, _ = protobuf.whole_way()

    assert protobuf.found(context, LEDGER_HOP) == {"O3": ("missing", "never_produced")}
    assert protobuf.found(context, STORE_HOP) == {
        "O7": ("missing", "lost_after_topic"),
        "O15": ("mismatched", "value_differs"),
    }
    assert protobuf.counts(context, LEDGER_HOP).matched == 39
    assert registry.asked == ["/schemas/ids/7?format=serialized"]


def test_bad_records_are_kept_in_their_places_and_shift_no_neighbour(protobuf: ReconciledShop) -> None:
    made = orders(range(20))
    protobuf.write("outbox", made)
    protobuf.send(made[:4])
    whole = protobuf.encode(made[4])
    bad = {
        "value is no message of its schema": whole[:-2],
        "schema ids/8 is not in the registry": b"\x00\x00\x00\x00\x08" + whole[5:],
        "value does not say which message of its schema it is": whole[:5],
        "schema ids/7 does not describe the value: its file has no message of this number": whole[:5] + b"\x02\x02",
    }
    for number, content in enumerate(bad.values()):
        protobuf.send_raw(content, key=f"bad{number}".encode())
    protobuf.send(made[4:])
    protobuf.write("warehouse", made)

    context, closed = protobuf.whole_way()

    assert protobuf.counts(context, LEDGER_HOP).matched == 20
    kept = context.storage.read_parquet(protobuf.manifests(context)["orders"]["undecodable_files"], ["place", "reason"])
    assert kept is not None
    assert kept.sort("place").rows() == [(f"0:{4 + number}", reason) for number, reason in enumerate(bad)]
    assert closed.state is WindowState.NOT_KNOWN


def test_what_never_came_is_produced_as_its_producers_would(protobuf: ReconciledShop) -> None:
    protobuf.sql("alter table outbox add value jsonb")
    made = orders(range(10))
    protobuf.trade(made, unsent=made[5:6])
    row = "jsonb_build_object('id', id, 'region', region, 'number', number, 'amount', amount::text, 'at', at)"
    protobuf.sql(f"update outbox set value = {row}")
    protobuf.describe(compare=COMPARE, compensation={"limits": "{share: 1.0}", "missing": "produce"})
    protobuf.file.write_text(protobuf.file.read_text().replace("table: outbox,", "table: outbox, payload: value,"))

    context = protobuf.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)

    assert protobuf.read()[-1].value == protobuf.encode(made[5])
    protobuf.write("warehouse", made[5:6])
    verify_window(context, lambda *_: None, patience_seconds=0.0)
    assert protobuf.certify(context).state is WindowState.CERTIFIED


def test_values_of_a_descriptor_set_have_no_prefix_and_are_sent_again_as_they_are(shop: ReconciledShop) -> None:
    files: Any = descriptor_pb2.FileDescriptorSet(file=[FILE])
    (shop.file.parent / "shop.desc").write_bytes(files.SerializeToString())
    shop.format = {"value": "protobuf", "schema": "shop.desc", "message": "shop.Order"}
    shop.encode = body
    shop.describe(compare=COMPARE, hop={"compensation": "{missing: redeliver}"}, ledger_hop=REPORT)
    made = orders(range(10))
    shop.trade(made, unloaded=made[5:6])

    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)

    assert shop.found(context, LEDGER_HOP) == {}
    assert shop.read()[-1].value == body(made[5])
