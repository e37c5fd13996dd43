"""Test `mask`: a window is judged, repaired, proven, taken back and exported, and no masked value is in clear anywhere
but where rows and records are."""

import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.erasure.erase_key import EraseRequest, ErasureContext, erase_key
from makewhole.journal.database import JournalSession, connect
from makewhole.journal.findings import window_findings
from makewhole.lake import mask_key
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError
from makewhole.model.verdict import Finding
from makewhole.model.window import WindowState
from makewhole.signing.key_files import signing_key_from_environment
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext, connections_of, window_context
from makewhole.window.masks import row_hash_of
from tests.integration.spark.test_erase import verified
from tests.integration.spark.test_judged_keys import alone as judged_alone
from tests.integration.spark.test_keep import chain_problems
from tests.integration.spark.test_undone import undone
from tests.world.acceptances import accepted, opened_again
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SECRET = "secret-"
REPAIR = {"missing": "upsert", "mismatched": "upsert", "duplicate": "quarantine", "limits": "{share: 1.0}"}
AT = "2025-03-01T00:08:00+00:00"
COMPARE = '{amount: "decimal(8,2)", region: string}'


def secretive(made: list[Order]) -> list[Order]:
    """Give each order a region that is found by its text, wherever it is."""
    return [{**order, "region": f"{SECRET}{order['id']}"} for order in made]


def masked_shop(shop: ReconciledShop, mask: str = "[region]", **settings: object) -> list[Order]:
    """Trade ten orders: O4 and O5 are not loaded, O6 has another region in the store, O7 is there twice, and O8 twice
    with two regions, of which one is right."""
    shop.describe(compensation=REPAIR, compare=COMPARE, **settings)  # type: ignore[arg-type]
    mask_file(shop, mask)
    made = secretive(orders(range(10)))
    shop.trade(made, unloaded=made[4:6])
    shop.sql("update warehouse set region = %s where id = 'O6'", f"{SECRET}wrong")
    shop.write("warehouse", [made[7], {**made[8], "region": f"{SECRET}twice"}])
    return made


def mask_file(shop: ReconciledShop, mask: str = "[region]") -> None:
    """Name masked columns in the pipeline file."""
    shop.file.write_text(shop.file.read_text().replace("\npoints:", f"\nmask: {mask}\npoints:"))


def dump(shop: ReconciledShop) -> Iterator[str]:
    """Yield every row of every table of the journal that has a secret, with the table's name."""
    tables = shop.journal_sql("select tablename from pg_tables where schemaname = 'makewhole'")
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


def repaired(shop: ReconciledShop, context: WindowContext) -> ClosedWindow:
    """Plan, repair, prove and close a window that was judged."""
    assert plan_window(context).plan is not None
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    return shop.certify(context)


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


def test_values_of_a_column_that_was_masked_later_and_of_a_pipeline_without_its_file_are_hidden(
    shop: ReconciledShop, tmp_path: Path
) -> None:
    masked_shop(shop, mask="[amount]")
    shop.judge_and_ask_the_gate()

    def shown(name: str) -> str:
        file = tmp_path / name
        said("export", "shop", "--window", "1", "-o", str(file))
        with zipfile.ZipFile(file) as opened:
            exported = opened.read("findings.jsonl").decode()
        return exported + said("findings", "shop", "--window", "1", "--json")

    assert SECRET in shown("before.zip")
    text = shop.file.read_text()
    shop.file.write_text(text.replace("mask: [amount]", "mask: [amount, region]"))
    assert SECRET not in shown("masked.zip")
    shop.file.unlink()
    assert SECRET not in shown("absent.zip")


def test_neither_hashes_of_rows_nor_files_of_findings_have_values(shop: ReconciledShop) -> None:
    masked_shop(shop)
    context = shop.judge_and_ask_the_gate()

    finding = next(item for item in judged(shop, context) if item.key == "O4")
    row_hash, storage = row_hash_of(finding), Storage.from_environment()
    assert row_hash is not None
    stored = dict(finding.evidence)
    assert stored["row_hash"] != str(row_hash)
    assert stored["masked"]["columns"] == ["region"]
    assert shop.journal_sql("select 1 from makewhole.finding where evidence::text like %s", f"%{row_hash}%") == []
    files = [file.path for file in storage.files_below("shop") if "/findings/" in file.path]
    texts = [str(frame.rows()) for path in files if (frame := storage.read_parquet([path])) is not None]
    assert texts
    assert [text for text in texts if SECRET in text] == []
    assert stat.S_IMODE((shop.folder / "storage" / "mask.key").stat().st_mode) == 0o600


