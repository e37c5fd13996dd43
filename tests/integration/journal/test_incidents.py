"""Test that incidents of a log are kept with the revision that found them."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from makewhole.journal import incidents, windows
from makewhole.journal.database import connect
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import Window

pytestmark = pytest.mark.integration

MOMENT = datetime(2013, 1, 2, tzinfo=UTC)
WINDOW = Window(pipeline="demo", number=1, revision=1, start=None, end=MOMENT, opened_at=MOMENT, ranges={})
TRUNCATED = Incident(
    kind=IncidentKind.TRUNCATED,
    point="flights",
    topic="f",
    topic_id="id1",
    partition=1,
    lo=150,
    hi=200,
    detail={"before_it_was_read": False, "seen_epochs": [[0, 200]]},
)
RECREATED = Incident(kind=IncidentKind.TOPIC_RECREATED, point="flights", topic="f", topic_id="id2")


def test_incidents_come_back_as_they_were_found_and_belong_to_their_revision(journal: str) -> None:
    expired = replace(TRUNCATED, kind=IncidentKind.EXPIRED, partition=0, lo=0, hi=5, detail={})
    again = replace(WINDOW, revision=2)
    with connect(journal) as session:
        windows.insert(session, WINDOW, request="run", plan_only=False, configuration={})
        windows.insert(session, again, request="run again", plan_only=False, configuration={})
        incidents.put(session, WINDOW, [TRUNCATED, expired, RECREATED])

    with connect(journal) as session:
        assert incidents.of(session, WINDOW) == [RECREATED, expired, TRUNCATED]
        assert incidents.of(session, again) == []


def test_found_again_at_the_same_place_the_newer_word_stays(journal: str) -> None:
    newer = replace(TRUNCATED, hi=210, detail={"seen_epochs": [[0, 210]]})
    with connect(journal) as session:
        windows.insert(session, WINDOW, request="run", plan_only=False, configuration={})
        incidents.put(session, WINDOW, [TRUNCATED, RECREATED])
        incidents.put(session, WINDOW, [newer, RECREATED])

        assert incidents.of(session, WINDOW) == [RECREATED, newer]
