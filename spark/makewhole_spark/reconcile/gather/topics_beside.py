"""Gather the topics that are filled from the source of a hop beside its target: one transaction may write to both."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from makewhole.compute.buckets import files_of_bucket
from makewhole.model.hops import Hop
from makewhole.model.points import has_log
from makewhole_spark.reconcile.bucket.other_topics import CopiedElsewhere, CopiedTopic
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows


@dataclass(frozen=True, kw_only=True)
class TopicsBeside:
    """The manifests of a hop's target, and of the topics beside it, by point."""

    target: Mapping[str, Any]
    beside: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, neighbours: NeighbouringWindows, hop: Hop) -> "TopicsBeside | None":
        """Return them; None where there are none."""
        pipeline, target = neighbours.context.pipeline, neighbours.context.pipeline.points[hop.target]
        source = pipeline.place_of(hop.source)
        names = {other.target for other in pipeline.hops if pipeline.place_of(other.source) == source}
        beside = {
            name: neighbours.manifests[name]
            for name in sorted(names)
            if has_log(pipeline.points[name])
            and pipeline.points[name].connection == target.connection
            and pipeline.place_of(name) != pipeline.place_of(hop.target)
        }
        return cls(target=neighbours.manifests[hop.target], beside=beside) if has_log(target) and beside else None

    def in_bucket(self, bucket: str) -> CopiedElsewhere:
        """Return what a bucket's task is given of them."""
        return CopiedElsewhere(
            topics=tuple(
                CopiedTopic(point=name, files=files_of_bucket(manifest["files"], bucket), archive=manifest["archive"])
                for name, manifest in self.beside.items()
            ),
            target_files=tuple(sorted({path for paths in self.target["files"].values() for path in paths})),
            target_archive=self.target["archive"],
        )
