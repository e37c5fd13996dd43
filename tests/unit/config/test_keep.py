"""Test what `keep` of a pipeline file may say: how long each kind of what makewhole writes is kept."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.retention import Keep, Kept
from makewhole.window.configuration import configuration_document

pytestmark = pytest.mark.unit

Write = Callable[[str], Path]


def with_keep(minimal: str, text: str) -> str:
    return minimal.replace("points:", f"{text}\npoints:", 1)


def test_each_kind_has_its_own_time_and_decides_nothing(write: Write, minimal: str) -> None:
    plain = load_pipeline(write(minimal))
    pipeline = load_pipeline(write(with_keep(minimal, "keep: {archives: 90d, effects: 48h}")))
    assert (plain.keep, list(plain.keep)) == (Keep(), [])
    assert pipeline.keep == Keep(archives=timedelta(days=90), effects=timedelta(days=2))
    assert list(pipeline.keep) == [(Kept.ARCHIVES, timedelta(days=90)), (Kept.EFFECTS, timedelta(days=2))]
    assert configuration_document(pipeline) == configuration_document(plain)


def test_rows_aside_go_before_the_effects_that_they_need(write: Write, minimal: str) -> None:
    pipeline = load_pipeline(write(with_keep(minimal, "keep: {effects: 30d, quarantine: 60d}")))
    assert [kind for kind, _ in pipeline.keep] == [Kept.QUARANTINE, Kept.EFFECTS]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("keep: {snapshots: 90d}", (
            "keep.snapshots: is not a key here. Allowed: archives, attempts, effects, findings, quarantine"
        )),
        ("keep: {effects: 47h}", (
            "keep.effects: is less than 2d, as far back as what may still be at work may need them. "
            "Write at least '2d', or leave the line out: without it they are kept for ever"
        )),
        ("late: 5d\nkeep: {archives: 5d}", (
            "keep.archives: is less than 6d, as far back as `late` and `pending.max_age` together may need them. "
            "Write at least '6d', or leave the line out: without it they are kept for ever"
        )),
        ("keep: {findings: 0s}", (
            "keep.findings: '0s' is no time at all. Write a duration above zero, for example '4h'"
        )),
        ("keep: 90d", "keep: is text, not a mapping. Write 'key: value' lines below it, or {key: value}"),
    ],
)  # fmt: skip
def test_mistakes_are_named(write: Write, minimal: str, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load_pipeline(write(with_keep(minimal, text)))
    [problem] = raised.value.problems
    assert re.sub(r" \(line \d+\):", ":", f"{problem.path}: {problem.found}. {problem.remedy}", count=1) == message