def judged(shop: ReconciledShop, context: WindowContext) -> list[Finding]:
    with connect(shop.journal) as journal:
        return [item.finding for item in window_findings.findings(journal, context.window)]


def test_verify_sees_a_wrong_masked_value_and_says_no_value(shop: ReconciledShop) -> None:
    masked_shop(shop)
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    compensate_window(context, lambda _: None)
    shop.sql("update warehouse set region = %s where id in ('O4', 'O6')", f"{SECRET}later")
    shop.sql("update warehouse set region = %s where id = 'O8'", f"{SECRET}one")
    shop.write("warehouse", [{"id": "O8", "number": 8, "region": f"{SECRET}two", "amount": "8.50", "at": AT}])

    verify_window(context, lambda *_: None)

    assert shop.outcome_of(context, STORE_HOP, "O4") == ("open", "warehouse holds other values in region")
    assert shop.outcome_of(context, STORE_HOP, "O6") == ("open", "warehouse holds other values in region")
    assert shop.outcome_of(context, STORE_HOP, "O7") == ("repaired", None)
    assert shop.outcome_of(context, STORE_HOP, "O8") == (
        "open",
        "warehouse holds it 2 times, and no row agrees with the source in region; correct one of them by hand",
    )
    compared = shop.evidence(context, STORE_HOP, "O8")["compared"]
    assert [row["region"].startswith("masked:") for row in [compared["source"], *compared["warehouse"]]] == [True] * 3
    assert [*dump(shop)] == []
    assert shop.certify(context).state is WindowState.GAPS


def test_a_mask_that_comes_or_goes_between_verdict_and_proof_changes_no_outcome(shop: ReconciledShop) -> None:
    masked_shop(shop)
    masked = shop.file.read_text()
    in_clear = masked.replace("\nmask: [region]", "")
    shop.file.write_text(in_clear)
    context, _ = half_way(shop, then=masked)
    assert set(shop.outcomes(context).values()) == {"repaired"}
    assert [row.split(":")[0] for row in dump(shop)] == ["finding"] * 5  # as they were judged
    texts = [said("findings", "shop", "--window", "1", "--json"), said("explain", "shop", "O6", "--json")]
    assert [text for text in texts if SECRET in text or "masked:" not in text] == []

    shop.sql("update warehouse set region = %s where id = 'O5'", f"{SECRET}again")
    shop.file.write_text(masked)
    again, closed = half_way(shop, then=in_clear)
    assert shop.outcomes(again) == {"O5": "repaired"}
    assert closed.state is WindowState.CERTIFIED


def half_way(shop: ReconciledShop, then: str) -> tuple[WindowContext, ClosedWindow]:
    """Judge a window with the file that is there, and plan, repair and prove it with another."""
    context = shop.judge_and_ask_the_gate()
    shop.file.write_text(then)
    context = window_context(context.window, shop.pipeline)
    plan_window(context)
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    return context, shop.certify(context)


def test_nothing_is_proven_with_another_key_or_none(shop: ReconciledShop) -> None:
    masked_shop(shop)
    context = shop.judge_and_ask_the_gate()
    key = shop.folder / "storage" / "mask.key"
    content = key.read_bytes()
    key.unlink()
    read_again()
    with pytest.raises(CorruptionError, match=r"mask\.key, the key of masked values, is gone: restore it from a copy"):
        plan_window(context)
    key.write_bytes(bytes(32))
    read_again()
    with pytest.raises(CorruptionError, match=r"was masked with key [0-9a-f]{8}, and .*mask\.key is key 34ce0b03"):
        plan_window(context)

    key.write_bytes(content)
    read_again()
    assert repaired(shop, context).state is WindowState.CERTIFIED


def read_again() -> None:
    """Read the key from its file again, as another process would."""
    mask_key._read.cache_clear()


