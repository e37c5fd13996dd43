"""Describe where a sink keeps how far it has come in a topic."""

from dataclasses import dataclass, field
from enum import StrEnum


class OffsetMeaning(StrEnum):
    """Name what the offset in a sink's own progress is: of the record that it reads `next`, or of the `last` one that
    is in its store."""

    NEXT = "next"
    LAST = "last"


@dataclass(frozen=True, kw_only=True)
class SinkProgress:
    """The table in which a sink keeps how far it has come in a topic, in the database of its store: its columns with
    the partition and the offset, and what the offset means.

    `topic` is the column with the topic's name; None: all rows are of the topic. `where` narrows the rows to those of
    the sink: comparisons joined by `and`. `is_of_files`: no table says it, but the files of the store themselves.
    `other_topics` are those that come into these files besides, where rows do not say which topic they are of: their
    positions say nothing.
    """

    table: str
    partition: str
    offset: str
    means: OffsetMeaning = OffsetMeaning.NEXT
    topic: str | None = None
    where: str | None = None
    is_of_files: bool = field(default=False, metadata={"in_document": "if any"})
    other_topics: tuple[str, ...] = field(default=(), metadata={"in_document": "if any"})

    @property
    def knows_topics(self) -> bool:
        """Whether what it says of one topic is never taken for what it says of another."""
        return not self.other_topics if self.is_of_files else self.topic is not None

    @property
    def text(self) -> str:
        """Name what is read, for messages; another text is another progress."""
        if self.is_of_files:
            return self.table
        meaning = "" if self.means is OffsetMeaning.NEXT else ", the last one done"
        return f"{self.offset} of {self.table}{f' where {self.where}' if self.where else ''}{meaning}"

    def rows_of(self, topic: str, partition: int) -> str:
        """Return the condition by which a person finds the rows of a partition."""
        if self.is_of_files:
            return f"{topic}/{partition}"
        quoted = topic.replace("'", "''")
        terms = [f"{self.partition} = {partition}", *([f"{self.topic} = '{quoted}'"] if self.topic else [])]
        return " and ".join([*terms, *([self.where] if self.where else [])])


FILES_THEMSELVES = SinkProgress(
    table="its files",
    partition="partition",
    offset="offset",
    means=OffsetMeaning.LAST,
    is_of_files=True,
)
"""The progress of what writes a dataset of files, as these say it by their names, or by the positions of their rows."""
