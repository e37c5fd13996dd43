"""Name the topics that are filled from the source of a hop beside its target: what they show of missing keys."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CopiedTopic:
    """A topic of the same cluster that another hop fills from the same source: the files of a bucket of its snapshot,
    and its archive."""

    point: str
    files: tuple[str, ...]
    archive: str


@dataclass(frozen=True, kw_only=True)
class CopiedElsewhere:
    """The topics that are filled from a hop's source beside its target; of the target itself the files of all buckets,
    and the archive."""

    topics: tuple[CopiedTopic, ...]
    target_files: tuple[str, ...]
    target_archive: str
