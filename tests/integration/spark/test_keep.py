"""Test `keep`: what goes after its time, what stays all the same, and what is said once it is gone."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.sources.original_records import WindowRecords
from makewhole.compensation.undo.plan_undo import plan_undo
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal.database import JournalSession, connect
from makewhole.kafka.log.archive import REMOVED
from makewhole.lake.storage import Storage
from makewhole.model.plan import Plan
from makewhole.model.window import WindowState
from makewhole.retention.house import Outcome, house_of
from makewhole.retention.keep_house import keep_house
from makewhole.signing.key_files import believed_keys
from makewhole.window.certifying.certificate_check import check_chain
from makewhole.window.certifying.chain_evidence import file_problems, read_evidence
from makewhole.window.context import WindowContext
from tests.world.acceptances import accepted, opened_again
from tests.world.accepted_windows import OBSERVE
from tests.world.combinations import with_every_change
from tests.world.orders import orders
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

LONG_AGO = timedelta(days=100)
UPSERT = {"missing": "upsert", "limits": "{share: 1.0}"}


def age(shop: ReconciledShop) -> None:
    """Make everything that was closed until now be closed a hundred days ago."""
    shop.journal_sql("update makewhole.window set closed_at = closed_at - %s", LONG_AGO)
    shop.journal_sql(
        "update makewhole.plan set frozen_at = frozen_at - %s, ended_at = ended_at - %s", LONG_AGO, LONG_AGO
    )


def age_files(storage: Storage) -> None:
    """Make everything that was written until now be written long ago."""
    for file in storage.files_below("shop"):
        os.utime(Path(storage.root.removeprefix("file://")) / file.path, times=(0, 0))


def keep(shop: ReconciledShop, *, is_dry: bool = False) -> list[Outcome]:
    """Remove what was kept long enough."""
    with JournalSession(shop.journal) as journal:
        return list(keep_house(house_of(shop.pipeline, journal, is_dry=is_dry)))


def archived(storage: Storage, window: int) -> list[str]:
    files = storage.files_below(f"shop/window={window}")
    return [file.path for file in files if "/archive/" in file.path]


def days(shop: ReconciledShop, count: int = 3) -> list[WindowContext]:
    """Trade and certify some days."""
    contexts = []
    for day in range(count):
        shop.trade(orders(range(100 * day, 100 * day + 5), day))
        context, closed = shop.whole_way(day)
        assert closed.state is WindowState.CERTIFIED
        contexts.append(context)
    return contexts


def chain_problems(shop: ReconciledShop) -> list[str]:
    """Return what is wrong with the chain, its anchors and every file that it vouches for."""
    storage = Storage.from_environment()
    with connect(shop.journal) as journal:
        evidence = read_evidence(journal, storage, "shop", believed_keys())
        return [*check_chain(evidence).problems, *file_problems(journal, storage, evidence.entries)]


def repaired(shop: ReconciledShop, day: int = 0) -> tuple[WindowContext, Plan]:
    """Judge, repair and certify a day."""
    context = shop.judge_and_ask_the_gate(day)
    plan = plan_window(context).plan
    assert plan is not None
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    assert shop.certify(context).state is WindowState.CERTIFIED
    return context, plan


def test_archives_go_after_their_time_and_readers_say_when(shop: ReconciledShop) -> None:
    shop.describe(keep={"archives": "30d"})
    first, *_ = days(shop)
    storage = Storage.from_environment()
    storage.write_bytes("other/window=1/revision=1/orders/archive/partition=0/0.log", b"of another pipeline")
    assert keep(shop) == []
    age(shop)
    fresh = archived(storage, 3)
    assert len(fresh) == 2

    planned = keep(shop, is_dry=True)
    assert [(leftover.window, leftover.amount.files, leftover.stays) for leftover in planned] == [
        (1, 2, None),
        (2, 2, None),
    ]
    assert len(archived(storage, 1)) == 2
    assert keep(shop) == planned

    assert (archived(storage, 1), archived(storage, 2), archived(storage, 3)) == ([], [], fresh)
    assert storage.read_if_exists("other/window=1/revision=1/orders/archive/partition=0/0.log") is not None
    assert keep(shop) == []
    assert chain_problems(shop) == []
    records = WindowRecords(first)
    assert list(records.records("orders", [(0, 0)])) == []
    removed = records.removed("orders")
    assert removed is not None
    assert (
        "/shop/window=1/revision=1/orders/archive is not there any more: records were kept 30d, and removed" in removed
    )
    again, closed = shop.whole_way(0)
    assert (again.window.revision, closed.state) == (2, WindowState.CERTIFIED)
    assert len(archived(storage, 1)) == 2


def test_a_file_that_went_otherwise_is_still_a_problem_of_the_chain(shop: ReconciledShop) -> None:
    shop.describe(keep={"archives": "30d"})
    days(shop, 2)
    age(shop)
    keep(shop)
    storage = Storage.from_environment()
    gone = next(file.path for file in storage.files_below("shop/window=1") if "/keys/" in file.path)
    storage.remove(gone)
    storage.remove(archived(storage, 2)[0])
    assert len(chain_problems(shop)) == 2


def test_killed_in_the_middle_the_next_run_goes_on(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.describe(keep={"archives": "30d"})
    first, _ = days(shop, 2)
    age(shop)
    left = iter([True])

    def dies(storage: Storage, path: str) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt(path)
        remove(storage, path)

    remove = Storage.remove
    with monkeypatch.context() as patched:
        patched.setattr(Storage, "remove", dies)
        with pytest.raises(KeyboardInterrupt):
            keep(shop)
    storage = Storage.from_environment()
    assert len(archived(storage, 1)) == 1
    records = WindowRecords(first)
    assert list(records.records("orders", [(0, 0)])) == []
    assert "kept 30d" in (records.removed("orders") or "")

    assert [leftover.amount.files for leftover in keep(shop)] == [1]
    assert (archived(storage, 1), keep(shop)) == ([], [])
    assert shop.journal_sql("select removed ->> 'files' from makewhole.removal") == [("2",)]


def test_a_window_that_waits_for_something_keeps_all(shop: ReconciledShop) -> None:
    shop.describe(keep={"archives": "30d", "attempts": "30d", "findings": "30d"}, compensation=UPSERT)
    made = orders(range(5))
    shop.trade(made, unloaded=made[:1])
    context, plan = repaired(shop)
    shop.trade(orders(range(100, 105), 1))
    shop.whole_way(1)
    age(shop)
    undo = plan_undo(context, plan.id, reverses=False).plan
    assert undo is not None
    assert keep(shop) == []


@pytest.mark.parametrize("is_for_good", with_every_change([False, True], first=1))
def test_archives_stay_while_a_finding_is_accepted_for_a_time(shop: ReconciledShop, *, is_for_good: bool) -> None:
    """The finding is open again then, and is repaired from its record."""
    shop.describe(keep={"archives": "30d"}, compensation=OBSERVE)
    made = orders(range(5))
    shop.trade(made, unloaded=made[:1])
    shop.whole_way(0)
    until = None if is_for_good else datetime.now(UTC) + timedelta(days=1)
    assert accepted(shop, made[0]["id"], until=until)[1].state is WindowState.CERTIFIED
    shop.trade(orders(range(100, 105), 1))
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED
    age(shop)
    if is_for_good:
        assert [leftover.kind.value for leftover in keep(shop)] == ["archives"]
        return

    assert keep(shop) == []
    shop.journal_sql("update makewhole.acceptance set until = now()")
    assert keep(shop) == []
    assert [window.closed.state for window in opened_again(shop)] == [WindowState.GAPS]
    assert keep(shop) == []
    shop.write("warehouse", made[:1])
    assert shop.whole_way(0)[1].state is WindowState.CERTIFIED
    age(shop)
    assert [leftover.kind.value for leftover in keep(shop)] == ["archives"]


def test_files_of_attempts_that_died_go_and_named_ones_stay(shop: ReconciledShop) -> None:
    shop.describe(keep={"attempts": "2d"}, compensation=UPSERT)
    made = orders(range(5))
    shop.trade(made, unloaded=made[:1])
    shop.write("warehouse", [made[3]])
    context, _ = repaired(shop)
    shop.trade(orders(range(100, 105), 1))
    shop.whole_way(1)
    storage = context.storage
    dead = f"{context.window.prefix}/orders/keys/bucket=00of1/part-dead.parquet"
    storage.write_bytes(dead, b"half")
    storage.write_bytes("shop/window=1/notes.txt", b"of a person")
    age(shop)
    age_files(storage)
    at_work = f"{context.window.prefix}/of_keys/1/orders/keys/part-at-work.parquet"
    storage.write_bytes(at_work, b"of a process at work")
    before = {file.path for file in storage.files_below("shop")}
    [outcome] = keep(shop)
    gone = before - {file.path for file in storage.files_below("shop")}
    assert (dead in gone, at_work in gone, outcome.amount.files) == (True, False, len(gone))
    assert {path.split("/")[4] for path in gone - {dead}} <= {"untraced"}
    assert chain_problems(shop) == []
    age_files(storage)
    assert [outcome.amount.files for outcome in keep(shop)] == [1]
    assert (storage.read_if_exists(at_work), keep(shop)) == (None, [])
    again, closed = shop.whole_way(0)
    assert (again.window.revision, closed.state) == (2, WindowState.CERTIFIED)


def test_what_attempts_left_outside_the_folders_of_windows_goes_too(shop: ReconciledShop) -> None:
    shop.describe(keep={"attempts": "2d"})
    days(shop, 2)
    storage = Storage.from_environment()
    dead = {
        "shop/index/orders/window=1/bucket=00of1/part-dead.parquet",
        "shop/index/orders/window=1/bucket=00of1/part-dead.filter",
        f"shop/certificates/000001.json.{0:016}.unfinished",
        f"shop/window=1/revision=1/orders/archive/partition=0/.{0:020}.{0:032}.tmp",
    }
    for path in (*dead, "shop/index/orders/window=2/part-of-newest.parquet", "shop/certificates/notes.txt"):
        storage.write_bytes(path, b"half")
    age(shop)
    age_files(storage)
    before = {file.path for file in storage.files_below("shop")}
    [outcome] = keep(shop)
    gone = before - {file.path for file in storage.files_below("shop")}
    assert (gone, outcome.amount.files) == (dead, len(dead))
    assert chain_problems(shop) == []
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED  # it asks the key index


def test_findings_lose_their_keys_unless_they_are_open_or_their_plan_can_be_undone(shop: ReconciledShop) -> None:
    shop.describe(keep={"findings": "30d"}, compensation=UPSERT)
    made = orders(range(5))
    shop.trade(made, unloaded=made[:2])
    repaired(shop)
    shop.trade(orders(range(100, 105), 1))
    shop.whole_way(1)
    shop.journal_sql("update makewhole.finding set outcome = 'contained' where key = 'O1' and number = 1")
    age(shop)
    assert keep(shop) == []
    shop.describe(keep={"effects": "30d"}, compensation=UPSERT)
    assert [leftover.kind.value for leftover in keep(shop)] == ["effects"]
    shop.describe(keep={"findings": "30d"}, compensation=UPSERT)

    assert [(leftover.window, leftover.amount.rows) for leftover in keep(shop, is_dry=True)] == [(1, 1)]
    assert [(leftover.window, leftover.amount.rows) for leftover in keep(shop)] == [(1, 1)]

    rows = shop.journal_sql(
        "select key, verdict, outcome, evidence - '{in_source,source_copies,target_copies}'::text[] = '{}', "
        "outcome_reason from makewhole.finding where number = 1 order by key"
    )
    because = rows[0][4]
    assert because.endswith(" UTC")
    assert "key and evidence were kept 30d, and removed at " in because
    assert [row[:4] for row in rows] == [
        ("(removed)", "missing", "repaired", True),
        ("O1", "missing", "contained", False),
    ]
    shop.sql("delete from warehouse where id = 'O0'")
    again = shop.judged(0)
    assert shop.found(again, STORE_HOP) == {"O0": ("vanished", "gone_since_certified")}


def test_the_command_shows_what_would_go_and_says_when_all_is_kept(shop: ReconciledShop) -> None:
    days(shop, 2)
    age(shop)
    answer = CliRunner().invoke(app, ["keep", "shop"])
    assert (answer.exit_code, answer.output) == (
        0,
        "shop keeps everything; `keep` in its file says what goes after which time\n",
    )
    shop.describe(keep={"archives": "30d", "findings": "40d"})
    size = sum(
        file.size_bytes for file in Storage.from_environment().files_below("shop/window=1/revision=1/orders/archive")
    )
    answer = CliRunner().invoke(app, ["keep", "shop", "--dry-run"])
    assert answer.output == (
        f"archives: 2 files ({size} B) of 1 window would go\nfindings: 0 rows of 1 window would go\n"
    )
    answer = CliRunner().invoke(app, ["keep", "shop", "--json"])
    assert json.loads(answer.output.splitlines()[0]) == {
        "pipeline": "shop",
        "is_dry": False,
        "kind": "archives",
        "window": 1,
        "plan": None,
        "files": 2,
        "size_bytes": size,
        "rows": 0,
        "stays": None,
    }
    assert any(file.path.endswith(REMOVED) for file in Storage.from_environment().files_below("shop"))
