"""Test that certificates say how far their proof reaches, and that what only a ledger could show is never rounded."""

import json
from dataclasses import replace
from typing import Any

import pytest
from psycopg2.extras import Json
from typer.testing import CliRunner, Result

from makewhole.cli.environment import exit_of
from makewhole.cli.main import app
from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import WindowState
from makewhole.signing.key_files import signing_key_from_environment
from makewhole.signing.keys import sha256_of
from makewhole.window.certifying.certificate_chain import anchor_bytes, anchor_path
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

NOT_IN_LOG = {
    "limit": "not_in_log",
    "at": "orders",
    "count": None,
    "message": "what is not in the log of orders: it was never sent, or brokers acknowledged and lost it before it was "
    "read (acks=0 or 1, an unclean election)",
}
NOT_IN_LEDGER = {
    "limit": "not_in_ledger",
    "at": "outbox",
    "count": None,
    "message": "what the producer never wrote into outbox",
}
LEDGER_REACH = {
    "from": "ledger",
    "chains": [{"points": ["outbox", "orders", "warehouse"], "from": "ledger"}],
    "is_accepted": False,
}
LOG_REACH = {"from": "log", "chains": [{"points": ["orders", "warehouse"], "from": "log"}], "is_accepted": False}


def reach(closed: ClosedWindow) -> dict[str, Any]:
    assert closed.state is WindowState.CERTIFIED, closed.reason
    assert closed.certificate is not None
    body: dict[str, Any] = closed.certificate.body["reach"]
    return body


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "400"}, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def leader_changed(shop: ReconciledShop, context: WindowContext, **doubts: int) -> None:
    """Write a change of leader as a snapshot finds it: one broker alone never loses its lead."""
    incident = Incident(
        kind=IncidentKind.LEADER_CHANGED,
        point="orders",
        topic=shop.topic,
        topic_id=context.window.ranges["orders"][0].topic_id,
        partition=0,
        lo=2,
        hi=4,
        detail={"epochs": [[0, 2], [1, 4]], "before": None, "doubts": doubts},
    )
    with connect(shop.journal) as journal:
        incidents.put(journal, context.window, [incident])


def test_a_certificate_from_the_ledger_on_says_so_for_each_chain(shop: ReconciledShop) -> None:
    shop.describe(
        more_points={"archive": {"kind": "store", "connection": "db", "table": "archive", "key": "id", "time": "at"}},
        more_hops=[{"from": "outbox", "to": "archive"}],
    )
    shop.sql("create table archive as table warehouse")
    made = orders(range(5))
    shop.trade(made)
    shop.write("archive", made)

    _, closed = shop.whole_way()

    assert reach(closed) == {
        "from": "ledger",
        "chains": [
            {"points": ["outbox", "orders", "warehouse"], "from": "ledger"},
            {"points": ["outbox", "archive"], "from": "ledger"},
        ],
        "is_accepted": False,
        "cannot_exclude": [NOT_IN_LEDGER],
    }


def test_a_certificate_from_the_log_on_lists_what_nothing_upstream_could_show(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False)
    made = orders(range(8))
    shop.send(made[:4])
    for some, is_committed in ((made[4:6], False), (made[6:], True)):
        shop.end_transaction(shop.begin_transaction(some), is_committed=is_committed)
    shop.write("warehouse", [*made[:4], *made[6:]])

    _, closed = shop.whole_way()

    assert reach(closed) == {
        "from": "log",
        "chains": [{"points": ["orders", "warehouse"], "from": "log"}],
        "is_accepted": False,
        "cannot_exclude": [
            NOT_IN_LOG,
            {
                "limit": "aborted",
                "at": "orders",
                "count": 2,
                "message": "2 records of aborted transactions in orders: an abort that was not intended looks "
                "like one that was",
            },
        ],
    }
    said = run("windows", "shop").stdout
    assert "certified, from the log" in said
    assert f"window 1: proven from the log on. Not excluded: {NOT_IN_LOG['message']}; 2 records of aborted" in said
    document = json.loads(run("windows", "shop", "--json").stdout)
    assert document["certificate"]["reach"] == reach(closed)


def test_windows_from_the_ledger_and_from_the_log_are_distinguished_in_one_listing(shop: ReconciledShop) -> None:
    """Both are certified, and `makewhole run` exits with 0; a third, of which nothing is proven, with 3."""
    shop.trade(orders(range(5)))
    assert reach(shop.whole_way()[1])["from"] == "ledger"
    shop.describe(has_ledger=False)
    shop.trade(orders(range(100, 105), 1))
    assert reach(shop.whole_way(1)[1])["from"] == "log"
    shop.trade(orders(range(200, 205), 2))
    third = shop.open(2)
    shop.judge(third)
    leader_changed(shop, third, few_copies=1)
    shop.validate(third)
    assert shop.certify(third).state is WindowState.NOT_KNOWN

    documents = [json.loads(line) for line in run("windows", "shop", "--json").stdout.splitlines()]
    assert [(document["state"], (document["certificate"] or {"reach": None})["reach"]) for document in documents] == [
        ("certified", {**LEDGER_REACH, "cannot_exclude": [NOT_IN_LEDGER]}),
        ("certified", {**LOG_REACH, "cannot_exclude": [NOT_IN_LOG]}),
        ("not_known", None),
    ]
    assert [exit_of(WindowState(document["state"])) for document in documents] == [0, 0, 3]
    listed = run("windows", "shop").stdout.splitlines()[1:4]
    assert [[word for word in ("certified", ", from the log", "not_known") if word in line] for line in listed] == [
        ["certified"],
        ["certified", ", from the log"],
        ["not_known"],
    ]
    for number, proof in (
        (1, f"from the ledger on. Not excluded: {NOT_IN_LEDGER['message']}"),
        (2, "from the log on. "),
    ):
        assert f"window {number}: proven {proof}" in run("windows", "shop", "--window", str(number)).stdout
    assert "window 3: proven" not in run("windows", "shop", "--window", "3").stdout


