"""Test that keys judged alone have the verdicts that their whole window gives them, and that nothing is committed."""

import json
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.journey.copies import read_manifests, with_snapshots
from makewhole.model.errors import RefusedError
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext, window_context
from makewhole_spark.of_keys.judge_keys import KeyVerdict, judge_keys
from tests.integration.spark.test_survivors import repair
from tests.world.orders import at_day, orders
from tests.world.pipeline_file import store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

Verdicts = dict[str, str | None]


def alone(shop: ReconciledShop, context: WindowContext, *keys: str) -> list[KeyVerdict]:
    with connect(shop.journal) as journal:
        manifests = read_manifests(journal, context.window)
        now = window_context(context.window, shop.pipeline)
        return judge_keys(shop.carrier, journal, now, manifests, keys)


def verdicts(judged: list[KeyVerdict], hop: str) -> Verdicts:
    return {answer.key: answer.verdict for answer in judged if answer.hop == hop}


def as_whole(shop: ReconciledShop, context: WindowContext, hop: str, keys: list[str]) -> Verdicts:
    """Return the verdicts that a whole revision gives."""
    of_hop = shop.found(context, hop)
    return {key: of_hop[key][0] if key in of_hop else "matched" for key in keys}


def dump(shop: ReconciledShop) -> list[Any]:
    tables = ("window", "hop_result", "finding", "certificate", "handover", "key_run", "incident")
    return [shop.journal_sql(f"select count(*) from makewhole.{name}") for name in tables]


@pytest.fixture
def flawed(shop: ReconciledShop) -> WindowContext:
    """A window in which each of five keys has another flaw on its way, and others have none."""
    made = orders(range(40))
    shop.write("outbox", [order for order in made if order["id"] != "O4"])
    shop.send([*(order for order in made if order["id"] != "O1"), made[5]])
    rows = [order for order in made if order["id"] not in ("O1", "O2")]
    shop.write("warehouse", [order | ({"amount": "99.00"} if order["id"] == "O3" else {}) for order in rows])
    shop.write("warehouse", [made[6]])
    return shop.judge_and_ask_the_gate()


def test_keys_have_the_verdicts_of_their_whole_window(shop: ReconciledShop, flawed: WindowContext) -> None:
    keys = [f"O{number}" for number in range(9)]
    before, files = dump(shop), flawed.storage.files_below("shop")

    judged = alone(shop, flawed, *keys)

    for hop in (LEDGER_HOP, STORE_HOP):
        expected = as_whole(shop, flawed, hop, keys)
        own = verdicts(judged, hop)
        assert own == {key: verdict for key, verdict in expected.items() if key in own}
        assert {key for key, verdict in expected.items() if verdict != "matched"} <= set(own)
    assert verdicts(judged, STORE_HOP) == {
        "O0": "matched",
        "O2": "missing",
        "O3": "mismatched",
        "O4": "matched",
        "O5": "matched",
        "O6": "duplicate",
        "O7": "matched",
        "O8": "matched",
    } | ({"O1": verdicts(judged, STORE_HOP)["O1"]} if "O1" in verdicts(judged, STORE_HOP) else {})
    assert verdicts(judged, LEDGER_HOP)["O1"] == "missing"
    (mismatch,) = [verdict for verdict in judged if (verdict.hop, verdict.key) == (STORE_HOP, "O3")]
    assert (mismatch.cause, "99.00" in json.dumps(dict(mismatch.evidence))) == ("value_differs", True)
    assert (dump(shop), flawed.storage.files_below("shop")) == (before, files)


def test_what_was_mended_and_broken_since_is_seen(shop: ReconciledShop, flawed: WindowContext) -> None:
    shop.write("warehouse", [orders([2])[0]])
    shop.sql("update warehouse set amount = 3.50 where id = 'O3'; delete from warehouse where id = 'O8'")
    answers = verdicts(alone(shop, flawed, "O2", "O3", "O8"), STORE_HOP)
    again = shop.judged()
    assert answers == as_whole(shop, again, STORE_HOP, ["O2", "O3", "O8"])
    assert (answers["O2"], answers["O3"]) == ("matched", "matched")


