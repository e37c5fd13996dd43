"""Test that a file of version 1 means what it meant, or is refused with the lines that keep its meaning."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from makewhole.config.hops.remedies import VERDICTS
from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.pipeline import Remedy

pytestmark = pytest.mark.unit

TO_KEEP = "on this hop to keep that, or 'version: 2' at the top to have nothing written that the file does not name"


@pytest.fixture
def former(minimal: str) -> str:
    """Return a file of version 1 that names no remedy."""
    return minimal.replace("version: 2", "version: 1")


def problems_of(path: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)
    return [str(problem).removeprefix(f"{path}: ") for problem in caught.value.problems]


def test_what_is_left_to_the_former_defaults_is_refused_with_the_lines_for_each_hop(
    write: Callable[..., Path], former: str
) -> None:
    assert problems_of(write(former)) == [
        "hops[0] (line 8): outbox→flights names no remedy for missing keys, and version 1 took produce. Write "
        f"'compensation: {{missing: produce}}' {TO_KEEP}",
        "hops[1] (line 9): flights→warehouse names no remedy for missing and duplicate keys, and version 1 took "
        f"redeliver and quarantine. Write 'compensation: {{missing: redeliver, duplicate: quarantine}}' {TO_KEEP}",
    ]


def test_the_line_to_write_keeps_what_the_hop_names_already(write: Callable[..., Path], former: str) -> None:
    """A remedy of the pipeline that is not possible on a hop left that hop to its default, too."""
    text = former.replace("to: warehouse}", "to: warehouse, compensation: {unexpected: report, mismatched: upsert}}")

    assert problems_of(write(text + "compensation: {missing: redeliver}\n")) == [
        "hops[0] (line 8): outbox→flights names no remedy for missing keys, and version 1 took produce. Write "
        f"'compensation: {{missing: produce}}' {TO_KEEP}",
        "hops[1] (line 9): flights→warehouse names no remedy for duplicate keys, and version 1 took quarantine. Write "
        f"'compensation: {{duplicate: quarantine, mismatched: upsert, unexpected: report}}' {TO_KEEP}",
    ]


def test_a_file_that_leaves_nothing_to_the_defaults_means_the_same_in_both_versions(
    write: Callable[..., Path], former: str
) -> None:
    text = former + "compensation: {missing: report, duplicate: quarantine}\n"
    first = load_pipeline(write(text))

    assert [hop.remedies.duplicate for hop in first.hops] == [Remedy.REPORT, Remedy.QUARANTINE]
    assert load_pipeline(write(text.replace("version: 1", "version: 2"))) == first


def test_other_mistakes_of_such_a_file_are_told_beside_it_and_none_is_made_up(
    write: Callable[..., Path], former: str
) -> None:
    """`redeliver_to` had its remedy by default."""
    text = former.replace("to: warehouse}", "to: warehouse, redeliver_to: retry, wehre: x}").replace(
        "  warehouse:", '  retry: {kind: topic, connection: kafka_main, topic: again, key: "$.flight_id"}\n  warehouse:'
    )

    assert problems_of(write(text.replace("to: flights}", "to: flights, compensation: }"))) == [
        "hops[0].compensation (line 9): has no value. Give it one, or take the line out to have the default",
        "hops[0] (line 9): outbox→flights names no remedy for missing keys, and version 1 took produce. Write "
        f"'compensation: {{missing: produce}}' {TO_KEEP}",
        "hops[1].wehre (line 10): is not a key here. Allowed: compensation, consumer_group, from, redeliver, "
        "redeliver_to, reverse, semantics, to, where. Did you mean 'where'?",
        "hops[1] (line 10): flights→warehouse names no remedy for missing and duplicate keys, and version 1 took "
        f"redeliver and quarantine. Write 'compensation: {{missing: redeliver, duplicate: quarantine}}' {TO_KEEP}",
    ]


# Every hop, with every remedy that its file may name, against what version 1 did

WRITES = {
    ("outbox", "flights"): {"missing": ["produce"]},
    ("flights", "delays"): {"missing": ["redeliver"]},
    ("flights", "warehouse"): {
        "missing": ["redeliver", "upsert"],
        "duplicate": ["quarantine"],
        "mismatched": ["upsert"],
        "unexpected": ["quarantine"],
    },
    ("outbox", "warehouse"): {
        "missing": ["upsert"],
        "duplicate": ["quarantine"],
        "mismatched": ["upsert"],
        "unexpected": ["quarantine"],
    },
}
KEYS = {"outbox": "key: id, time: at", "flights": 'key: "$.id"', "delays": 'key: "$.id"', "warehouse": "key: id"}
PLACES = {"outbox": "kind: ledger", "flights": "kind: topic", "delays": "kind: topic", "warehouse": "kind: store"}
NAMED = st.dictionaries(st.sampled_from(VERDICTS), st.sampled_from(["report", "redeliver", "upsert", "quarantine"]))


def _choices(ends: tuple[str, str], semantics: str, has_version: bool, verdict: str) -> list[str]:
    """Return what version 1 allowed, its default first."""
    writes = WRITES[ends].get(verdict, [])
    if semantics == "upsert":
        writes = [one for one in writes if one in ("upsert", "quarantine") or has_version]
        writes = sorted(writes, key=lambda one: one != "upsert")
    return [*writes, "report"] if verdict in ("missing", "duplicate") else ["report", *writes]


def _file(ends: tuple[str, str], semantics: str, has_version: bool, of_pipeline: Mapping[str, str], line: str) -> str:
    written = ends[0] if ends[0] == "flights" else ends[1]
    points = []
    for name in ends:
        is_topic = "topic" in PLACES[name]
        version = f", version: {'$.v' if is_topic else 'v'}" if has_version and name == written else ""
        place = f"{PLACES[name]}, connection: c, {'topic' if is_topic else 'table'}: {name}"
        points.append(f"  {name}: {{{place}, {KEYS[name]}{version}}}")
    compensation = [f"compensation: {_flow(of_pipeline)}"] if of_pipeline else []
    hop = f"  - {{from: {ends[0]}, to: {ends[1]}, semantics: {semantics}{line}}}"
    return "\n".join(["version: 1", "pipeline: one", *compensation, "points:", *points, "hops:", hop, ""])


def _flow(named: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{verdict}: {remedy}" for verdict, remedy in named.items()) + "}"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(
    ends=st.sampled_from(sorted(WRITES)),
    semantics=st.sampled_from(["event", "upsert"]),
    has_version=st.booleans(),
    of_pipeline=NAMED,
    of_hop=NAMED,
)
def test_a_file_of_version_1_is_never_read_otherwise_than_it_was(
    write: Callable[..., Path],
    ends: tuple[str, str],
    semantics: str,
    has_version: bool,
    of_pipeline: dict[str, str],
    of_hop: dict[str, str],
) -> None:
    choices = {verdict: _choices(ends, semantics, has_version, verdict) for verdict in VERDICTS}
    of_pipeline = {verdict: remedy for verdict, remedy in of_pipeline.items() if remedy in choices[verdict]}
    of_hop = {verdict: remedy for verdict, remedy in of_hop.items() if remedy in choices[verdict]}
    meant = {verdict: {**of_pipeline, **of_hop}.get(verdict, choices[verdict][0]) for verdict in VERDICTS}
    is_left = any(meant[verdict] != "report" for verdict in VERDICTS if verdict not in {**of_pipeline, **of_hop})
    text = _file(ends, semantics, has_version, of_pipeline, f", compensation: {_flow(of_hop)}" if of_hop else "")

    if is_left:
        (problem,) = problems_of(write(text))
        (line,) = re.findall(r"Write 'compensation: (.*?)' on this hop", problem)
        assert {**yaml.safe_load(line), **of_hop} == yaml.safe_load(line)
        text = _file(ends, semantics, has_version, of_pipeline, f", compensation: {line}")
    for version in ("version: 1", "version: 2"):
        (hop,) = load_pipeline(write(text.replace("version: 1", version, 1))).hops
        assert {verdict: getattr(hop.remedies, verdict).value for verdict in VERDICTS} == meant
