"""Plan the repair of a window: end the plans of earlier revisions, freeze a new one, and commit both at once."""

import logging
from collections.abc import Mapping

from makewhole.compensation.execution.look_again.topic_tail import TombstonesSince, ranges_read
from makewhole.compensation.execution.supersede import end_earlier_plans
from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.freezing.batches.action_file import SHOWN
from makewhole.compensation.freezing.freeze import FreezeRequest, FreezeResult, FreezeSources, freeze_findings
from makewhole.compensation.planning.deadlines import DeadlineCounts, read_deadlines
from makewhole.compensation.sources.original_records import WindowRecords
from makewhole.journal import plan_progress, plans
from makewhole.journal.database import connect, transaction
from makewhole.journal.deployment.address import journal_dsn
from makewhole.journal.findings import window_findings
from makewhole.journal.findings.needed import kinds_needed
from makewhole.journal.findings.stored_findings import StoredFindings
from makewhole.journal.history.judged import JudgedWindows
from makewhole.journal.history.record_windows import KNOWN_BY, archive_of, find_windows_before
from makewhole.journal.replayed_positions import seen_when_opened
from makewhole.journal.results import hop_results
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext
from makewhole.window.opening.observe import observe, read_topic_state, topic_logs

logger = logging.getLogger(__name__)
_FETCH_SECONDS_MOST = 900.0


def plan_window(context: WindowContext) -> FreezeResult:
    """Freeze the plan of a window whose gate failed; called again, return the plan that is frozen."""
    with connect() as journal:
        partitions = _observe_topics(journal, context)
        findings = StoredFindings(window=context.window)
        results = hop_results.results(journal, context.window)
        judged = JudgedWindows(journal=journal, pipeline=context.pipeline.name).newest_few(KNOWN_BY)
        left_out = window_findings.count_left_out(journal, context.window)
        seen = {name: seen_when_opened(journal, context.window, name) for name in context.window.ranges}
    deadlines = DeadlineCounts(read_deadlines(context.pipeline, context.connections))
    needed = kinds_needed(context.pipeline)
    request = FreezeRequest(
        pipeline=context.pipeline,
        window=context.window,
        findings=findings,
        window_keys=hop_results.most_window_keys(context.pipeline, results),
        left_out=sum(keys for kind, keys in left_out.items() if kind in needed),
        look_at=deadlines.add,
    )
    sources = FreezeSources(
        storage=context.storage.root,
        records=WindowRecords(context, judged, partitions, find_windows_before(context.window), archive_of),
        connections=context.connections,
        tombstones=TombstonesSince(context=context, seen=lambda name: seen[name] or ranges_read(context.window, name)),
    )
    frozen = freeze_plan(journal_dsn(), request, sources)
    _log_deadlines(deadlines)
    return frozen


def end_plans_before(context: WindowContext) -> None:
    """End the plans of earlier revisions of a window that is whole, and has no plan which takes their place.

    Raises:
        TransientError: one of them is running, or a database or Kafka is away: try again.
    """
    dsn = journal_dsn()
    with transaction(dsn, idle_seconds=_FETCH_SECONDS_MOST) as journal:
        targets = targets_of(context.pipeline, context.connections)
        end_earlier_plans(dsn, journal, context.window, targets, repairs=False)


def freeze_plan(journal_dsn: str, request: FreezeRequest, sources: FreezeSources) -> FreezeResult:
    """Return the plan of a window revision: the one that is frozen already, or a new one.

    A plan over its limits is frozen in state `refused`, without payloads. For one that needs no approval the journal
    records that. Findings that no action can answer are marked `refused` with the reason, in the same transaction.
    Plans of earlier revisions of the window end, and keys that they or others wrote since the window was judged are
    refused.

    Raises:
        TransientError: a plan of an earlier revision is running, or a database or the storage is away; nothing was
            frozen.
    """
    window = request.window
    with transaction(journal_dsn, idle_seconds=_FETCH_SECONDS_MOST) as journal:
        place = (window.pipeline, window.number, window.revision)
        stored = plans.plan_of_window(journal, *place, is_freezing=True)
        if stored is not None:
            actions = list(plan_progress.actions_of(journal, stored.plan.id, most=SHOWN))
            return FreezeResult(plan=stored.plan, actions=tuple(item.action for item in actions))
        end_earlier_plans(journal_dsn, journal, window, targets_of(request.pipeline, sources.connections))
        frozen = freeze_findings(journal, request, sources)
        if frozen.plan is not None:
            plans.name_successor(journal, frozen.plan)
        return frozen


def _log_deadlines(counted: DeadlineCounts) -> None:
    """Log when Kafka may delete the originals of the findings. A frozen plan has copies of its own."""
    if counted.deleted:
        logger.warning("Kafka deleted the originals of %d findings already; the snapshot has them", counted.deleted)
    if counted.due:
        logger.info(
            "Kafka may delete the originals of %d findings, from %s on; the snapshot has them",
            counted.due,
            counted.first,
        )


def _observe_topics(journal: PgConnection, context: WindowContext) -> Mapping[str, int]:
    """Record where all logs end before anything is written to them: verify reads from there. Return how many partitions
    each topic has, by point."""
    with topic_logs(context.pipeline.points.values(), context.connections) as logs:
        topics = {name: read_topic_state(log) for name, log in logs.items()}
        observe(journal, context.pipeline, context.connections, topics, context.window.places)
    return {name: len(topic.state.partitions) for name, topic in topics.items()}
