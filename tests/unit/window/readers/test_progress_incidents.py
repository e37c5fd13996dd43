"""Test what is said of a sink's own progress that says nothing, or stands still."""

from dataclasses import replace

import pytest

from makewhole.kafka.group_offsets import GroupOffsets, OffsetOutOfRange
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.incidents.settlements import settled_by
from makewhole.model.places.sink_progress import FILES_THEMSELVES, OffsetMeaning, SinkProgress
from makewhole.window.readers.hop_offsets import ProgressFault, ReaderOffsets, UnknownProgress
from makewhole.window.readers.progress_incidents import of_progress
from makewhole.window.readers.standing_text import unknown_standing

pytestmark = pytest.mark.unit

REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
BY_TOPIC = SinkProgress(
    table="dw.offsets", partition="part", offset="at", topic="topic", where="sink = 'wh'", means=OffsetMeaning.LAST
)
BARE = SinkProgress(table="dw.offsets", partition="part", offset="at")
NO_NAME = "no name of a file says up to which offset o/1 is written"
ROWS = "part = 1 and topic = 'o' and sink = 'wh'"


def hop(progress: SinkProgress | None) -> Hop:
    return Hop(source="orders", target="store", remedies=REPORT, consumer_group="g", progress=progress)


def incident(kind: IncidentKind, committed: int | None = None, **detail: object) -> Incident:
    known = {"group": "g", "committed": committed, "records": 3, **detail}
    return Incident(kind=kind, point="orders", topic="o", topic_id="i", partition=1, lo=20, hi=40, detail=known)


def test_an_incident_of_a_group_stays_one_where_the_file_names_no_progress() -> None:
    unknown = incident(IncidentKind.GROUP_UNKNOWN)
    assert of_progress(unknown, hop(None), {}) == unknown


@pytest.mark.parametrize(
    ("unknown", "said"),
    [
        (UnknownProgress(fault=ProgressFault.NO_ROW), f"dw.offsets has no row where {ROWS}"),
        (
            UnknownProgress(fault=ProgressFault.SEVERAL_ROWS, rows=2, least="5", greatest="9"),
            f"dw.offsets has 2 rows where {ROWS}, with at from 5 to 9",
        ),
        (UnknownProgress(fault=ProgressFault.NO_VALUE, rows=1), f"at of dw.offsets has no value where {ROWS}"),
        (
            UnknownProgress(fault=ProgressFault.NO_OFFSET, rows=1, least="-7", greatest="-7"),
            f"at of dw.offsets is -7 where {ROWS}, which is no offset",
        ),
    ],
)
def test_a_progress_that_says_nothing_is_named_with_its_rows(unknown: UnknownProgress, said: str) -> None:
    happened = of_progress(incident(IncidentKind.GROUP_UNKNOWN), hop(BY_TOPIC), {1: unknown})
    assert happened.kind is IncidentKind.PROGRESS_UNKNOWN
    assert incident_sentence(happened) == (
        f"{said}, and records of o/1 wait from offset 20 on: how far its sink has loaded them is not known"
    )
    assert settled_by(happened).endswith(", then run this window again") or settled_by(happened).endswith(
        "; then run this window again"
    )
    offsets = ReaderOffsets(offsets=GroupOffsets(committed={1: None}, out_of_range={}), unknown={1: unknown})
    assert unknown_standing(hop(BY_TOPIC), offsets, "o", 1) == said
    assert unknown_standing(hop(BY_TOPIC), offsets, "o", 0) is None


def test_the_lines_to_write_distinguish_the_rows_of_sinks() -> None:
    several = UnknownProgress(fault=ProgressFault.SEVERAL_ROWS, rows=2, least="5", greatest="9")
    happened = of_progress(incident(IncidentKind.GROUP_UNKNOWN), hop(BARE), {1: several})
    assert settled_by(happened) == (
        "write `topic: COLUMN` with the column of the topic's name or `where: \"COLUMN = 'VALUE'\"` with the column "
        "that distinguishes sinks under `progress` of hop orders→store; of a table that keeps former offsets, name a "
        "view with the newest row of each partition; then run this window again"
    )


def test_an_offset_that_the_log_does_not_have_is_named_as_the_table_has_it() -> None:
    beyond = incident(IncidentKind.GROUP_OUT_OF_RANGE, 41, log=[10, 40])
    happened = of_progress(beyond, hop(BY_TOPIC), {})
    assert happened.kind is IncidentKind.PROGRESS_OUT_OF_RANGE
    assert incident_sentence(happened) == (
        "at of dw.offsets is 40 for o/1, the last one done, so that 41 is next, which is behind the end of its log (40)"
        ", and records wait from offset 20 on: how far its sink has loaded them is not known"
    )
    assert settled_by(happened).startswith(
        "if at is the offset that is read next, write `means: next` under `progress` of hop orders→store. Otherwise: a "
        "sink that asks"
    )
    assert f"run `update dw.offsets set at = OFFSET where {ROWS}` with that of the last record it has" in settled_by(
        happened
    )
    before = of_progress(incident(IncidentKind.GROUP_OUT_OF_RANGE, 5, log=[10, 40]), hop(BARE), {})
    assert "at of dw.offsets is 5 for o/1, which is before the beginning of its log (10)" in incident_sentence(before)
    assert settled_by(before).startswith("a sink that asks")
    offsets = GroupOffsets(committed={1: None}, out_of_range={1: OffsetOutOfRange(committed=5, start=10, end=40)})
    assert unknown_standing(hop(BARE), ReaderOffsets(offsets=offsets), "o", 1) == (
        "the sink of store (at of dw.offsets) stands at offset 5 of o/1, whose log has 10 to 40"
    )


def test_a_sink_that_stands_is_named_by_its_table() -> None:
    happened = of_progress(incident(IncidentKind.CONSUMER_STALLED, 20), hop(BARE), {})
    assert happened.kind is IncidentKind.CONSUMER_STALLED
    assert incident_sentence(happened) == (
        "by at of dw.offsets the sink has stood at offset 20 of o/1 since the last window, and records wait from "
        "offset 20 on"
    )


@pytest.mark.parametrize(
    ("named", "said"), [("-1", NO_NAME), ("7", "the names of files say that o/1 is written up to offset 7")]
)
def test_files_of_several_topics_are_said_to_be_so(named: str, said: str) -> None:
    unknown = UnknownProgress(fault=ProgressFault.SEVERAL_ROWS, rows=2, least=named, greatest="99")
    of_files = hop(replace(FILES_THEMSELVES, other_topics=("web",)))
    happened = of_progress(incident(IncidentKind.GROUP_UNKNOWN), of_files, {1: unknown})

    text = f"{said}, and rows, which may be of other topics, go up to 99"
    assert incident_sentence(happened) == (
        f"{text}, and records of o/1 wait from offset 20 on: how far its sink has loaded them is not known"
    )
    assert "name the column that says it as `topic` under `position`" in settled_by(happened)
    offsets = ReaderOffsets(offsets=GroupOffsets(committed={}, out_of_range={}), unknown={1: unknown})
    assert unknown_standing(of_files, offsets, "o", 1) == text
