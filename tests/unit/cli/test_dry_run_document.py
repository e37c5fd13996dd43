"""Test the reasons in the document of a dry run: each is a text, and a refusal has its code beside it."""

import pytest

from makewhole.cli.plan.dry_run import dry_run_document
from makewhole.compensation.preview.dry_report import DryRun, DryRunPart, Forecast, Sample
from makewhole.model.actions import Action, BeforeUpsert
from makewhole.model.plan import Plan, PlanState
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.row_change import RowChange

pytestmark = pytest.mark.unit

STALE = Refusal(RefusalCode.STALE, "the row changed")
PLAN = Plan(
    id="p-1-f", pipeline="p", window=1, revision=1, sha256="f", payload_uri=None, counts={}, state=PlanState.FROZEN
)


def of(*samples: Sample, reasons: dict[Refusal, int]) -> DryRun:
    part = DryRunPart(
        remedy="upsert",
        target="store",
        place="pg:dw.store",
        actions=9,
        forecasts=dict.fromkeys(Forecast, 0),
        reasons=reasons,
        payload_from={},
    )
    return DryRun(plan=PLAN, stopped_by=None, parts=(part,), samples=samples)


def sample(forecast: Forecast, refusal: Refusal | None = None) -> Sample:
    action = Action(seq=0, hop="a→store", target="store", key="k", key_hash="0", before=BeforeUpsert(place="pg:store"))
    return Sample(action=action, forecast=forecast, refusal=refusal, shown=RowChange(before=(), after=()))


@pytest.mark.parametrize(
    ("shown", "reason", "code"),
    [
        (sample(Forecast.WOULD), None, None),
        (sample(Forecast.DONE), None, None),
        (sample(Forecast.REFUSED, STALE), "stale: the row changed", "stale"),
        (sample(Forecast.REFUSED, Refusal.of_text("there is no such table")), "there is no such table", None),
        (
            sample(Forecast.WAITS),
            "an earlier action is about the same key: this one is judged when that is done",
            None,
        ),
    ],
    ids=["would", "done", "refused", "refused without a code", "waits"],
)
def test_a_sample_has_its_reason_and_the_code_of_its_refusal(
    shown: Sample, reason: str | None, code: str | None
) -> None:
    (shown_sample,) = dry_run_document(of(shown, reasons={}))["samples"]

    assert (shown_sample["reason"], shown_sample["code"]) == (reason, code)


def test_refusals_are_counted_by_their_texts() -> None:
    (part,) = dry_run_document(of(reasons={STALE: 2, Refusal.of_text("there is no such table"): 1}))["parts"]

    assert part["reasons"] == {"stale: the row changed": 2, "there is no such table": 1}
