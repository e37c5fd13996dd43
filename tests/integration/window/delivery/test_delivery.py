"""Test what `makewhole doctor` says of a claimed delivery, and with which answer it ends."""

import json

import pytest
from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from makewhole.model.delivery.claims import Delivery
from tests.integration.window.delivery.findings import examined
from tests.world.environment import take_connection
from tests.world.orders import orders
from tests.world.topics import commit_group
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_a_pipeline_that_keeps_what_it_claims_has_no_finding(clean: ReconciledShop) -> None:
    answer = examined(clean)

    assert (answer.weaknesses, answer.problems) == ((), ())
    assert [(item.hop.name, item.delivery, item.is_derived) for item in answer.claims] == [
        ("outbox→orders", Delivery.AT_LEAST_ONCE, True),
        ("orders→warehouse", Delivery.AT_LEAST_ONCE, True),
    ]
    assert answer.producers["orders"]["records"] == {"plain": 0, "idempotent": 5, "transactional": 0}


def asked(*options: str) -> Result:
    return CliRunner().invoke(app, ["doctor", "shop", *options])


def test_the_command_says_that_nothing_is_too_little(clean: ReconciledShop) -> None:
    result = asked()

    assert (result.exit_code, result.stdout) == (
        0,
        "shop claims outbox→orders at-least-once (not in the file: derived); "
        "orders→warehouse at-least-once (not in the file: derived)\nnothing that it rests on is too little for that\n"
        "no transaction holds keys of shop in doubt\n",
    )
    document = json.loads(asked("--json").stdout)
    assert (document["findings"], document["prepared"], document["open"], document["problems"]) == ([], [], [], [])


def test_the_command_names_each_setting_with_what_to_write_and_the_row_of_what_happens(clean: ReconciledShop) -> None:
    clean.change_topic(unclean_leader_election_enable="true")
    commit_group(clean.bootstrap, clean.topic, clean.topic, 2)

    result = asked()

    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[2:7] == [
        "broken: the claim does not hold",
        f"1. topic {clean.topic}: unclean.leader.election.enable: true; should be false",
        "   because a replica that lags may lead: acknowledged records are cut off, and their offsets used again",
        f"   to write: kafka-configs.sh --bootstrap-server … --alter --entity-type topics --entity-name {clean.topic} "
        "--add-config unclean.leader.election.enable=false",
        "   otherwise: row 9 of docs/faults.md, #9-an-unclean-election-cuts-acknowledged-records-off",
    ]
    assert lines[8] == "risk: it holds as long as nothing else fails"
    assert "2 settings to look at. Nothing was changed: makewhole only reports settings." in lines
    findings = json.loads(asked("--json").stdout)["findings"]
    assert [item["severity"] for item in findings] == ["broken", "risk"]
    assert findings[0]["fault"] == "docs/faults.md#9-an-unclean-election-cuts-acknowledged-records-off"


def test_what_is_not_known_is_neither_good_nor_bad(clean: ReconciledShop) -> None:
    clean.send(orders([7]), settings={"enable.idempotence": False})
    commit_group(clean.bootstrap, clean.topic, clean.topic, 6)

    result = asked()

    assert result.exit_code == 3
    assert "unknown: nothing here says whether it holds" in result.stdout.splitlines()


def test_a_connection_that_this_machine_lacks_leaves_out_what_it_leads_to(
    clean: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean.change_topic(unclean_leader_election_enable="true")
    take_connection(monkeypatch, "db")

    document = json.loads(asked("--json").stdout)

    assert [item["setting"] for item in document["findings"]] == ["unclean.leader.election.enable"]
    assert [item["point"] for item in document["problems"]] == ["outbox", "warehouse"]
    assert asked().exit_code == 4
