"""Test that a file of version 1 means what it meant, or is refused with the lines that keep its meaning."""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from makewhole.config.hops.remedies import VERDICTS
from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.pipeline import Pipeline, Remedy
from makewhole.model.points import TopicPoint
from tests.world.examples import examples

pytestmark = pytest.mark.unit

TO_KEEP = "on this hop to keep that, or 'version: 2' at the top to have nothing written that the file does not name"


@pytest.fixture
def former(minimal: str) -> str:
    """Return a file of version 1 that names all that means something else now, but no remedy."""
    named = minimal.replace("version: 2", "version: 1").replace(
        "topic: flights,", "topic: flights, partitioner: crc32,"
    )
    return named + "start: earliest\npending: {max_age: 1d}\n"


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
        "hops[1] (line 9): flights→warehouse names no remedy for missing, duplicate and vanished keys, and version 1 "
        "took redeliver, quarantine and redeliver. Write 'compensation: {missing: redeliver, duplicate: quarantine, "
        f"vanished: redeliver}}' {TO_KEEP}",
    ]


def test_the_line_to_write_keeps_what_the_hop_names_already(write: Callable[..., Path], former: str) -> None:
    """A remedy of the pipeline that is not possible on a hop left that hop to its default, too."""
    text = former.replace("to: warehouse}", "to: warehouse, compensation: {unexpected: report, mismatched: upsert}}")

    assert problems_of(write(text + "compensation: {missing: redeliver}\n")) == [
        "hops[0] (line 8): outbox→flights names no remedy for missing keys, and version 1 took produce. Write "
        f"'compensation: {{missing: produce}}' {TO_KEEP}",
        "hops[1] (line 9): flights→warehouse names no remedy for duplicate and vanished keys, and version 1 took "
        "quarantine and redeliver. Write 'compensation: {duplicate: quarantine, mismatched: upsert, "
        f"unexpected: report, vanished: redeliver}}' {TO_KEEP}",
    ]


def test_a_file_that_leaves_nothing_to_the_defaults_means_the_same_in_both_versions(
    write: Callable[..., Path], former: str
) -> None:
    text = former + "compensation: {missing: report, duplicate: quarantine}\n"
    first = load_pipeline(write(text))

    assert (first.start, first.pending_max_age) == ("earliest", timedelta(days=1))
    assert [hop.remedies.duplicate for hop in first.hops] == [Remedy.REPORT, Remedy.QUARANTINE]
    assert load_pipeline(write(text.replace("version: 1", "version: 2"))) == first


def test_what_is_purged_was_brought_back_like_what_is_missing(write: Callable[..., Path], former: str) -> None:
    text = former + "compensation: {missing: upsert, duplicate: report}\n"

    assert problems_of(write(text.replace("to: flights}", "to: flights, compensation: {missing: report}}"))) == [
        "hops[1] (line 9): flights→warehouse names no remedy for vanished keys, and version 1 took upsert. Write "
        f"'compensation: {{vanished: upsert}}' {TO_KEEP}"
    ]
    named = former + "compensation: {missing: upsert, duplicate: report, vanished: report}\n"
    hops = load_pipeline(write(named.replace("to: flights}", "to: flights, compensation: {missing: report}}"))).hops
    assert [(hop.remedies.missing, hop.remedies.vanished) for hop in hops] == [
        (Remedy.REPORT, Remedy.REPORT),
        (Remedy.UPSERT, Remedy.REPORT),
    ]


NO_START = (
    "start (line 1): is missing, and version 1 took earliest. Write 'start: earliest' to keep that, or the time from "
    "which on every hop has its keys at both ends"
)
TO_WAIT = (
    "and version 1 let keys wait without an end: what never arrived was certified. Write 'pending: {max_age: 1d}', or "
    "how long a key may wait before its absence is a loss"
)


def no_partitioner(point: str, line: int) -> str:
    return (
        f"points.{point}.partitioner (line {line}): is missing, and version 1 chose partitions by crc32. Write "
        "'partitioner: crc32' to keep that, or 'partitioner: murmur2' where the topic's own producers are Java's"
    )


def test_every_setting_that_means_something_else_now_is_asked_for_at_once(
    write: Callable[..., Path], minimal: str
) -> None:
    assert problems_of(write(minimal.replace("version: 2", "version: 1"))) == [
        NO_START,
        f"pending (line 1): is missing, {TO_WAIT}",
        no_partitioner("flights", 5),
        "hops[0] (line 8): outbox→flights names no remedy for missing keys, and version 1 took produce. Write "
        f"'compensation: {{missing: produce}}' {TO_KEEP}",
        "hops[1] (line 9): flights→warehouse names no remedy for missing, duplicate and vanished keys, and version 1 "
        "took redeliver, quarantine and redeliver. Write 'compensation: {missing: redeliver, duplicate: quarantine, "
        f"vanished: redeliver}}' {TO_KEEP}",
    ]
    load_pipeline(write(minimal))


