"""Make the results of topics that no hop joins, whose records are held to each other."""

from collections.abc import Iterable, Iterator

from makewhole.compute import rollup
from makewhole.gate.summary import HopSummary
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.text import NOT_NUMBERED
from makewhole.model.verdict import HopCounts
from makewhole.window.configuration import judging_sha256
from makewhole.window.reach.limits import history_begins_document
from makewhole_spark.reconcile.count_repeated import RepeatsOfBucket
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.reconcile.gather.point_facts import point_evidence
from makewhole_spark.reconcile.write_index import KeyRuns


def results_of_topics(
    neighbours: NeighbouringWindows, runs: KeyRuns, counted: Iterable[RepeatsOfBucket]
) -> Iterator[HopResult]:
    """Yield a result by the name of each topic that no hop joins: its keys, its records, and their digest. It has no
    verdicts: which keys have several records is an incident."""
    answers = list(counted)
    for point in neighbours.context.pipeline.topics_alone:
        manifest = neighbours.manifests[point.name]
        evidence = point_evidence(point.name, neighbours.manifests)
        summary = HopSummary(
            hop=point.name,
            counts=HopCounts(source_keys=runs[point.name].keys, source_rows=manifest["rows"]),
            expected_rows=0,
            source=evidence,
            target=evidence,
            handovers_written=0,
            unnumbered=manifest.get(NOT_NUMBERED, 0),
        )
        digest = rollup.add_digests(answer.digest for answer in answers if answer.point == point.name)
        yield HopResult(
            hop=point.name,
            counts=summary.counts,
            digest=rollup.digest_text(digest),
            files={
                "verdicts": [],
                "verdicts_by_bucket": {},
                "findings": [],
                "summary": summary.to_json_dict(),
                **history_begins_document({point.name: neighbours.history_begins(point.name)}),
                "judging_sha256": judging_sha256(neighbours.context.pipeline),
            },
        )
