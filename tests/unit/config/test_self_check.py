"""Test what a file of a self-check may say, and what comes with it."""

from datetime import timedelta
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline, read_file
from makewhole.model.pipeline import Pipeline
from makewhole.model.self_check.settings import SelfCheck

pytestmark = pytest.mark.unit

HEAD = "version: 2\npipeline: self_check\n"


def load(tmp_path: Path, text: str) -> Pipeline:
    path = tmp_path / "self_check.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return load_pipeline(path)


def problems(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "self_check.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return [f"{problem.path}: {problem.found}. {problem.remedy}" for problem in read_file(path).problems]


def test_two_connections_make_a_pipeline_that_repairs_what_is_planted(tmp_path: Path) -> None:
    pipeline = load(tmp_path, "self_check: {kafka: log, postgres: db}\n")
    assert pipeline.self_check == SelfCheck(kafka="log", postgres="db")
    assert [pipeline.table(name).table for name in ("sent", "stored")] == [
        "makewhole_self_check.sent",
        "makewhole_self_check.stored",
    ]
    assert pipeline.topic("events").topic == "makewhole-self-check"
    assert [hop.name for hop in pipeline.hops] == ["sent→events", "events→stored"]
    assert (pipeline.schedule, pipeline.settle) == ("20 5 * * *", timedelta(seconds=10))
    assert pipeline.limits.actions == pipeline.approval.above_actions == 40  # a plan of it never waits for a person


def test_what_the_file_says_beside_it_goes_before_what_comes_with_it(tmp_path: Path) -> None:
    text = (
        "settle: 1m\nschedule: '0 1 * * *'\nself_check: {kafka: log, postgres: db, topic: t, schema: s, faults: 20}\n"
    )
    pipeline = load(tmp_path, text)
    assert (pipeline.schedule, pipeline.settle, pipeline.limits.actions) == ("0 1 * * *", timedelta(minutes=1), 200)
    assert (pipeline.hops[1].consumer_group, pipeline.table("stored").table) == ("t-loader", "s.stored")


def test_names_that_yaml_takes_for_something_else_are_names(tmp_path: Path) -> None:
    pipeline = load(tmp_path, "self_check: {kafka: 'on', postgres: 'null', topic: '123', schema: yes_1}\n")
    assert pipeline.topic("events").topic == "123"
    assert (pipeline.topic("events").connection, pipeline.table("sent").connection) == ("on", "null")


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    text = "hops: []\nself_check: {kafka: log, records: 5, faults: 21, keep: 2d, tables: x}\n"
    assert problems(tmp_path, text) == [
        "hops (line 3): cannot stand beside `self_check`, which says it. Take it out; beside it stand version, "
        "pipeline, description, schedule, until, settle, retry_for, time_limits, keep, notify, access, self_check",
        "self_check.tables (line 4): is not a key here. Allowed: faults, kafka, keep, postgres, records, schema, topic",
        "self_check.postgres (line 4): is missing. Name the connection of the PostgreSQL that the scratch tables are "
        "made in",
        "self_check.records (line 4): 5 is too small. Write a whole number of 100 or more",
        "self_check.faults (line 4): is more than 20. Write 20 at most: a self-check is small",
        "self_check.keep (line 4): is less than 3d, as far back as windows look for rows. Write at least '3d'",
    ]
