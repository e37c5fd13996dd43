"""Test that a key is erased in its chain of points, and in no other, where its text is of another thing."""

import json
import re

import pytest
from typer.testing import CliRunner

from makewhole.cli.environment import Exit
from makewhole.cli.main import app
from makewhole.compensation.plan_window import plan_window
from makewhole.journal.retention.erasures import ErasedKey
from makewhole.lake.storage import Storage
from makewhole.orchestration.housekeeping import erase_what_came_back
from tests.integration.spark.test_erase import places_of, request_of
from tests.integration.spark.test_keep import UPSERT
from tests.world.orders import Order, milliseconds, orders
from tests.world.pipeline_file import store, topic
from tests.world.shop import STORE_HOP
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

KEY = "O900101"
OTHER_HOP = "parcels→deliveries"


def two_chains(shop: ReconciledShop) -> str:
    """Describe orders, and parcels that no hop joins with them; return the topic of these."""
    name = shop.add_topic()
    shop.sql("create table deliveries (id text, number int, region text, amount numeric(8,2), at timestamptz)")
    shop.describe(
        compensation=UPSERT,
        more_points={
            "parcels": topic("log", name, key='"$.id"'),
            "deliveries": store("db", "deliveries", key="id"),
        },
        more_hops=[{"from": "parcels", "to": "deliveries"}],
    )
    return name


def send_parcels(shop: ReconciledShop, name: str, parcels: list[Order]) -> None:
    client = producer(shop.bootstrap)
    for parcel in parcels:
        client.produce(name, key=parcel["id"], value=shop.encode(parcel), timestamp=milliseconds(parcel["at"]))
    assert client.flush(30) == 0


def folders_with(shop: ReconciledShop, key: ErasedKey) -> set[str]:
    """Return the tables that have a key, and the points whose folders do."""
    within = re.compile(r"shop/(?:window=[0-9]+/revision=[0-9]+|index)/([a-z]+).*")
    return {within.sub(r"\1", place) for place in places_of(shop, key.text, key.hash)}


def erase(*options: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, ["erase", "shop", KEY, "--reason", "request 17", "--yes", "--json", *options])
    return answer.exit_code, answer.output


def test_a_key_stays_in_chains_where_its_text_is_of_another_thing(shop: ReconciledShop) -> None:
    name = two_chains(shop)
    made = orders(range(900_101, 900_104))
    shop.trade(made, unloaded=made[:1])
    send_parcels(shop, name, made)
    shop.write("deliveries", made[1:])
    context = shop.judge_and_ask_the_gate(0)
    shop.certify(context)
    assert (KEY in shop.found(context, STORE_HOP), KEY in shop.found(context, OTHER_HOP)) == (True, True)
    code, output = erase()
    why = "--of: is not given, and no hops join outbox with deliveries, parcels: the key may be of another thing there"
    assert (code, why in " ".join(output.split())) == (Exit.WRONG_USAGE, True)

    code, output = erase("--of", "orders")

    assert (code, json.loads(output)["journal"]["findings"]) == (0, 1)
    key = request_of(shop, KEY).erased
    assert folders_with(shop, key) == {"parcels", "finding", "finding_now"}
    assert shop.found(context, OTHER_HOP)[KEY][0] == "missing"

    again = shop.judge_and_ask_the_gate(0)
    assert shop.found(again, STORE_HOP)[KEY][0] == "erased"
    assert shop.found(again, OTHER_HOP)[KEY][0] == "missing"
    plan = plan_window(again).plan
    assert plan is not None
    assert shop.journal_sql("select hop from makewhole.planned_action where key = %s", KEY) == [(OTHER_HOP,)]
    shop.journal_sql("update makewhole.plan set state = 'rejected'")
    shop.certify(again)

    erase_what_came_back("shop")

    files = [file.path for file in Storage.from_environment().files_below("shop")]
    assert any("revision=2/orders/" in path for path in files)
    assert folders_with(shop, key) == {"parcels", "plan", "finding", "finding_now", "planned_action", "action"}
    erase_what_came_back("shop")
    assert shop.journal_sql("select spares from makewhole.erasure") == [(["deliveries", "parcels"],)] * 2
