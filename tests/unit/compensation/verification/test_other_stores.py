"""Test that what was sent again meets what was found of its keys, however both are read."""

import pytest

from makewhole.compensation.verification.other_stores import SentKey, _sent_keys
from makewhole.compensation.verification.verified_results import CAUSED_BY
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.written_keys import RedeliveredKey
from makewhole.model.verdict import Cause, Finding, Verdict

pytestmark = pytest.mark.unit


def sent(key_hash: str, hop: str = "orders→warehouse") -> RedeliveredKey:
    return RedeliveredKey(hop=hop, key=f"key {key_hash}", key_hash=key_hash, plan="shop-1", target="orders")


def found(
    key_hash: str, hop: str = "orders→warehouse", cause: Cause = Cause.LOST_AFTER_TOPIC, **evidence: object
) -> JudgedFinding:
    finding = Finding(hop=hop, key="k", key_hash=key_hash, verdict=Verdict.MISSING, cause=cause, evidence=evidence)
    return JudgedFinding(finding=finding)


def test_each_key_that_was_sent_again_has_its_own_findings_and_no_others() -> None:
    doubled = found("5", "orders→lake", Cause.REDELIVERED, **{CAUSED_BY: "shop-1"})
    findings = [
        found("1", row_hash=11),  # of a key that was not sent
        found("2", row_hash=12, source_copies=1, target="what the evidence says of the target is not of the source"),
        found("4", "orders→lake", row_hash=14),
        doubled,
        found("5", row_hash=15),
        found("7", row_hash=17),
    ]

    keys = list(_sent_keys([sent("2"), sent("3"), sent("4"), sent("5"), sent("5", "orders→copy"), sent("6")], findings))

    nothing: tuple[str, dict[str, object]] = ("", {})
    assert keys == [
        SentKey(
            sent=(sent("2"),),
            source=("orders→warehouse", {"row_hash": 12, "source_copies": 1}),
            judged=frozenset({"orders→warehouse"}),
            doubled={},
        ),
        SentKey(sent=(sent("3"),), source=nothing, judged=frozenset(), doubled={}),
        SentKey(sent=(sent("4"),), source=nothing, judged=frozenset({"orders→lake"}), doubled={}),
        SentKey(
            sent=(sent("5"), sent("5", "orders→copy")),
            source=("orders→warehouse", {"row_hash": 15}),
            judged=frozenset({"orders→warehouse"}),
            doubled={"orders→lake": doubled},
        ),
        SentKey(sent=(sent("6"),), source=nothing, judged=frozenset(), doubled={}),
    ]
    assert [sent_key.sent for sent_key in _sent_keys([sent("2")], [])] == [(sent("2"),)]
    assert list(_sent_keys([], findings)) == []