def test_keys_that_were_repaired_are_matched(shop: ReconciledShop) -> None:
    """One was overwritten, and of the other a row was moved aside."""
    remedies = {"limits": "{share: 1.0}", "missing": "upsert", "mismatched": "upsert", "duplicate": "quarantine"}
    shop.describe(has_ledger=False, compensation=remedies)
    made = orders(range(6))
    shop.send(made)
    shop.write("warehouse", [*made[:5], made[3], made[5] | {"amount": "99.00"}])
    context = shop.judge_and_ask_the_gate()
    before = verdicts(alone(shop, context, "O3", "O4", "O5"), STORE_HOP)
    assert before == {"O3": "duplicate", "O4": "matched", "O5": "mismatched"}
    assert repair(shop, context).state is WindowState.CERTIFIED
    assert set(verdicts(alone(shop, context, "O3", "O4", "O5"), STORE_HOP).values()) == {"matched"}


def test_a_key_that_a_later_window_repeats_is_judged_with_what_the_index_knows(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False)
    made = orders(range(5))
    shop.send(made)
    shop.write("warehouse", made)
    assert shop.whole_way(0)[1].state is WindowState.CERTIFIED
    later = orders(range(10, 15), day=1)
    shop.send([*later, made[2]])
    shop.write("warehouse", [*later, at_day(1, made[2])])
    second = shop.judge_and_ask_the_gate(1)
    answers = verdicts(alone(shop, second, "O2", "O12"), STORE_HOP)
    assert answers == as_whole(shop, second, STORE_HOP, ["O2", "O12"])


def test_a_row_that_may_have_come_late_is_left_to_the_whole_window(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False)
    shop.write("warehouse", orders(range(3)))
    shop.send(orders(range(3)))
    shop.whole_way(0)
    later = orders(range(10, 13), day=1)
    shop.send(later)
    shop.write("warehouse", later)
    second = shop.judge_and_ask_the_gate(1)
    shop.write("warehouse", [at_day(0.5, later[0])])
    first, other = alone(shop, second, "O10", "O11")
    assert (first.verdict, other.verdict) == (None, "matched")
    assert "came" not in str(other.reason)
    assert str(first.reason).startswith("warehouse has a row of it with a time outside the window that was not there")


def test_a_window_whose_snapshots_say_nothing_any_more_is_judged_whole(
    shop: ReconciledShop, flawed: WindowContext
) -> None:
    shop.describe(compare='{amount: "decimal(8,2)", region: string}')
    assert why_whole(shop, flawed) == "outbox has now: it was read with another configuration"
    shop.describe()
    shop.make_topic_again()
    assert why_whole(shop, flawed) == "orders has now: the topic was made again"


def why_whole(shop: ReconciledShop, context: WindowContext) -> str:
    """Return of which point, and why, the window does not show what it has now."""
    with pytest.raises(RefusedError) as caught:
        alone(shop, context, "O1")
    said, remedy = str(caught.value).split("; ")
    assert remedy == "judge the whole window: `makewhole run shop --window 1`"
    return said.removeprefix(f"{context.window.label} does not show what ")