def test_a_section_without_the_wait_is_no_answer_and_a_mistake_in_one_is_told_once(
    write: Callable[..., Path], former: str
) -> None:
    text = former + "compensation: {missing: report, duplicate: report}\n"

    assert problems_of(write(text.replace("{max_age: 1d}", "{}"))) == [
        f"pending (line 11): names no max_age, {TO_WAIT}"
    ]
    assert problems_of(write(text.replace("{max_age: 1d}", "").replace("earliest", "soon"))) == [
        "start (line 10): 'soon' is not a start. Write 'earliest', 'latest' or a time such as '2013-01-01T00:00:00Z'",
        "pending (line 11): has no value. Give it one, or take the line out to have the default",
    ]


def test_a_partitioner_is_asked_for_where_a_partition_has_to_be_chosen(write: Callable[..., Path], former: str) -> None:
    """Nothing is produced here; a reversal, whose key is made from a template, goes by the partitioner of its topic."""
    text = former.replace(" partitioner: crc32,", "") + "compensation: {missing: report, duplicate: report}\n"
    reversal = "compensation: {duplicate: reverse}, reverse: {to: back, value: {id: 1}}}"

    assert [hop.reverse for hop in load_pipeline(write(text)).hops] == [None, None]
    back = '  back: {kind: topic, connection: kafka_main, topic: back, key: "$.id"}\n  warehouse:'
    reversing = text.replace("  warehouse:", back).replace("to: warehouse}", f"to: warehouse, {reversal}")
    assert problems_of(write(reversing)) == [no_partitioner("back", 6)]
    load_pipeline(write(reversing.replace("topic: back,", "topic: back, partitioner: crc32,")))


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
        "hops[1].wehre (line 10): is not a key here. Allowed: compensation, consumer_group, from, leave, progress, "
        "redeliver, redeliver_to, reverse, semantics, to, where, write. Did you mean 'where'?",
        "hops[1] (line 10): flights→warehouse names no remedy for missing, duplicate and vanished keys, and version 1 "
        "took redeliver, quarantine and redeliver. Write 'compensation: {missing: redeliver, duplicate: quarantine, "
        f"vanished: redeliver}}' {TO_KEEP}",
    ]


# Every hop, with all that its file may name, against what version 1 did

WRITES = {
    ("outbox", "flights"): {"missing": ["produce"]},
    ("flights", "delays"): {"missing": ["redeliver"]},
    ("flights", "warehouse"): {
        "missing": ["redeliver", "upsert"],
        "duplicate": ["quarantine"],
        "mismatched": ["upsert"],
        "unexpected": ["quarantine"],
        "vanished": ["redeliver", "upsert"],
    },
    ("outbox", "warehouse"): {
        "missing": ["upsert"],
        "duplicate": ["quarantine"],
        "mismatched": ["upsert"],
        "unexpected": ["quarantine"],
        "vanished": ["upsert"],
    },
}
POINTS: Mapping[str, Mapping[str, str]] = {
    "outbox": {"kind": "ledger", "table": "outbox", "key": "id", "time": "at"},
    "flights": {"kind": "topic", "topic": "flights", "key": "$.id"},
    "delays": {"kind": "topic", "topic": "delays", "key": "$.id"},
    "warehouse": {"kind": "store", "table": "warehouse", "key": "id"},
}
NAMED = st.dictionaries(st.sampled_from(VERDICTS), st.sampled_from(["report", "redeliver", "upsert", "quarantine"]))
SETTINGS: Mapping[str, Any] = {
    "start": st.sampled_from(["earliest", "latest", "2013-01-01T00:00:00Z"]),
    "pending": st.sampled_from([{"max_age": "2d"}, {}]),
    "partitioner": st.sampled_from(["murmur2", "crc32", "random"]),
}
Settings = Mapping[str, Any]


def _choices(ends: tuple[str, str], semantics: str, has_version: bool, verdict: str) -> list[str]:
    """Return what version 1 allowed, its default first."""
    writes = WRITES[ends].get(verdict, [])
    if semantics == "upsert":
        writes = [one for one in writes if one in ("upsert", "quarantine") or has_version]
        writes = sorted(writes, key=lambda one: one != "upsert")
    return [*writes, "report"] if verdict in ("missing", "duplicate") else ["report", *writes]


