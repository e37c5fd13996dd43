"""Test `erase`: a key goes from every place, others stay, certificates hold, and nothing brings it back."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.undo.plan_undo import plan_undo
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.erasure.archived_records import segments_of
from makewhole.erasure.erase_key import EraseRequest, ErasureContext, ErasureDone, erase_key, holdings_of, paths_below
from makewhole.journal.database import JournalSession, connect
from makewhole.journal.findings import window_findings
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.retention.file_locks import files_kept, files_kept_by, require_files
from makewhole.kafka.log.segment import SIDECAR
from makewhole.key_index.status import compact
from makewhole.lake.storage import Storage
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.window import WindowState
from makewhole.orchestration.housekeeping import erase_what_came_back
from makewhole.signing.key_files import believed_keys, signing_key_from_environment
from makewhole.sql import PgConnection
from makewhole.window.certifying.certificate_check import check_chain
from makewhole.window.certifying.chain_evidence import file_problems, read_evidence
from makewhole.window.certifying.erased_contents import erased_contents
from makewhole.window.context import WindowContext, connections_of
from tests.integration.spark.test_export import export, members, verify
from tests.integration.spark.test_keep import UPSERT, keep, repaired
from tests.world.acceptances import accepted
from tests.world.orders import orders
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def request_of(shop: ReconciledShop, key: str) -> EraseRequest:
    return EraseRequest(pipeline=shop.pipeline, key=key, asked_by="dana", reason="request 17")


def erased(shop: ReconciledShop, key: str) -> ErasureDone:
    """Erase a key as the command does."""
    with JournalSession(shop.journal) as journal:
        return erase_key(context_of(shop, journal), request_of(shop, key))


def context_of(shop: ReconciledShop, journal: JournalSession) -> ErasureContext:
    return ErasureContext(
        journal=journal,
        storage=Storage.from_environment(),
        connections=connections_of(shop.pipeline),
        signing_key=signing_key_from_environment(),
    )


def require_whole_archives() -> None:
    """Check that each file of records is what stands beside it."""
    storage = Storage.from_environment()
    for path, segment in segments_of(storage, storage.files_below("shop")).items():
        records = path.replace(SIDECAR, ".log")
        assert (storage.sha256(records), len(storage.read_bytes(records))) == (segment.sha256, segment.size_bytes)


def verified(shop: ReconciledShop) -> list[str]:
    """Return what is wrong with the chain, its anchors, its files and the erasures."""
    storage = Storage.from_environment()
    with connect(shop.journal) as journal:
        ring = believed_keys()
        evidence = read_evidence(journal, storage, "shop", ring)
        known = erased_contents(journal, "shop", ring)
        changed = file_problems(journal, storage, evidence.entries, known)
        return [*check_chain(evidence).problems, *known.problems, *changed]


def places_of(shop: ReconciledShop, text: str, key_hash: str) -> list[str]:
    """Return every place in storage, journal and targets where a key's text or hash is, by brute force."""
    storage = Storage.from_environment()
    paths = []
    halves = [int(key_hash[:16], 16).to_bytes(8, "little"), int(key_hash[16:], 16).to_bytes(8, "little")]
    for file in storage.files_below("shop"):
        content = storage.read_bytes(file.path)
        if text.encode() in content or key_hash.encode() in content:
            paths.append(file.path)
        elif file.path.endswith(".parquet"):
            frame = storage.read_parquet([file.path])
            assert frame is not None
            if any(text in str(row) or key_hash in str(row) for row in frame.rows()) or (
                "key_hi" in frame.columns
                and any(
                    (high, low) == tuple(int.from_bytes(half, "little") for half in halves)
                    for high, low in frame.select("key_hi", "key_lo").rows()
                )
            ):
                paths.append(file.path)
    for run, schema in ((shop.journal_sql, "makewhole"), (shop.sql, "makewhole")):
        tables = run("select table_name from information_schema.tables where table_schema = %s", schema)
        for (table,) in tables:
            rows = run(f"select count(*) from makewhole.{table} as t where t::text like %s", f"%{text}%")
            hashes = run(f"select count(*) from makewhole.{table} as t where t::text like %s", f"%{key_hash}%")
            if rows != [(0,)] or hashes != [(0,)]:
                paths.append(table)
    return sorted(paths)


def test_a_key_goes_everywhere_and_the_certificates_stand(shop: ReconciledShop) -> None:
    shop.describe(compensation=UPSERT)
    made = orders(range(900_101, 900_106))
    shop.trade(made, unloaded=made[:2])
    shop.write("warehouse", [made[3]])
    repaired(shop)
    shop.trade(orders(range(100, 105), 1))
    shop.whole_way(1)
    key = request_of(shop, "O900101").erased
    before = {place.split("/")[-2] if "/" in place else place for place in places_of(shop, key.text, key.hash)}
    assert {"finding", "planned_action", "effect"} <= before
    rows = shop.sql("select * from warehouse order by 1, 2")

    outcome = erased(shop, "O900101")

    assert places_of(shop, key.text, key.hash) == []
    assert (outcome.stays, outcome.rows_at_targets) == ((), 1)
    assert shop.sql("select * from warehouse order by 1, 2") == rows
    assert places_of(shop, "O900102", request_of(shop, "O900102").erased.hash) != []
    assert verified(shop) == []
    with JournalSession(shop.journal) as journal:
        again = holdings_of(context_of(shop, journal), key, paths_below(Storage.from_environment(), "shop"))
    assert again.is_empty


