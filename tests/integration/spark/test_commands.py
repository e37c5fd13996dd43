"""Test what commands say, and the codes they exit with, of what is not there, not whole or oddly written."""

import json
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal.database import connect
from makewhole.journey.copies import windows_holding
from makewhole.lake.storage import Storage
from makewhole.model.window import WindowState
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "400"})


def held(shop: ReconciledShop, *keys: str) -> dict[str, list[int]]:
    """Return the windows that hold these keys."""
    with connect(shop.journal) as journal:
        by_key = windows_holding(journal, shop.pipeline, Storage.from_environment(), keys)
    return {key: [window.number for window in windows] for key, windows in by_key.items()}


def places(shop: ReconciledShop, key: str) -> list[tuple[str, int]]:
    """Return place and revision of each record of a key, as `explain` has them."""
    result = run("explain", shop.pipeline.name, key, "--json")
    assert result.exit_code == 0, result.output
    return [
        (copy["place"], copy["revision"])
        for point in json.loads(result.stdout)["points"]
        for copy in point["copies"]
        if "revision" in copy
    ]


@pytest.mark.parametrize("command", [("windows",), ("findings",), ("certificate", "verify")], ids=" ".join)
def test_a_name_that_no_pipeline_has_is_wrong_usage(shop: ReconciledShop, command: tuple[str, ...]) -> None:
    result = run(*command, "shopp")

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "could not: pipeline folders: shopp: no good pipeline file has this name. Known are: flights, shop. "
        "Check the files with `makewhole check`\n"
    )


@pytest.mark.parametrize(
    "arguments", [("windows", "\udcff"), ("findings", "\udcff"), ("plan", "show", "\udcff")], ids=lambda pair: pair[0]
)
def test_what_was_not_foreseen_could_not_run_and_is_no_gap(shop: ReconciledShop, arguments: tuple[str, ...]) -> None:
    """A shell can pass bytes that are no text."""
    result = run(*arguments)

    assert (result.exit_code, result.stdout) == (4, "")
    assert "UnicodeEncodeError" in result.stderr


def test_a_pipeline_whose_file_is_gone_still_shows_its_windows_and_proofs(shop: ReconciledShop) -> None:
    made = orders(range(5))
    shop.trade(made, unloaded=made[4:])
    shop.whole_way()
    text = shop.file.read_text()
    shop.file.unlink()

    listed, findings, proofs = run("windows", "shop"), run("findings", "shop"), run("certificate", "verify", "shop")

    assert (listed.exit_code, findings.exit_code, proofs.exit_code) == (0, 0, 3)
    assert "1 missing" in listed.stdout
    assert "lost_after_topic" in findings.stdout
    assert proofs.stdout == "shop: 0 certificates, nothing is proven yet\n"
    shop.file.write_text(text)


def test_what_only_an_older_revision_could_read_is_found_by_key(shop: ReconciledShop) -> None:
    made = orders(range(5))
    shop.trade(made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    assert places(shop, "O3") == [("0:3", 1)]
    shop.delete_records({0: 5})
    shop.whole_way()
    for table in ("outbox", "warehouse"):
        shop.sql(f"delete from {table}")
    shop.ask()  # a third revision, which broke off before it read anything

    assert places(shop, "O3") == [("0:3", 1)]
    assert held(shop, "O3", "O99") == {"O3": [1], "O99": []}


def test_a_certificate_is_verified_down_to_the_bytes_of_the_files_that_were_judged(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    context, closed = shop.whole_way()
    assert closed.certificate is not None
    verify = ("certificate", "verify", "shop", "--files", "--json")
    sound = run(*verify)
    assert (sound.exit_code, json.loads(sound.stdout)["problems"]) == (0, [])
    file = min(path for path in shop.manifests(context)["warehouse"]["sha256"] if path.endswith(".parquet"))
    written = Path(context.storage.root) / file
    content = written.read_bytes()
    middle = len(content) // 2
    written.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])

    changed = run(*verify)

    assert changed.exit_code == 1
    assert json.loads(changed.stdout)["problems"] == [
        f"certificate 1 (window 1): {context.storage.uri(file)} is not what was written: its SHA-256 is another one"
    ]
    assert run("certificate", "verify", "shop").exit_code == 0  # without --files they are not read
    written.unlink()
    assert json.loads(run(*verify).stdout)["problems"] == [
        f"certificate 1 (window 1): {context.storage.uri(file)} is not there any more"
    ]


def test_a_certificate_holds_the_version_and_the_plan_that_decided(shop: ReconciledShop) -> None:
    made = orders(range(5))
    shop.trade(made)
    shop.write("warehouse", made[:1])
    context = shop.judge_and_ask_the_gate()
    plan = plan_window(context).plan
    assert plan is not None
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None, patience_seconds=0)

    closed = shop.certify(context)

    assert closed.certificate is not None
    body = closed.certificate.body
    assert body["decided_by"]["makewhole"] == version("makewhole")
    signed = body["how"]["plan"]
    assert (signed["id"], signed["sha256"], signed["actions"]) == (plan.id, plan.sha256, {"quarantine": 1})
    assert signed["approval"] == {"sha256": plan.sha256, "decision": "not_needed", "by": None}
    assert [receipt["actions"] for receipt in signed["receipts"]] == [1]