def _file(ends: tuple[str, str], hop: Settings, has_version: bool, settings: Settings) -> dict[str, Any]:
    """Return the document of a pipeline of one hop; a `partitioner` stands on the topics."""
    written = ends[0] if ends[0] == "flights" else ends[1]
    points = {}
    for name in ends:
        is_topic = POINTS[name]["kind"] == "topic"
        version = {"version": "$.v" if is_topic else "v"} if has_version and name == written else {}
        of_topic = {key: value for key, value in settings.items() if key == "partitioner" and is_topic}
        points[name] = {**POINTS[name], "connection": "c", **version, **of_topic}
    of_file = {key: value for key, value in settings.items() if key != "partitioner"}
    return {
        "version": 1,
        "pipeline": "one",
        **of_file,
        "points": points,
        "hops": [{"from": ends[0], "to": ends[1], **hop}],
    }


def _apply(document: dict[str, Any], problem: str) -> None:
    """Write the line that a problem names, where it is told."""
    (place,) = re.findall(r"^(\S+) \(line", problem)
    line = yaml.safe_load(re.findall(r"Write '(.*?)'(?: to keep| on this|,)", problem)[0])
    above = {"start": document, "pending": document, "hops[0]": document["hops"][0]}
    if place not in above:
        _, point, _ = place.split(".")
        above[place] = document["points"][point]
    above[place].update(line)


def _read(pipeline: Pipeline) -> dict[str, Any]:
    (hop,) = pipeline.hops
    target = pipeline.points[hop.target]
    return {
        "remedies": {verdict: getattr(hop.remedies, verdict).value for verdict in VERDICTS},
        "start": pipeline.start if isinstance(pipeline.start, str) else pipeline.start and "a time",
        "pending": pipeline.pending_max_age,
        "partitioner": target.partitioner.value if isinstance(target, TopicPoint) else None,
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(200), deadline=None)
@given(
    ends=st.sampled_from(sorted(WRITES)),
    semantics=st.sampled_from(["event", "upsert"]),
    has_version=st.booleans(),
    of_pipeline=NAMED,
    of_hop=NAMED,
    named=st.fixed_dictionaries({}, optional=SETTINGS),
)
def test_a_file_of_version_1_is_never_read_otherwise_than_it_was(
    write: Callable[..., Path],
    ends: tuple[str, str],
    semantics: str,
    has_version: bool,
    of_pipeline: dict[str, str],
    of_hop: dict[str, str],
    named: dict[str, Any],
) -> None:
    choices = {verdict: _choices(ends, semantics, has_version, verdict) for verdict in VERDICTS}
    of_pipeline = {verdict: remedy for verdict, remedy in of_pipeline.items() if remedy in choices[verdict]}
    of_hop = {verdict: remedy for verdict, remedy in of_hop.items() if remedy in choices[verdict]}
    said = {**of_pipeline, **of_hop}
    meant = {verdict: said.get(verdict, choices[verdict][0]) for verdict in VERDICTS}
    if "vanished" not in said and meant["missing"] in WRITES[ends].get("vanished", []):
        meant["vanished"] = meant["missing"]  # a row that was purged was a missing one
    hop = {"semantics": semantics, **({"compensation": of_hop} if of_hop else {})}
    compensation = {"compensation": of_pipeline} if of_pipeline else {}
    document = _file(ends, hop, has_version, {**compensation, **named})
    left = {
        "hops[0]": any(meant[verdict] != "report" for verdict in VERDICTS if verdict not in said),
        "start": "start" not in named,
        "pending": not named.get("pending"),
        f"points.{ends[1]}.partitioner": meant["missing"] == "produce" and "partitioner" not in named,
    }

    if any(left.values()):
        problems = problems_of(write(yaml.safe_dump(document, sort_keys=False, allow_unicode=True)))
        assert {problem.split(" (line")[0] for problem in problems} == {
            place for place, is_left in left.items() if is_left
        }
        for problem in problems:
            _apply(document, problem)
        assert {**document["hops"][0].get("compensation", {}), **of_hop} == document["hops"][0].get("compensation", {})
    unsaid = "crc32" if meant["missing"] == "produce" else "murmur2"
    expected = {
        "remedies": meant,
        "start": named.get("start", "earliest").replace("2013-01-01T00:00:00Z", "a time"),
        "pending": timedelta(days=2) if named.get("pending") else timedelta(days=1),
        "partitioner": named.get("partitioner", unsaid) if POINTS[ends[1]]["kind"] == "topic" else None,
    }
    for version in (1, 2):
        assert _read(load_pipeline(write(yaml.safe_dump({**document, "version": version})))) == expected
