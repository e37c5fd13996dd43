"""Read compared windows by what they are needed for: those of some times, of some offsets, or right before one.

Each question reads what it answers, however many windows there were: windows tile, so that a span of time is a span of
numbers, and the first and the last range of a partition stand at the ends of an index.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from makewhole.journal.windows import windows_of
from makewhole.model.window import Window
from makewhole.sql import PgConnection, statements_of

_run = statements_of("window_history")

WindowTimes = tuple[datetime | None, datetime]
_LAST = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class TruncatedLog:
    """The offsets of a partition that a truncation took: of lineages up to this one, from `lo` on."""

    topic_id: str
    partition: int
    lineage: int
    lo: int


@dataclass(frozen=True, kw_only=True)
class JudgedWindows:
    """Reads the compared windows of a pipeline, each in its newest compared revision, oldest first."""

    journal: PgConnection
    pipeline: str

    def of_numbers(self, numbers: Collection[int]) -> list[Window]:
        """Return those of these numbers."""
        rows = self._run("judged", numbers=sorted(numbers)) if numbers else []
        return windows_of(self.journal, self.pipeline, rows)

    def before(self, number: int) -> Window | None:
        """Return the newest one before a number."""
        return self._one("judged_number_before", number=number)

    def newest(self) -> Window | None:
        """Return the newest one."""
        return self._one("judged_number_before", number=_LAST)

    def newest_few(self, most: int) -> list[Window]:
        """Return the newest ones, at most so many, newest first."""
        numbers = self._run("newest_judged_numbers", most=most)
        return self.of_numbers([number for (number,) in numbers])[::-1]

    def holding(self, point: str, positions: Collection[tuple[int, int]], before: int) -> list[Window]:
        """Return those before a number whose ranges of a topic hold any of some (partition, offset), newest first."""
        if not positions:
            return []
        partitions, offsets = zip(*sorted(positions), strict=True)
        values = {"point": point, "partitions": list(partitions), "offsets": list(offsets), "number": before}
        numbers = self._run("numbers_holding", **values)
        return self.of_numbers([number for (number,) in numbers])[::-1]

    def after(self, number: int) -> list[Window]:
        """Return those after a number: none where it is the newest."""
        return self._between(number + 1, _LAST)

    def since(self, number: int, *, before: int) -> list[Window]:
        """Return those from a number on, before another."""
        return self._between(number, before - 1)

    def first(self) -> Window | None:
        """Return the first one."""
        return self._one("first_judged_number")

    def first_reading(self, point: str) -> Window | None:
        """Return the first one that read a topic."""
        return self._one("first_number_with", point=point)

    def ending_after(self, moment: datetime | None, before: int) -> list[Window]:
        """Return those before a number that end after a moment; None: all of them."""
        first = 1 if moment is None else self.number_ending_after(moment) or before
        return self._between(first, before - 1)

    def number_ending_after(self, moment: datetime) -> int | None:
        """Return the number of the first window, judged or not, that ends after a moment; None without one."""
        return next((number for (number,) in self._run("number_ending_after", moment=moment)), None)

    def first_within(self, history: timedelta | None) -> int:
        """Return the number of the first window, judged or not, that ended no longer than `history` before the newest
        one began; None: that of the first one."""
        newest = None if history is None else self.newest()
        if history is None or newest is None or newest.start is None:
            return 1
        return self.number_ending_after(newest.start - history) or newest.number

    def start_of(self, number: int) -> datetime | None:
        """Return when a window begins, judged or not; None: at the beginning."""
        return next((start for (start,) in self._run("start_of", number=number)), None)

    def in_spans(self, spans: Iterable[WindowTimes], before: int) -> list[Window]:
        """Return those before a number whose times lie in one of some spans."""
        starts, ends = [], []
        for start, end in spans:
            starts.append(start)
            ends.append(end)
        numbers = self._run("numbers_in_spans", starts=starts, ends=ends) if ends else ()
        return self.of_numbers([number for (number,) in numbers if number < before])

    def reached_by(self, point: str, truncated: Sequence[TruncatedLog], before: int) -> list[Window]:
        """Return those before a number that truncations of a topic took records from."""
        if not truncated:
            return []
        numbers = self._run(
            "numbers_reached",
            point=point,
            number=before,
            topic_ids=[log.topic_id for log in truncated],
            partitions=[log.partition for log in truncated],
            lineages=[log.lineage for log in truncated],
            los=[log.lo for log in truncated],
        )
        return self.of_numbers([number for (number,) in numbers])

    def topic_ids(self, points: Sequence[str]) -> list[tuple[str, str, int]]:
        """Return (point, topic id, number of the first window that read it) of topics, the oldest first."""
        return [(point, topic_id, number) for point, topic_id, number in self._run("topic_ids", points=list(points))]

    def fullest_manifests(self, numbers: Collection[int]) -> dict[int, dict[str, Mapping[str, Any]]]:
        """Return the manifests of windows by number and point: of the compared revision (`revision`) that could read
        most of its offsets."""
        manifests: dict[int, dict[str, Mapping[str, Any]]] = {number: {} for number in numbers}
        for number, point, manifest in self._run("fullest_manifests", numbers=sorted(numbers)) if numbers else ():
            manifests[number][point] = manifest
        return manifests

    def _between(self, first: int, last: int) -> list[Window]:
        numbers = self._run("judged_numbers", first=first, last=last) if first <= last else ()
        return self.of_numbers([number for (number,) in numbers])

    def _one(self, statement: str, **values: Any) -> Window | None:
        windows = self.of_numbers([number for (number,) in self._run(statement, **values)])
        return windows[0] if windows else None

    def _run(self, statement: str, **values: Any) -> list[Any]:
        return _run(self.journal, statement, pipeline=self.pipeline, **values)
