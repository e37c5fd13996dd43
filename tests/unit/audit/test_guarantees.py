"""Test what an audit says of a topic's settings."""

from typing import Any

import pytest

from makewhole.audit.guarantees import guarantees
from makewhole.audit.report import AuditReport, Guarantee, Level
from tests.unit.audit import samples

pytestmark = pytest.mark.unit


def by_setting(report: AuditReport) -> dict[str, Guarantee]:
    return {guarantee.setting: guarantee for guarantee in guarantees(report)}


def test_three_replicas_of_which_two_must_answer_hold_what_acks_all_promises() -> None:
    by_name = by_setting(samples.report())
    for setting in ("replication.factor", "min.insync.replicas", "unclean.leader.election.enable"):
        assert by_name[setting].level is Level.HOLDS
    assert "acks=1 and acks=0 are not bound by it" in by_name["min.insync.replicas"].says


@pytest.mark.parametrize(
    ("settings", "setting", "words"),
    [
        ({"min.insync.replicas": "1"}, "min.insync.replicas", "when the leader alone has the record"),
        ({"min.insync.replicas": "3"}, "min.insync.replicas", "with one broker down nothing can be written"),
        ({"min.insync.replicas": "4"}, "min.insync.replicas", "can never be given"),
        ({"unclean.leader.election.enable": "true"}, "unclean.leader.election.enable", "offsets given away again"),
        ({"retention.ms": "3600000"}, "retention.ms", "stops for 1 h loses"),
        ({"retention.bytes": "1000000"}, "retention.bytes", "cut at 1.0 MB"),
    ],
)
def test_weak_settings_are_named_with_what_to_set(settings: dict[str, str], setting: str, words: str) -> None:
    guarantee = by_setting(samples.report(settings=settings))[setting]
    assert guarantee.level is Level.WEAK
    assert words in guarantee.says
    assert guarantee.todo


@pytest.mark.parametrize(("replicas", "words"), [((1,), "The disk of one broker"), ((1, 2), "there is no second copy")])
def test_fewer_than_three_replicas_are_weak(replicas: tuple[int, ...], words: str) -> None:
    by_name = by_setting(samples.report(partitions=(samples.partition(replicas=replicas, in_sync=replicas),)))
    assert by_name["replication.factor"].level is Level.WEAK
    assert words in by_name["replication.factor"].says


@pytest.mark.parametrize(
    ("settings", "setting", "words"),
    [
        ({"cleanup.policy": "compact", "delete.retention.ms": "86400000"}, "cleanup.policy", "Compare the latest"),
        ({"cleanup.policy": "compact", "delete.retention.ms": "86400000"}, "delete.retention.ms", "seen for 1 d"),
        ({"message.timestamp.type": "LogAppendTime"}, "message.timestamp.type", "the leader's clock"),
        ({"message.timestamp.before.max.ms": str(2**63 - 1)}, "message.timestamp.before.max.ms", "of 1970"),
    ],
)
def test_what_a_setting_means_for_evidence_is_said(settings: dict[str, str], setting: str, words: str) -> None:
    guarantee = by_setting(samples.report(settings=settings))[setting]
    assert guarantee.level is Level.NOTE
    assert words in guarantee.says


def test_a_log_that_is_kept_for_ever_holds() -> None:
    assert by_setting(samples.report(settings={"retention.ms": "-1"}))["retention.ms"].level is Level.HOLDS


def test_settings_that_may_not_be_read_are_not_spoken_of() -> None:
    by_name: dict[str, Any] = by_setting(samples.report().__class__(**{**vars(samples.report()), "settings": {}}))
    assert set(by_name) == {"replication.factor"}


def test_the_weak_ones_come_first() -> None:
    levels = [guarantee.level for guarantee in guarantees(samples.report(settings={"min.insync.replicas": "1"}))]
    assert levels == sorted(levels, key=[Level.WEAK, Level.NOTE, Level.HOLDS].index)
