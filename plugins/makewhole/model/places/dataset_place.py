"""Describe which columns of a dataset say from which record each row came."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

FORMATS = ("iceberg", "parquet")
"""The formats of datasets, as a pipeline file names them."""


TABLE_FORMATS = ("iceberg",)
"""Those that a catalogue knows by a name; others are known by a path."""
MANIFESTS = "_manifest*.json"
"""The names of the files that list the files of a dataset which count."""


@dataclass(frozen=True, kw_only=True)
class DatasetPlace:
    """The format of a dataset, and the columns that say from where each row came: `partition` and `offset` of its
    record, and its `topic` where rows of other topics may lie beside them. A part of a column is named behind a dot.

    `of_topics` are the names of the topics that lead into it, and `replay_topics` of those to which their records are
    sent again: a row of another topic is none of the point's. Without `of_topics` all rows are. `marker`: the name of
    the file in whose folder files count; `MANIFESTS`: those count that one of them lists; empty: every file that has
    its name does. `adopts`: a missing row that lies in a file which the table does not list is taken from there.
    `uuid`: which table of the catalogue it is, where the file says it; another one of its name is refused.
    """

    format: str
    partition: str | None = None
    offset: str | None = None
    topic: str | None = None
    of_topics: tuple[str, ...] = ()
    replay_topics: tuple[str, ...] = field(default=(), metadata={"in_document": "if any"})
    marker: str = field(default="", metadata={"in_document": "if any"})
    adopts: bool = field(default=False, metadata={"in_document": "if any"})
    uuid: str = field(default="", metadata={"in_document": "if any"})

    @property
    def position(self) -> tuple[str, ...]:
        """The columns with partition and offset; empty where rows carry none."""
        return () if self.partition is None or self.offset is None else (self.partition, self.offset)

    @property
    def counted_topics(self) -> tuple[str, ...]:
        """The topics whose rows are the point's; empty: all rows are."""
        return tuple(dict.fromkeys((*self.of_topics, *self.replay_topics))) if self.of_topics else ()

    @property
    def named_columns(self) -> tuple[str, ...]:
        """Every column that it names."""
        return tuple(name for name in (self.partition, self.offset, self.topic) if name is not None)

    def renamed(self, rename: Callable[[str], str]) -> "DatasetPlace":
        """Return the same with other names for its columns."""
        new = {name: rename(name) for name in self.named_columns}
        return replace(
            self,
            partition=new.get(self.partition or ""),
            offset=new.get(self.offset or ""),
            topic=new.get(self.topic or ""),
        )
