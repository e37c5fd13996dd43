"""Describe where a sink keeps how far it has come in a topic."""

from dataclasses import dataclass
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
    the sink: comparisons joined by `and`.
    """

    table: str
    partition: str
    offset: str
    means: OffsetMeaning = OffsetMeaning.NEXT
    topic: str | None = None
    where: str | None = None

    @property
    def text(self) -> str:
        """Name what is read, for messages; another text is another progress."""
        meaning = "" if self.means is OffsetMeaning.NEXT else ", the last one done"
        return f"{self.offset} of {self.table}{f' where {self.where}' if self.where else ''}{meaning}"

    def rows_of(self, topic: str, partition: int) -> str:
        """Return the condition by which a person finds the rows of a partition."""
        quoted = topic.replace("'", "''")
        terms = [f"{self.partition} = {partition}", *([f"{self.topic} = '{quoted}'"] if self.topic else [])]
        return " and ".join([*terms, *([self.where] if self.where else [])])
