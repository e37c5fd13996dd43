"""Test `mask`: a window is judged, repaired, proven, taken back and exported, and no masked value is in clear anywhere
but where rows and records are."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.plan import Plan
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.integration.spark.test_keep import chain_problems
from tests.integration.spark.test_undone import undone
from tests.world.orders import Order, orders
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SECRET = "secret-"
REPAIR = {"missing": "upsert", "mismatched": "upsert", "duplicate": "quarantine", "limits": "{share: 1.0}"}
COMPARE = '{amount: "decimal(8,2)", region: string}'


def secretive(made: list[Order]) -> list[Order]:
    """Give each order a region that is found by its text, wherever it is."""
    return [{**order, "region": f"{SECRET}{order['id']}"} for order in made]


def masked_shop(shop: ReconciledShop, mask: str = "[region]", **settings: object) -> list[Order]:
    """Trade ten orders: O4 and O5 are not loaded, O6 has another region in the store, O7 is there twice, and O8 twice
    with two regions, of which one is right."""
    shop.describe(compensation=REPAIR, compare=COMPARE, **settings)  # type: ignore[arg-type]
    shop.file.write_text(shop.file.read_text().replace("\npoints:", f"\nmask: {mask}\npoints:"))
    made = secretive(orders(range(10)))
    shop.trade(made, unloaded=made[4:6])
    shop.sql("update warehouse set region = %s where id = 'O6'", f"{SECRET}wrong")
    shop.write("warehouse", [made[7], {**made[8], "region": f"{SECRET}twice"}])
    return made


def dump(shop: ReconciledShop) -> Iterator[str]:
    """Yield every row of every table of the journal that has a secret, with the table's name."""
    tables = shop.journal_sql("select table_name from information_schema.tables where table_schema = 'makewhole'")
    for (table,) in tables:
        rows = shop.journal_sql(f"select t::text from makewhole.{table} as t where t::text like %s", f"%{SECRET}%")
        yield from (f"{table}: {row}" for (row,) in rows)


def said(*command: str) -> str:
    """Return what a command prints."""
    answer = CliRunner().invoke(app, list(command))
    assert answer.exit_code in (0, 1), (command, answer.output, answer.exception)
    return answer.output


def rows(shop: ReconciledShop) -> list[tuple[str, str]]:
    return [(key, region) for key, region in shop.sql("select id, region from warehouse order by id, region")]


def repaired(shop: ReconciledShop) -> tuple[WindowContext, Plan]:
    """Judge, plan and repair the window of the first day."""
    context = shop.judge_and_ask_the_gate()
    plan = plan_window(context).plan
    assert plan is not None
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    return context, plan


def test_no_masked_value_is_said_or_kept_on_the_whole_way(
    shop: ReconciledShop, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = masked_shop(shop)
    before = rows(shop)
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {
        "O4": ("missing", "lost_after_topic"),
        "O5": ("missing", "lost_after_topic"),
        "O6": ("mismatched", "value_differs"),
        "O7": ("duplicate", "written_before_committed"),
        "O8": ("duplicate", "written_before_committed"),
    }
    differing = shop.evidence(context, STORE_HOP, "O6")["columns"]
    assert [*differing] == ["region"]
    assert differing["region"]["source"].startswith("masked:")
    assert differing["region"]["source"] != differing["region"]["target"]
    assert shop.evidence(context, STORE_HOP, "O4")["values"]["amount"] == "4.50"
    plan = plan_window(context).plan
    assert plan is not None
    assert dict(plan.counts) == {"upsert": 3, "quarantine": 2}
    texts = [said("plan", "dry-run", plan.id), said("plan", "dry-run", plan.id, "--json", "--samples", "10")]
    assert "(masked, changed)" in texts[0]
    texts.append(said("plan", "show", plan.id))

    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    closed = shop.certify(context)

    assert closed.state is WindowState.CERTIFIED
    assert rows(shop) == [(order["id"], order["region"]) for order in made]
    for key in (f"O{number}" for number in range(4, 9)):
        texts += [said("explain", "shop", key), said("explain", "shop", key, "--json")]
    assert '"region": "masked:' in texts[-1]
    texts += [
        said("findings", "shop", "--window", "1"),
        said("findings", "shop", "--window", "1", "--json"),
        said("todo"),
    ]
    file = tmp_path / "window-1.zip"
    said("export", "shop", "--window", "1", "-o", str(file))
    with zipfile.ZipFile(file) as opened:
        texts += [opened.read(name).decode() for name in opened.namelist()]
    assert [text for text in [*texts, caplog.text] if SECRET in text] == []
    assert [*dump(shop)] == []
    assert chain_problems(shop) == []

    undone(shop, context, plan)

    assert rows(shop) == before
    assert [*dump(shop)] == []