def test_a_key_is_erased_and_the_window_stands(shop: ReconciledShop) -> None:
    masked_shop(shop)
    context = shop.judge_and_ask_the_gate()
    assert repaired(shop, context).state is WindowState.CERTIFIED
    with JournalSession(shop.journal) as journal:
        erase_key(
            ErasureContext(
                journal=journal,
                storage=Storage.from_environment(),
                connections=connections_of(shop.pipeline),
                signing_key=signing_key_from_environment(),
            ),
            EraseRequest(pipeline=shop.pipeline, key="O6", asked_by="dana", reason="request 17"),
        )

    assert verified(shop) == []
    assert [finding.key for finding in judged(shop, context)].count("O6") == 0
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    assert [*dump(shop)] == []


@pytest.mark.parametrize("remedy", ["redeliver", "upsert"])
def test_versions_are_repaired_and_proven_masked(shop: ReconciledShop, remedy: str) -> None:
    shop.more_columns = {"version": "int"}
    shop.sql("alter table outbox add version int")
    shop.sql("alter table warehouse add version int")
    shop.describe(
        is_upsert=True,
        has_version=True,
        compare=COMPARE,
        compensation={"missing": remedy, "mismatched": remedy, "limits": "{share: 1.0}"},
    )
    mask_file(shop)
    first = [{**order, "version": 1} for order in secretive(orders(range(6)))]
    second = [{**order, "version": 2, "region": f"{SECRET}new-{order['id']}"} for order in first[:3]]
    shop.write("outbox", [*second, *first[3:]])
    shop.send([*first, *second])
    shop.write("warehouse", [*first[:2], second[2], first[3], first[4]])  # O0, O1 are old, O5 is missing
    context = shop.judge_and_ask_the_gate()
    plan = plan_window(context).plan
    assert plan is not None
    assert dict(plan.counts) == {remedy: 3}
    compensate_window(context, lambda _: None)
    if remedy == "redeliver":  # the consumer does its own work
        shop.sql("delete from warehouse where id in ('O0', 'O1')")
        shop.write("warehouse", [second[0], {**second[1], "region": f"{SECRET}wrong"}, first[5]])
    verify_window(context, lambda *_: None, patience_seconds=0)

    wrong = ("open", "warehouse holds other values in region")
    repaired_now = ("repaired", None)
    assert [shop.outcome_of(context, STORE_HOP, key) for key in ("O0", "O1", "O5")] == [
        repaired_now,
        wrong if remedy == "redeliver" else repaired_now,
        repaired_now,
    ]
    assert [*dump(shop)] == []


def test_what_a_ledger_sends_and_a_person_accepts_is_masked(shop: ReconciledShop) -> None:
    made = masked_shop(shop)
    lost, kept, other = secretive(orders(range(20, 23)))
    shop.write("outbox", [lost, kept])
    shop.write("warehouse", [kept, other])  # of O22 nothing was sent
    shop.send([kept])
    shop.sql("update warehouse set region = %s where id = 'O21'", f"{SECRET}stays")
    context = shop.judge_and_ask_the_gate()
    alone = judged_alone(shop, context, "O6", "O20", "O21")
    assert {(verdict.hop, verdict.verdict) for verdict in alone if verdict.verdict != "matched"} == {
        (LEDGER_HOP, "missing"),
        (STORE_HOP, "mismatched"),
    }
    assert [verdict for verdict in alone if SECRET in str(verdict)] == []
    assert plan_window(context).plan is not None
    compensate_window(context, lambda _: None)
    shop.write("warehouse", [lost])  # as its consumer does
    verify_window(context, lambda *_: None)
    assert shop.outcome_of(context, LEDGER_HOP, "O20") == ("repaired", None)
    assert dict(rows(shop)) == {order["id"]: order["region"] for order in [*made, lost, kept, other]}
    assert shop.certify(context).state is WindowState.GAPS

    _, closed = accepted(shop, "O22")

    assert closed.state is WindowState.CERTIFIED
    assert opened_again(shop) == []
    assert [*dump(shop)] == []
    shop.sql("update warehouse set region = %s where id = 'O22'", f"{SECRET}changed")
    assert len(opened_again(shop)) == 1
