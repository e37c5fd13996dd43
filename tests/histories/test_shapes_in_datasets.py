"""Test that random changes of the rows of datasets are found, repaired and undone, whatever the records are made of.

make histories HISTORIES_ARGS="tests/histories/test_shapes_in_datasets.py --histories 1000 --seed 1"
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from random import Random

import pytest

from makewhole.compensation.approval.answer import Answer, Decision, record_answer
from makewhole.compensation.execution.run_plan import compensate_window, run_window_plan
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.undo.plan_undo import plan_undo
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.plan import Plan
from makewhole.window.context import WindowContext
from tests.histories.shapes.changes import OF_ROWS, TYPES, Change, ChangedDay, draw_day
from tests.histories.shapes.coordinates import COORDINATES, in_log_order, send_numbered
from tests.histories.shapes.datasets import PLACE, Dataset, FilesDataset, IcebergDataset, essence, in_files
from tests.histories.shapes.formats import FORMATS, RecordFormat
from tests.world.environment import set_connection
from tests.world.lake_systems import files_place, warehouse_settings
from tests.world.pipeline_file import Settings, flow, topic
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.histories, pytest.mark.timeout(180)]

NewShop = Callable[[int], AbstractContextManager[ReconciledShop]]
MakeDataset = Callable[..., Dataset]

_VERDICTS = {
    Change.ROW_LOST: "missing",
    Change.ROW_REPEATED: "duplicate",
    Change.ROW_CHANGED: "mismatched",
    Change.ROW_ADDED: "unexpected",
}
_REPAIRS: Settings = {
    "missing": "upsert",
    "duplicate": "quarantine",
    "mismatched": "upsert",
    "unexpected": "quarantine",
}
_POSITION = COORDINATES[0]
_READABLE = [record_format for record_format in FORMATS if record_format.key == '"$.id"']
"""The formats whose values have the id: rows are written whole, and it is no key here."""


@pytest.mark.parametrize("has_position", [False, True], ids=["key", "position"])
@pytest.mark.parametrize("kind", [IcebergDataset, FilesDataset], ids=["iceberg", "files"])
def test_random_changes_of_rows_in_datasets_are_found_repaired_and_undone(
    seed: int,
    kind: type[IcebergDataset | FilesDataset],
    has_position: bool,
    shops: NewShop,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _find_repair_and_undo(seed, shops, monkeypatch, has_position, kind)


@pytest.mark.extended
@pytest.mark.timeout(600)
@pytest.mark.parametrize("system", ["s3", "hdfs"])
@pytest.mark.parametrize("form", ["iceberg", "files"])
def test_random_changes_of_rows_on_servers_are_found_repaired_and_undone(
    seed: int, form: str, system: str, shops: NewShop, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Takes long: the servers of each system are started."""
    made: MakeDataset = (
        partial(IcebergDataset, warehouse=warehouse_settings(system, request))
        if form == "iceberg"
        else partial(FilesDataset, place=files_place(system, request, Path()))
    )
    _find_repair_and_undo(seed, shops, monkeypatch, Random(f"{form} {system} {seed}").choice([False, True]), made)


def _find_repair_and_undo(
    seed: int, shops: NewShop, monkeypatch: pytest.MonkeyPatch, has_position: bool, kind: MakeDataset
) -> None:
    random = Random(f"datasets {seed}")
    has_time = random.choice([True, not has_position])
    # Without a time rows are read by the positions of a window: one of none is not read.
    day = draw_day(seed, OF_ROWS if has_time else [change for change in OF_ROWS if change is not Change.ROW_ADDED])
    record_format = random.choice(_READABLE if has_position else FORMATS)
    with shops(random.randint(1, 3)) as shop:
        folder = shop.file.parent.parent / "lake"
        lake = kind(folder=folder, topic=shop.topic, has_position=has_position, has_time=has_time)
        folder.mkdir()
        lake.make()
        set_connection(monkeypatch, "lake", lake.described)
        keys, whole = _play(shop, record_format, lake, day, seed)
        before = essence(lake.rows(), has_position=has_position)

        context = shop.judge_and_ask_the_gate()

        verdicts = {key: verdict for key, (verdict, _) in shop.found(context, STORE_HOP).items()}
        assert verdicts == {keys[key]: _VERDICTS[change] for key, change in day.changes.items()}, record_format.name
        plan = _repaired(context) if day.changes else None
        assert shop.certify(context).state.value == "certified"
        assert essence(lake.rows(), has_position=has_position) == whole
        if plan is not None:
            _undo(shop, context, plan)
            assert essence(lake.rows(), has_position=has_position) == before


def _repaired(context: WindowContext) -> Plan:
    plan = plan_window(context).plan
    assert plan is not None
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None, patience_seconds=0)
    return plan


def _undo(shop: ReconciledShop, context: WindowContext, plan: Plan) -> None:
    undo = plan_undo(context, plan.id, reverses=False)
    assert undo.plan is not None
    assert undo.remaining == ()
    answer = Answer(sha256=undo.plan.sha256, decision=Decision.APPROVED, by="anna")
    record_answer(shop.journal, undo.plan.id, answer, shop.pipeline.approval)
    run_window_plan(context, undo.plan.id, lambda _: None)


def _play(
    shop: ReconciledShop, record_format: RecordFormat, lake: Dataset, day: ChangedDay, seed: int
) -> tuple[dict[str, str], list[str]]:
    """Have the topic and the dataset of a day; return the business key of each id, and the rows that are right."""
    for name, content in record_format.files.items():
        (shop.file.parent / name).write_bytes(content)
    shop.describe(
        has_ledger=False,
        compare=flow({name: f'"{declared}"' for name, declared in TYPES.items()}),
        hop={"compensation": flow(_REPAIRS), **lake.hop},
        more_points={
            "orders": topic(
                "log",
                shop.topic,
                **{**record_format.settings, "key": "position" if lake.has_position else record_format.key},
            ),
            "warehouse": lake.settings,
        },
        is_observing=True,
    )
    send_numbered(shop, record_format, day.records)
    whole = [
        {**record, **dict(zip(PLACE, _POSITION.of(of_log).values(), strict=True))}
        for record, of_log in in_log_order(shop, day.records)
    ]
    by_id = {row["id"]: {name: row[name] for name in PLACE} for row in whole}
    strays = (key for key, change in day.changes.items() if change is Change.ROW_ADDED)
    for at, key in enumerate(strays):
        by_id[key] = {"p": 0, "o": 1_000 + at}
    for rows in in_files([row | by_id[row["id"]] for row in day.rows], seed):
        lake.add(rows)
    keys = {
        key: _POSITION.key_of({"part": place["p"], "pos": place["o"]}) if lake.has_position else key
        for key, place in by_id.items()
    }
    return keys, essence(whole, has_position=lake.has_position)