def findings_of(shop: ReconciledShop, context: WindowContext) -> list[JudgedFinding]:
    with connect(shop.journal) as journal:
        return window_findings.findings(journal, context.window)


def test_a_later_window_neither_repairs_an_erased_key_nor_keeps_it(shop: ReconciledShop) -> None:
    shop.describe(compensation=UPSERT)
    shop.trade(orders(range(5)))
    shop.whole_way(0)
    key = request_of(shop, "O900101").erased
    assert erased(shop, "O900101").holdings.is_empty
    made = orders(range(900_101, 900_106), 1)
    shop.trade(made, unloaded=made[:2])

    context = shop.judge_and_ask_the_gate(1)

    judged_keys = {
        (judged.finding.key, judged.finding.verdict.value, judged.finding.evidence.get("erased", "")[:29])
        for judged in findings_of(shop, context)
        if judged.finding.hop == STORE_HOP
    }
    assert judged_keys == {
        ("O900101", "erased", f"erased on request at {datetime.now(UTC):%Y-%m}-"),
        ("O900102", "missing", ""),
    }
    plan = plan_window(context).plan
    assert plan is not None
    assert plan.actions == 1
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    assert shop.certify(context).state is WindowState.CERTIFIED
    assert shop.sql("select id from warehouse where id in ('O900101', 'O900102')") == [("O900102",)]
    assert places_of(shop, key.text, key.hash) != []

    erase_what_came_back("shop")

    assert places_of(shop, key.text, key.hash) == []
    assert verified(shop) == []
    erase_what_came_back("shop")
    assert shop.journal_sql("select count(*) from makewhole.erasure") == [(2,)]


def test_the_row_of_an_erased_key_that_stays_in_a_store_is_named_and_left_alone(shop: ReconciledShop) -> None:
    """Its record is known no more, as its window's files do not have it."""
    shop.describe(compensation=UPSERT | {"unexpected": "quarantine"}, has_ledger=False)
    shop.send(orders(range(900_101, 900_106)))
    shop.write("warehouse", orders(range(900_101, 900_106)))
    shop.whole_way(0)
    erased(shop, "O900101")
    shop.sql("update warehouse set at = at + interval '1 day' where id = 'O900101'")
    later = orders(range(100, 105), 1)
    shop.send(later)
    shop.write("warehouse", later)
    rows = shop.sql("select * from warehouse order by id")

    context = shop.judge_and_ask_the_gate(1)

    ((verdict, evidence),) = [
        ((judged.finding.key, judged.finding.verdict.value), judged.finding.evidence)
        for judged in findings_of(shop, context)
    ]
    assert verdict == ("O900101", "unexpected")
    assert evidence["erased"].startswith(f"erased on request at {datetime.now(UTC):%Y-%m}-")
    assert plan_window(context).plan is None
    assert shop.certify(context).state is WindowState.GAPS
    assert shop.sql("select * from warehouse order by id") == rows
    assert accepted(shop, "O900101", window=2)[1].state is WindowState.CERTIFIED


