"""Test where pipeline files are looked for."""

import os
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import pipeline_folders

pytestmark = pytest.mark.unit


def test_the_checkout_comes_first_then_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", os.pathsep.join([str(tmp_path), "", "/elsewhere", str(tmp_path)]))
    own = Path(__file__).parents[3] / "dags" / "pipelines"
    assert pipeline_folders() == ((own,) if own.is_dir() else ()) + (tmp_path, Path("/elsewhere"))


def test_an_empty_variable_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", "")
    assert len(pipeline_folders()) <= 1
