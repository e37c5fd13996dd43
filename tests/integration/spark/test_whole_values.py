"""Test windows over values without fields: texts, any bytes, and what Debezium's outbox router writes."""

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.world.envelopes import compact, json_in_string
from tests.world.orders import milliseconds, orders
from tests.world.pipeline_file import topic
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

REPORT = {"compensation": "{missing: report}"}


@pytest.mark.parametrize("form", ["string", "bytes"])
def test_a_whole_value_is_compared_with_a_column(shop: ReconciledShop, form: str) -> None:
    """An empty value is a value, and a null is none."""
    kind = "text" if form == "string" else "bytea"
    shop.sql(f"alter table outbox add value {kind}; alter table warehouse add value {kind}")
    shop.more_columns["value"] = "string"
    shop.describe(
        compare="{value: string}",
        more_points={"orders": topic("log", shop.topic, value=form, key="kafka.key")},
        ledger_hop=REPORT,
    )
    bodies = [b"", "ü".encode(), b"\\x00", b'{"a": 1}'] + ([b"\x00\xff"] if form == "bytes" else [b" text "])
    made = orders(range(6))
    client = producer(shop.bootstrap)
    for order, body in zip(made, [*bodies, None], strict=True):
        client.produce(shop.topic, key=order["id"], value=body, timestamp=milliseconds(order["at"]))
    assert client.flush(30) == 0
    rows = [body.decode() if form == "string" else rf"\x{body.hex()}" for body in bodies]
    shop.write("outbox", [order | {"value": row} for order, row in zip(made[:5], rows, strict=True)])
    others = ["x" if form == "string" else r"\x78", *rows[1:]]
    shop.write("warehouse", [order | {"value": row} for order, row in zip(made[:5], others, strict=True)])

    context = shop.judge_and_ask_the_gate()

    assert shop.counts(context, LEDGER_HOP).matched == 5
    assert shop.found(context, STORE_HOP) == {"O0": ("mismatched", "value_differs")}
    closed = shop.certify(context)
    assert "value is null (a tombstone)" in str(closed.reason)


def test_the_outbox_routers_records_are_known_by_their_header(shop: ReconciledShop) -> None:
    """The router sends the same id again after it was killed; the aggregate's own id is the record key, as JSON."""
    shop.describe(
        compare='{amount: "decimal(8,2)", region: string}',
        more_points={
            "orders": topic("log", shop.topic, value="json_in_string", record_key="json", key="header:id"),
        },
        ledger_hop=REPORT,
    )
    made = orders(range(8))
    shop.write("outbox", made)
    client = producer(shop.bootstrap)
    for order in [*made[:5], *made[6:], made[7]]:
        headers = [("__debezium.context.taskId", b"0"), ("id", order["id"].encode())]
        client.produce(
            shop.topic,
            key=compact(order["region"]),
            value=json_in_string(order),
            headers=headers,
            timestamp=milliseconds(order["at"]),
        )
    assert client.flush(30) == 0
    shop.write("warehouse", [*made[:4], *made[6:]])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, LEDGER_HOP) == {
        "O5": ("missing", "never_produced"),
        "O7": ("duplicate", "retry_without_idempotence"),
    }
    assert shop.found(context, STORE_HOP) == {"O4": ("missing", "lost_after_topic")}


def test_a_record_is_produced_as_json_in_a_string(shop: ReconciledShop) -> None:
    shop.describe(
        compare='{amount: "decimal(8,2)", region: string}',
        more_points={"orders": topic("log", shop.topic, value="json_in_string", key="kafka.key")},
    )
    made = orders(range(8))
    shop.write("outbox", made)
    client = producer(shop.bootstrap)
    for order in made[:6]:
        stamp = milliseconds(order["at"])
        client.produce(shop.topic, key=order["id"], value=json_in_string(order), timestamp=stamp)
    assert client.flush(30) == 0
    shop.write("warehouse", made[:6])

    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)

    assert shop.found(context, LEDGER_HOP) == dict.fromkeys(("O6", "O7"), ("missing", "never_produced"))
    sent = shop.read()
    assert len(sent) == 8
    assert all((record.value or b"").startswith(b'"{') for record in sent)
    shop.write("warehouse", made[6:])
    again, closed = shop.whole_way()
    assert closed.state is WindowState.CERTIFIED, closed.reason
    assert shop.counts(again, LEDGER_HOP).matched == 8
