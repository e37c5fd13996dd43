"""Test that the file of the groups is read whole, or refused with all that is wrong with it."""

from pathlib import Path

import pytest

from makewhole.config.people.groups import read_groups, read_roles
from makewhole.config.values import UnfitError, approver
from makewhole.model.errors import ConfigurationError

pytestmark = pytest.mark.unit


def test_without_a_file_there_are_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAKEWHOLE_GROUPS", raising=False)
    assert read_groups() == {}


def test_groups_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, monkeypatch, "groups:\n  payments: [anna, ben]\n  lead: carl\n")
    assert read_groups() == {"payments": ("anna", "ben"), "lead": ("carl",)}


def test_roles_are_read_with_groups_and_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, monkeypatch, "groups: {lead: [carl]}\nroles: [payments, Data Ops]\n")
    assert (read_groups(), read_roles()) == ({"lead": ("carl",)}, frozenset({"payments", "Data Ops"}))
    write(tmp_path, monkeypatch, "roles: payments\n")
    assert (read_groups(), read_roles()) == ({}, frozenset({"payments"}))


def test_everything_that_is_wrong_is_reported_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, monkeypatch, "groups:\n  payments: []\n  lead: [anna, anna]\n  ops: [a b]\nrights: x\n")
    with pytest.raises(ConfigurationError) as caught:
        read_groups()
    assert [str(problem).replace(str(path), "F") for problem in caught.value.problems] == [
        "F: groups.payments (line 2): is an empty list. Name at least one",
        "F: groups.lead[1] (line 3): 'anna' is named twice. Name it once",
        "F: groups.ops[0] (line 4): 'a b' is not a user name. Use 1 to 255 printable characters without spaces",
        "F: rights (line 5): is not a key here. Allowed: groups, roles",
    ]


def test_a_file_that_is_not_there_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEWHOLE_GROUPS", str(tmp_path / "absent.yaml"))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_groups()


def test_a_role_is_refused_because_it_could_not_be_checked() -> None:
    with pytest.raises(UnfitError) as caught:
        approver("role:Op")
    assert (caught.value.found, caught.value.remedy) == (
        "'role:Op' names a role, and Airflow does not report the roles of the person who answered",
        "Name users, or group:NAME with the group in the file of MAKEWHOLE_GROUPS",
    )
    with pytest.raises(UnfitError, match="names no group"):
        approver("group:")
    assert [approver(text) for text in ("oncall", "group:payments")] == ["oncall", "group:payments"]


def write(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    path = folder / "groups.yaml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("MAKEWHOLE_GROUPS", str(path))
    return path
