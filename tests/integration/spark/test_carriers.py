"""Test that a window's files do not depend on what carried its tasks: most tests carry them in their own process."""

import hashlib
import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from makewhole.key_index.files import filter_path
from makewhole.model.errors import PermanentError, RefusedError
from makewhole.window.context import WindowContext
from makewhole_spark import same_code
from makewhole_spark.carrier import Carrier, PackedTasks
from makewhole_spark.spark_carrier import SparkCarrier
from tests.integration.spark.test_two_passes import DAYS, History, history
from tests.world.in_process import InProcessCarrier, TaskFailedError
from tests.world.plain_gate import evaluate_plainly
from tests.world.reports import report
from tests.world.windows import ReconciledShop

__all__ = ["history"]  # a fixture

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture(params=[pytest.param("Spark", marks=pytest.mark.on_spark), "in process"])
def either(request: pytest.FixtureRequest) -> Carrier:
    """Each of the two carriers."""
    return (
        InProcessCarrier()
        if request.param == "in process"
        else SparkCarrier(request.getfixturevalue("spark").sparkContext)
    )


def halved(number: int) -> int:
    if number % 2:
        raise RefusedError(f"{number} is odd")
    return number // 2


def digest(file: Path) -> str:
    """Return the SHA-256 of a file; of a filter without its first line, the name of its file, which is drawn."""
    content = file.read_bytes()
    return hashlib.sha256(content.partition(b"\n")[2] if file.suffix == ".filter" else content).hexdigest()


def files(context: WindowContext) -> Mapping[str, list[str]]:
    """Return the SHA-256 of every file of a revision, by folder; the files' own names are drawn."""
    folder, by_folder = Path(context.storage.root) / context.window.prefix, dict[str, list[str]]()
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            of_folder = by_folder.setdefault(str(file.parent.relative_to(folder)), [])
            of_folder.append(digest(file))
    return {name: sorted(digests) for name, digests in by_folder.items()}


def index_files(shop: ReconciledShop, context: WindowContext) -> list[tuple[str, str]]:
    """Return bucket and SHA-256 of each file of the window's part of the key index."""
    runs = shop.journal_sql("select files from makewhole.key_run where number = %s", context.window.number)
    named = [(bucket, path) for (of_run,) in runs for bucket, path in of_run.items()]
    root = Path(context.storage.root)
    return sorted((bucket, digest(root / name)) for bucket, path in named for name in (path, filter_path(path)))


def forget(shop: ReconciledShop, context: WindowContext) -> None:
    """Remove all that was judged of a window, so that it is judged again by what is known before it."""
    shutil.rmtree(Path(context.storage.root) / context.window.prefix)
    for table in ("hop_result", "slice_count", "snapshot", "finding", "gate_report", "key_run", "incident"):
        shop.journal_sql(f"delete from makewhole.{table} where number = %s", context.window.number)
    shop.journal_sql("delete from makewhole.handover where from_number = %s", context.window.number)


@pytest.mark.on_spark
@pytest.mark.parametrize("history", [0, pytest.param(1, marks=pytest.mark.extended)], indirect=True)
def test_windows_with_faults_of_every_kind_have_the_same_files(history: History) -> None:
    """And the same answer of the gate: beside Spark Great Expectations is asked, in process plain Python."""
    shop, on_spark = history.shop, history.shop.carrier
    for day in range(DAYS):
        history.play(day)
        context = shop.open(day)
        written: list[Mapping[str, list[str]]] = []
        indexed, reports = [], []
        for carrier in (on_spark, InProcessCarrier()):
            if written:
                forget(shop, context)
            shop.carrier = carrier
            with pytest.MonkeyPatch.context() as patch:
                if carrier is not on_spark:
                    evaluate_plainly(patch)
                shop.judge(context).validate(context)
            written.append(files(context))
            indexed.append(index_files(shop, context))
            reports.append(report(shop.journal, context))

        assert written[0] == written[1]
        assert len(written[0]) > 10
        assert indexed[0] == indexed[1] != []
        assert reports[0] == reports[1]
        assert reports[0]["findings"].count("\n") > 5


def test_answers_come_in_the_order_of_the_tasks_and_errors_as_they_were_raised(either: Carrier) -> None:
    assert either.carry(range(0, 40, 2), halved) == list(range(20))
    assert either.carry([], halved) == []
    with pytest.raises(RefusedError, match=r"^3 is odd$"):
        either.carry([0, 3, 5], halved)


def test_every_task_is_run_though_one_before_it_raised_an_error_of_ours(either: Carrier, tmp_path: Path) -> None:
    def noted(number: int) -> int:
        (tmp_path / str(number)).touch()
        return halved(number)

    with pytest.raises(RefusedError, match=r"^1 is odd$"):
        either.carry([0, 1, 2, 3], noted)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "3"]


def test_a_defect_ends_the_work_and_is_never_an_answer(either: Carrier) -> None:
    with pytest.raises(Exception, match="ZeroDivisionError"):
        either.carry([1, 0], lambda number: 1 // number)


def test_a_task_that_cannot_travel_is_refused(either: Carrier) -> None:
    with pytest.raises((TypeError, pickle.PicklingError, AttributeError)):
        either.carry([(number for number in range(3))], list)


def test_a_task_that_fails_by_a_defect_is_run_again_as_often_as_it_may(tmp_path: Path) -> None:
    def fails_twice(number: int) -> int:
        tried = tmp_path / str(number)
        tried.write_text(tried.read_text() + "." if tried.exists() else ".")
        if len(tried.read_text()) < 3:
            raise OSError("no answer")
        return number

    assert InProcessCarrier(tries=3).carry([1, 2], fails_twice) == [1, 2]
    with pytest.raises(TaskFailedError, match="no answer"):
        InProcessCarrier(tries=2).carry([3], fails_twice)
    assert (tmp_path / "3").read_text() == ".."


def test_a_task_of_other_code_is_refused(either: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = PackedTasks.of

    def of_other_code(tasks: list[int], run: object) -> PackedTasks:
        return PackedTasks(pickled=packed(tasks, halved).pickled, run=halved, code="0" * 64)

    monkeypatch.setattr(PackedTasks, "of", of_other_code)
    with pytest.raises(PermanentError, match="have another makewhole than the driver"):
        either.carry([2], halved)
    assert same_code.code_digest() != "0" * 64