def test_an_erasure_that_is_killed_anywhere_goes_on(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.describe(compensation=UPSERT)
    made = orders(range(900_101, 900_106))
    shop.trade(made, unloaded=made[:2])
    repaired(shop)
    key = request_of(shop, "O900101").erased
    put = Storage.put_in_place
    for step in range(4):
        left = iter(range(step))

        def dies(storage: Storage, written: str, path: str, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt(path)
            put(storage, written, path)

        with monkeypatch.context() as patched:
            patched.setattr(Storage, "put_in_place", dies)
            with pytest.raises(KeyboardInterrupt):
                erased(shop, "O900101")
        wrong = verified(shop)
        assert any("did not come to its end" in problem for problem in wrong)
        assert not any("not what was written" in problem for problem in wrong)
    erased(shop, "O900101")
    assert places_of(shop, key.text, key.hash) == []
    assert verified(shop) == []
    assert shop.journal_sql("select count(*) from makewhole.erasure") == [(1,)]
    require_whole_archives()


def test_what_waits_refuses_an_erasure_and_a_plan_without_its_key_is_not_undone(shop: ReconciledShop) -> None:
    shop.describe(compensation=UPSERT)
    made = orders(range(900_101, 900_106))
    shop.trade(made, unloaded=made[:2])
    context = shop.judge_and_ask_the_gate(0)
    with pytest.raises(RefusedError, match="no key of shop can be erased now: window 1 is open"):
        erased(shop, "O900101")
    plan = plan_window(context).plan
    assert plan is not None
    with pytest.raises(RefusedError, match=f"plan {plan.id} is frozen; window 1 is open"):
        erased(shop, "O900101")
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    shop.certify(context)
    assert erased(shop, "O900103").holdings.plans == ()
    assert erased(shop, "O900101").rows_at_targets == 1
    with pytest.raises(RefusedError, match=f"undo of plan {plan.id} is no longer possible: a key of it was erased on"):
        plan_undo(context, plan.id, reverses=False)


def test_the_record_is_signed_and_a_changed_one_excuses_nothing(shop: ReconciledShop) -> None:
    shop.describe(compensation=UPSERT)
    shop.trade(orders(range(900_101, 900_106)))
    shop.whole_way(0)
    answer = CliRunner().invoke(app, ["erase", "shop", "O900101", "--dry-run", "--json"])
    planned = json.loads(answer.output)
    assert (answer.exit_code, planned["is_dry"], len(planned["archives"])) == (0, True, 2)
    assert CliRunner().invoke(app, ["erase", "shop", "O900101", "--yes"]).exit_code == 2
    answer = CliRunner().invoke(
        app, ["erase", "shop", "-", "--reason", "request 17", "--by", "dana", "--yes", "--json"], input="O900101\n"
    )
    done = json.loads(answer.output)
    assert (answer.exit_code, done["archives"], done["files"]) == (0, planned["archives"], planned["files"])

    answer = CliRunner().invoke(app, ["certificate", "verify", "shop", "--files"])
    assert (answer.exit_code, "a key was erased on request at" in answer.output) == (0, True)
    shop.journal_sql("update makewhole.erasure set body = jsonb_set(body, '{asked_by}', '\"eve\"')")
    answer = CliRunner().invoke(app, ["certificate", "verify", "shop", "--files"])
    output = " ".join(answer.output.split())
    assert (answer.exit_code, "erasure 1: its signature is not that of a key" in output) == (1, True)
    assert "is not what was written" in output


def test_the_archive_for_an_auditor_holds_after_an_erasure(
    shop: ReconciledShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(compensation=UPSERT)
    shop.trade(orders(range(5)))
    shop.whole_way(0)
    made = orders(range(900_101, 900_106), 1)
    shop.trade(made, unloaded=made[:2])
    repaired(shop, 1)
    erased(shop, made[0]["id"])
    file, public = export(shop, tmp_path, monkeypatch)
    code, output = verify(file, public)
    assert (code, "sound" in output) == (0, True)
    assert all(made[0]["id"].encode() not in content for content in members(file).values())


def test_an_erasure_keeps_apart_from_whatever_else_changes_files(shop: ReconciledShop) -> None:
    shop.describe(keep={"archives": "30d"}, compensation=UPSERT)
    shop.trade(orders(range(900_101, 900_106)))
    shop.whole_way(0)
    storage = Storage.from_environment()
    with connect(shop.journal) as other, files_kept(other, "shop"):
        with pytest.raises(TransientError, match="files of shop are being merged, removed, or written again"):
            erased(shop, "O900101")
        with connect(shop.journal) as another, files_kept(another, "shop"):
            pass  # merges do not keep each other away
    assert shop.journal_sql("select count(*) from makewhole.erasure") == [(0,)]
    with JournalSession(shop.journal) as session:
        with session.transaction() as journal:
            require_files(journal, "shop")
        with connect(shop.journal) as other, pytest.raises(TransientError, match="a key of shop is being erased"):
            list(compact(other, storage, "shop"))
        with pytest.raises(TransientError, match="a key of shop is being erased"):
            keep(shop)
        with pytest.raises(TransientError, match="written again by another erasure"):
            erased(shop, "O900101")
    assert not erased(shop, "O900101").holdings.is_empty
    with connect(shop.journal) as other:
        assert [merged.merges for merged in compact(other, storage, "shop")] == [0]


def test_files_are_not_kept_by_a_session_that_broke(shop: ReconciledShop) -> None:
    """An erasure may have begun since: who removes files stops, and the next run goes on."""
    with JournalSession(shop.journal) as session:
        with session.transaction() as journal:
            backend = journal.info.backend_pid
        broken = pytest.raises(TransientError, match="broke, and its locks ended with it; try again")
        with broken, files_kept_by(session, "shop"):
            shop.journal_sql("select pg_terminate_backend(%s)", backend)
            with connect(shop.journal) as erasing:
                wait_for_files(erasing)
            with session.transaction():
                pass
        with session.transaction() as journal:
            assert journal.info.backend_pid != backend


def wait_for_files(journal: PgConnection) -> None:
    """Wait until a session that was ended has left the files."""
    for _ in range(100):
        with suppress(TransientError):
            return require_files(journal, "shop")
        time.sleep(0.05)
    raise AssertionError("the session holds its lock still")