def test_what_was_read_by_other_code_or_by_other_types_says_nothing_of_keys(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.sql("alter table warehouse add column seen text")
    shop.describe(has_ledger=False, compare="{seen: string}")
    made = [order | {"seen": "2013-01-01T00:00:00Z"} for order in orders(range(4))]
    for order in made:
        shop.send_raw(json.dumps(order).encode(), key=None)
    shop.write("warehouse", made)
    context = shop.judge_and_ask_the_gate()
    assert verdicts(alone(shop, context, "O1"), STORE_HOP) == {"O1": "matched"}

    with monkeypatch.context() as patched:
        patched.setattr("makewhole_spark.snapshot.reuse.read_as.code_digest", lambda: "another")
        assert why_whole(shop, context) == (
            "orders has now: it was read with another version of makewhole or its libraries"
        )
    shop.sql("alter table warehouse alter column seen type timestamptz using seen::timestamptz")
    assert why_whole(shop, context) == "orders has now: it was read with another types of keys or values"

    assert shop.judge_and_ask_the_gate().window.revision == 2
    assert verdicts(alone(shop, shop.judged(), "O1"), STORE_HOP) == {"O1": "matched"}


def test_records_whose_leader_epochs_are_not_known_say_nothing_of_keys(
    shop: ReconciledShop, flawed: WindowContext
) -> None:
    shop.journal_sql("update makewhole.window_range set leader_epochs = '[]'")
    with connect(shop.journal) as journal:
        unknown = replace(flawed, window=windows.load(journal, "shop", 1, 1))
    assert why_whole(shop, unknown) == "orders has now: the leader epochs of partition 0 are not known"


def test_records_that_kafka_has_deleted_since_are_in_the_snapshot(shop: ReconciledShop, flawed: WindowContext) -> None:
    shop.delete_records({0: 20})
    assert verdicts(alone(shop, flawed, "O2", "O7"), STORE_HOP) == {"O2": "missing", "O7": "matched"}


def test_the_command_shows_verdicts_and_says_what_they_are_not(
    shop: ReconciledShop, flawed: WindowContext, tmp_path: Any
) -> None:
    file = tmp_path / "keys.txt"
    file.write_text("O3\nO7\n")
    shown = CliRunner().invoke(app, ["run", "shop", "--keys", str(file)], env={"COLUMNS": "200"})
    assert shown.exit_code == 1, shown.output
    assert "mismatched" in shown.output
    assert "no window was judged, certified or repaired" in shown.output
    listed = CliRunner().invoke(app, ["run", "shop", "--keys", str(file), "--json"])
    documents = [json.loads(line) for line in listed.stdout.splitlines()]
    assert [(document["key"], document["hop"]["to"], document["verdict"]) for document in documents] == [
        ("O3", "orders", "matched"),
        ("O7", "orders", "matched"),
        ("O3", "warehouse", "mismatched"),
        ("O7", "warehouse", "matched"),
    ]
    file.write_text("O7\n")
    assert CliRunner().invoke(app, ["run", "shop", "--keys", str(file)]).exit_code == 0
    wrong = CliRunner().invoke(app, ["run", "shop", "--keys", str(file), "--plan-only"], env={"COLUMNS": "200"})
    assert (wrong.exit_code, "give --whole, too" in wrong.output) == (2, True)


def test_under_upsert_a_key_alone_is_held_to_its_latest_version(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False, is_upsert=True, has_version=True)
    shop.sql("alter table warehouse add column if not exists version bigint")
    made = [order | {"version": 1} for order in orders(range(6))]
    newer = [order | {"version": 2, "amount": "50.00"} for order in made[:4]]
    shop.send([*made, *newer])
    shop.write("warehouse", [newer[0], made[1], newer[2] | {"amount": "51.00"}, *made[4:]])
    context = shop.judge_and_ask_the_gate()
    keys = [f"O{number}" for number in range(6)]
    answers = verdicts(alone(shop, context, *keys), STORE_HOP)
    assert answers == as_whole(shop, context, STORE_HOP, keys)
    assert {key for key, verdict in answers.items() if verdict == "matched"} == {"O0", "O4", "O5"}
    shop.sql("update warehouse set version = 2, amount = 50 where id = 'O1'")
    shop.sql("update warehouse set version = 1, amount = 1.50 where id = 'O0'")
    answers = verdicts(alone(shop, context, *keys), STORE_HOP)
    assert answers == as_whole(shop, shop.judged(), STORE_HOP, keys)
    assert (answers["O1"], answers["O0"]) == ("matched", "mismatched")


def test_a_hop_that_compares_columns_of_its_own_does_so_for_keys_alone(shop: ReconciledShop) -> None:
    shop.describe(hop={"compare": "{region: string}"})
    made = orders(range(6))
    shop.write("outbox", made)
    shop.send(made)
    shop.write("warehouse", [made[0] | {"amount": "99.00"}, made[1] | {"region": "other"}, *made[2:]])
    context = shop.judge_and_ask_the_gate()
    keys = [f"O{number}" for number in range(6)]
    answers = verdicts(alone(shop, context, *keys), STORE_HOP)
    assert answers == as_whole(shop, context, STORE_HOP, keys)
    assert {key for key, verdict in answers.items() if verdict != "matched"} == {"O1"}


def test_a_row_of_a_certified_window_that_is_gone_has_vanished_for_keys_alone(shop: ReconciledShop) -> None:
    """The certified revision is the one of which the keys are judged."""
    shop.describe(has_ledger=False, hop={"compensation": "{missing: upsert}"})
    made = orders(range(6))
    shop.send(made)
    shop.write("warehouse", made[:4])
    assert repair(shop, shop.judge_and_ask_the_gate()).state is WindowState.CERTIFIED
    shop.sql("delete from warehouse where id in ('O2', 'O5')")
    keys = ["O1", "O2", "O5"]
    context = newest(shop)
    judged = alone(shop, context, *keys)
    _, gone, repaired = judged
    assert verdicts(judged, STORE_HOP) == {"O1": "matched", "O2": "vanished", "O5": "vanished"}
    for verdict in (gone, repaired):
        assert (verdict.cause, verdict.evidence["seen"]) == ("gone_since_certified", {"window": 1, "revision": 1})
    again, _ = shop.whole_way()
    assert verdicts(judged, STORE_HOP) == as_whole(shop, again, STORE_HOP, keys)
    assert verdicts(alone(shop, again, *keys), STORE_HOP) == verdicts(judged, STORE_HOP)


def test_a_row_of_a_ledger_that_was_purged_since_is_known_for_keys_alone(shop: ReconciledShop) -> None:
    made = orders(range(6))
    shop.trade(made)
    context, closed = shop.whole_way()
    assert closed.state is WindowState.CERTIFIED
    shop.sql("delete from outbox where id = 'O2'")
    assert verdicts(alone(shop, context, "O1", "O2"), LEDGER_HOP) == {"O1": "matched"}
    again = shop.judged()
    assert (shop.found(again, LEDGER_HOP), shop.counts(again, LEDGER_HOP).matched) == ({}, 5)


def test_a_row_that_only_a_window_with_gaps_saw_is_missing_for_keys_alone(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False)
    made = orders(range(6))
    shop.send(made)
    shop.write("warehouse", made[:5])
    context, closed = shop.whole_way()
    assert closed.state is WindowState.GAPS
    shop.sql("delete from warehouse where id = 'O2'")
    assert verdicts(alone(shop, context, "O2", "O5"), STORE_HOP) == {"O2": "missing", "O5": "missing"}


@pytest.mark.parametrize("case", ["excluded", "aborted", "excluded, own columns"])
def test_a_key_that_a_window_holds_and_does_not_judge_leaves_the_others_their_verdicts(
    shop: ReconciledShop, case: str
) -> None:
    """O2 has a record in the second window that is none of the hop's; the store has no times, and shows its row."""
    shop.describe(
        has_ledger=False,
        hop={"where": "\"region <> 'none'\"", **({"compare": "{region: string}"} if "own columns" in case else {})},
        more_points={"warehouse": {name: value for name, value in store("db", "warehouse").items() if name != "time"}},
    )
    made, later = orders(range(6)), orders(range(10, 14), 1)
    shop.trade(made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.trade([*later, *orders([20], 1)], unloaded=orders([20], 1))
    if case == "aborted":
        shop.end_transaction(shop.begin_transaction([at_day(1, made[2])]), is_committed=False)
    else:
        shop.send([at_day(1, made[2]) | {"region": "none"}])
    second = shop.judge_and_ask_the_gate(1)
    answers = verdicts(alone(shop, second, "O2", "O11", "O20"), STORE_HOP)
    assert answers == {"O11": "matched", "O20": "missing"}
    assert answers == as_whole(shop, second, STORE_HOP, ["O11", "O20"])
    assert "O2" not in shop.found(second, STORE_HOP)


def test_an_answer_without_a_verdict_is_no_success(shop: ReconciledShop, tmp_path: Any) -> None:
    shop.describe(has_ledger=False, hop={"where": "\"region <> 'none'\""})
    shop.trade(orders(range(6)))
    shop.send([order | {"region": "none"} for order in orders([20, 21])])
    shop.judge_and_ask_the_gate()
    file = tmp_path / "keys.txt"
    command, why = ["run", "shop", "--keys", str(file)], "no hop of window 1 judges O20"

    file.write_text("O20\nO21\n")
    shown = CliRunner().invoke(app, command)
    assert (shown.exit_code, why in shown.output, "verdict " in shown.output) == (6, True, False), shown.output
    assert "2 of 2 keys without a verdict: " in shown.output
    assert "`makewhole explain shop KEY` shows each copy" in shown.output
    listed = CliRunner().invoke(app, [*command, "--json"])
    assert (listed.exit_code, listed.stdout, why in listed.stderr) == (6, "", True)

    file.write_text("O20\nO3\n")
    shown = CliRunner().invoke(app, command)
    assert (shown.exit_code, why in shown.output, "matched" in shown.output) == (3, True, True), shown.output


def newest(shop: ReconciledShop) -> WindowContext:
    with connect(shop.journal) as journal:
        window = with_snapshots(journal, windows.newest(journal, "shop", number=1)[0])
    return window_context(window, shop.pipeline)