def test_a_change_of_leader_that_may_have_lost_something_is_not_known_until_the_file_accepts_it(
    shop: ReconciledShop,
) -> None:
    shop.describe(has_ledger=False)
    made = orders(range(5))
    shop.send(made)
    shop.write("warehouse", made)
    context = shop.open()
    shop.judge(context)
    leader_changed(shop, context, few_copies=1, acks_unknown=5)
    shop.validate(context)

    closed = shop.certify(context)

    assert (closed.state, closed.certificate) == (WindowState.NOT_KNOWN, None)
    assert closed.reason == (
        f"not proven: the leader of {shop.topic}/0 changed: leader epochs 0, 1, and it may have taken acknowledged "
        "records along: one replica alone may acknowledge a record (min.insync.replicas, replication factor), 5 "
        "records of the window without a producer id, whose acks are not known. No point of this pipeline feeds the "
        "topic, so nothing says what must be in it: add the producer's ledger as a point, or write `reach: log` into "
        "the pipeline's file to accept that windows are proven from the log on; then run this window again. Producers "
        "with enable.idempotence=true, unclean.leader.election.enable=false, acks=all and min.insync.replicas of 2 or "
        "more prevent it"
    )

    shop.describe(has_ledger=False, reach="log")
    again = shop.judge_and_ask_the_gate()
    leader_changed(shop, again, few_copies=1, acks_unknown=5)
    accepted = reach(shop.certify(again))

    assert accepted["is_accepted"] is True
    assert accepted["cannot_exclude"] == [
        NOT_IN_LOG,
        {
            "limit": "leader_changed",
            "at": "orders",
            "count": 1,
            "message": "1 change of leader in orders that may have taken acknowledged records along",
        },
    ]


def test_a_change_of_leader_that_lost_nothing_stops_nothing_and_a_ledger_needs_no_such_look(
    shop: ReconciledShop,
) -> None:
    made = orders(range(5))
    shop.trade(made)
    with_ledger = shop.judge_and_ask_the_gate()
    leader_changed(shop, with_ledger, few_copies=1)
    assert reach(shop.certify(with_ledger))["from"] == "ledger"

    shop.describe(has_ledger=False)
    without = shop.judge_and_ask_the_gate()
    leader_changed(shop, without)

    assert reach(shop.certify(without))["cannot_exclude"] == [NOT_IN_LOG]


def test_keys_from_before_the_baseline_are_among_what_is_not_excluded(shop: ReconciledShop) -> None:
    shop.describe(start=None)
    shop.trade(orders(range(3)))
    shop.delete_records({0: 3})
    shop.trade(orders(range(100, 103)))

    _, closed = shop.whole_way()

    assert reach(closed)["cannot_exclude"][1:] == [
        {
            "limit": "before_baseline",
            "at": "orders→warehouse",
            "count": 3,
            "message": "3 keys of orders→warehouse from before the baseline",
        },
        {
            "limit": "before_baseline",
            "at": "outbox→orders",
            "count": 3,
            "message": "3 keys of outbox→orders from before the baseline",
        },
    ]


def test_a_certificate_from_before_it_said_its_reach_verifies_and_says_nothing_of_it(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    context, closed = shop.whole_way()
    assert closed.certificate is not None
    body = {name: value for name, value in closed.certificate.body.items() if name not in ("reach", "older_open")}
    body["format"] = 2
    signature = signing_key_from_environment().sign(body)
    shop.journal_sql(
        "update makewhole.certificate set body = %s, sha256 = %s, signature = %s",
        *(Json(body), sha256_of(body), signature),
    )
    written = replace(closed.certificate, body=body, sha256=sha256_of(body), signature=signature)
    context.storage.write_bytes(anchor_path("shop", 1), anchor_bytes(written))

    verified = json.loads(run("certificate", "verify", "shop", "--json").stdout)

    assert (verified["ok"], verified["problems"], verified["signed_from"]) == (True, [], 1)
    document = json.loads(run("windows", "shop", "--json").stdout)
    assert (document["certificate"]["reach"], document["certificate"]["older_open"]) == (None, None)
    assert "proven from" not in run("windows", "shop").stdout
