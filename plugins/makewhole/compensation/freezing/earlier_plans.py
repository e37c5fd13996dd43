"""Plans that would write the same keys: that of an earlier revision ends, what others wrote meanwhile is left alone."""

from collections.abc import Mapping, Sequence

from makewhole.compensation.execution.supersede import supersede
from makewhole.compensation.execution.targets import Target
from makewhole.compensation.planning.draft import Refusal
from makewhole.journal import plans
from makewhole.model.plan import Plan
from makewhole.model.verdict import Finding
from makewhole.model.window import Window
from makewhole.sql import PgConnection


def overtake(journal_dsn: str, journal: PgConnection, window: Window, targets: Mapping[str, Target]) -> None:
    """End every plan of earlier revisions of the window.

    Raises:
        TransientError: one of them is running: wait for it to end.
    """
    for stored in plans.plans_before(journal, window.pipeline, window.number, window.revision):
        supersede(journal_dsn, stored.plan.id, targets, _ended(window))


def name_successor(journal: PgConnection, window: Window, plan: Plan) -> None:
    """Write down which plan took the place of those that were ended for it, now or by somebody who was killed then."""
    plans.name_successor(journal, plan, ended=_ended(window), named=f"superseded by plan {plan.id}")


def refuse_written(
    journal: PgConnection, window: Window, findings: Sequence[Finding]
) -> tuple[list[Finding], list[Refusal]]:
    """The findings that still stand, and a refusal for each whose key was written after it was judged."""
    gaps = [(finding.hop, finding.key_hash) for finding in findings if finding.verdict.is_gap]
    written = plans.keys_written_since(journal, (window.pipeline, window.number, window.revision), gaps)
    refusals = [
        Refusal(hop=hop, key_hash=key_hash, reason=_reason(plan_id, is_proven=is_proven))
        for (hop, key_hash), (plan_id, is_proven) in written.items()
    ]
    return [finding for finding in findings if (finding.hop, finding.key_hash) not in written], refusals


def _ended(window: Window) -> str:
    return f"superseded by revision {window.revision}"


def _reason(plan_id: str, *, is_proven: bool) -> str:
    verb = "wrote" if is_proven else "may have written"
    return f"stale: plan {plan_id} {verb} this key after it was judged; run the window again"
