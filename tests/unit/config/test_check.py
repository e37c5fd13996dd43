"""Test that `makewhole check` reports every problem, in words and in JSON, with the right exit code."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from makewhole.cli.check.command import check

pytestmark = pytest.mark.unit

GOOD = """\
version: 2
pipeline: good
points:
  a: {kind: topic, connection: k, topic: a, key: kafka.key}
  b: {kind: store, connection: d, table: b, key: id}
hops: [{from: a, to: b}]
"""
BAD = GOOD.replace("good", "bad").replace("to: b", "to: '[red]c'").replace("kind: store", "kind: store, wehre: x")


@pytest.fixture
def app() -> typer.Typer:
    command = typer.Typer()
    command.command()(check)
    return command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text(BAD)
    return tmp_path


def test_a_good_file_exits_0(app: typer.Typer, folder: Path) -> None:
    result = CliRunner().invoke(app, [str(folder / "a.yaml")])
    assert (result.exit_code, result.output) == (0, f"✓ {folder}/a.yaml: good, 2 points, 1 hop\n")


def test_problems_are_all_shown_whole_and_exit_2(app: typer.Typer, folder: Path) -> None:
    result = CliRunner().invoke(app, [str(folder)])
    assert result.exit_code == 2
    assert result.output.replace(str(folder), "F").splitlines() == [
        "✓ F/a.yaml: good, 2 points, 1 hop",
        "✗ F/b.yaml: 2 problems",
        "  points.b.wehre (line 5): is not a key here",
        "    Allowed: columns, connection, erased, key, kind, table, time, version",
        "  hops[0].to (line 6): '[red]c' is not a point of this pipeline",
        "    Allowed: a, b",
        "1 file to mend. Nothing is reconciled by a file that is wrong.",
    ]


def test_json_is_one_object_with_every_problem(app: typer.Typer, folder: Path) -> None:
    result = CliRunner().invoke(app, [str(folder), "--json"])
    document = json.loads(result.output)
    assert (result.exit_code, document["ok"], document["pipelines"]) == (2, False, ["good"])
    assert document["problems"][0] == {
        "file": str(folder / "b.yaml"),
        "path": "points.b.wehre (line 5)",
        "found": "is not a key here",
        "remedy": "Allowed: columns, connection, erased, key, kind, table, time, version",
    }


def test_a_file_of_a_pipeline_folder_is_held_to_the_others_there(
    app: typer.Typer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", str(folder))
    copy = folder / "a-old.yaml"
    copy.write_text(GOOD)
    monkeypatch.chdir(folder)

    result = CliRunner().invoke(app, ["a.yaml", str(folder / "a.yaml")])

    assert result.exit_code == 2
    assert result.output.splitlines() == [
        "✗ a.yaml: 1 problem",
        f"  pipeline (line 2): 'good' is the pipeline of {copy} as well, and neither runs",
        "    Give one of them another name, or take a copy out of the folder",
        "1 file to mend. Nothing is reconciled by a file that is wrong.",
    ]


def test_a_file_elsewhere_may_have_the_name_of_one_of_a_pipeline_folder(
    app: typer.Typer, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As a checkout of the file that is deployed."""
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", str(folder))
    file = tmp_path_factory.mktemp("checkout") / "a.yaml"
    file.write_text(GOOD)
    assert CliRunner().invoke(app, [str(file)]).exit_code == 0


def test_an_empty_folder_proves_nothing(app: typer.Typer, tmp_path: Path) -> None:
    assert CliRunner().invoke(app, [str(tmp_path)]).exit_code == 2
    assert json.loads(CliRunner().invoke(app, [str(tmp_path), "--json"]).output)["ok"] is False


WRITES = GOOD + "compensation: {missing: redeliver, unexpected: report}\n"


def test_file_that_writes_has_to_name_who_approves(app: typer.Typer, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(WRITES)
    result = CliRunner().invoke(app, [str(file)])
    assert (result.exit_code, result.output.replace(str(file), "F").splitlines()) == (
        2,
        [
            "✗ F: 1 problem",
            "  compensation.approval.by: is empty, and remedies of this file write: whoever may run the DAG could "
            "approve what they write",
            "    Name those who may, for example 'approval: {by: [anna, \"group:payments\"]}'",
            "1 file to mend. Nothing is reconciled by a file that is wrong.",
        ],
    )
    file.write_text(WRITES.replace("missing: redeliver", "missing: redeliver, approval: {by: anna}"))
    assert CliRunner().invoke(app, [str(file)]).exit_code == 0
    file.write_text(WRITES.replace("redeliver", "report"))
    assert CliRunner().invoke(app, [str(file)]).exit_code == 0


def test_a_group_of_approvers_without_a_person_is_seen_before_a_plan_waits_for_it(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, groups = tmp_path / "a.yaml", tmp_path / "groups"
    file.write_text(WRITES.replace("missing: redeliver", 'missing: redeliver, approval: {by: ["group:payments"]}'))
    assert CliRunner().invoke(app, [str(file)]).exit_code == 0, "this machine does not have the file of groups"
    monkeypatch.setenv("MAKEWHOLE_GROUPS", str(groups))
    groups.write_text("groups: {payment: [anna]}\n")
    result = CliRunner().invoke(app, [str(file)])
    assert result.exit_code == 2
    assert "compensation.approval.by: names group payments, and the file of MAKEWHOLE_GROUPS has no" in result.output
    groups.write_text("groups: {payments: [anna]}\n")
    assert CliRunner().invoke(app, [str(file)]).exit_code == 0
