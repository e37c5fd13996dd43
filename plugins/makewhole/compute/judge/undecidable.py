"""Turn verdicts into undecidable where part of a log is gone: then absence from the log proves nothing."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

import polars as pl

from makewhole.compute.frames import HASH, HASHES, empty
from makewhole.compute.judge.log_history import LogHistory, TimeSpan
from makewhole.compute.placeholders import holds_placeholder
from makewhole.model.verdict import Cause, Verdict

_ALWAYS = (TimeSpan(),)


@dataclass(frozen=True, kw_only=True)
class UndecidableSpans:
    """The spans of a key's time in which a verdict of each kind cannot stand, and the cause. Empty: it stands."""

    missing: tuple[TimeSpan, ...] = ()
    unexpected: tuple[TimeSpan, ...] = ()
    mismatched: tuple[TimeSpan, ...] = ()
    unexpected_cause: Cause = Cause.EXPIRED


@dataclass(frozen=True, kw_only=True)
class UnreadRecords:
    """The records of a topic that could not be read, or that compaction took: the keys (`HASHES`) of those whose key is
    known all the same, and whether there are others (`is_any`), which may be of any key; `spans`: the times of windows
    before with others."""

    keys: pl.DataFrame
    is_any: bool = False
    spans: tuple[TimeSpan, ...] = ()

    @classmethod
    def none(cls) -> "UnreadRecords":
        """Return no records."""
        return cls(keys=empty(HASHES))

    def may_be(self, judged: pl.DataFrame) -> pl.Series:
        """Return for each key (`HASHES`) whether one of the records may have it."""
        named = self.keys.select(HASH).unique().with_columns(pl.lit(True).alias("is_named"))
        is_named = judged.select(HASH).join(named, on=HASH, how="left", maintain_order="left")["is_named"]
        return is_named.fill_null(self.is_any)

    def widened(self, *, before: timedelta = timedelta(), after: timedelta = timedelta()) -> "UnreadRecords":
        """Return the records with spans that begin and end so much earlier and later."""
        return replace(self, spans=tuple(span.widened(before=before, after=after) for span in self.spans))


@dataclass(frozen=True, kw_only=True)
class Lags:
    """How much later than its record a row may come. `settle`: what is usual. `longest`: after that a key is reported
    as late or as missing."""

    settle: timedelta
    longest: timedelta


def undecidable_spans(source: LogHistory, target: LogHistory, lags: Lags) -> UndecidableSpans:
    """Return the spans that the histories of both ends leave open.

    A key that the target lacks may have been in offsets that could not be read: of this window, or of an earlier one
    when its record is as old as that. So may the record of a row that the source does not have, however long its loader
    took; and the record of an event that a row has its value from, which differs from the record that is left: that row
    must not be written over. A topic that differs from its source may have had the right record, too, and it was
    consumed before it was gone. Under upsert the same holds for the latest version, at both ends. A log that was
    truncated or recreated may have held any record behind the last window's end.
    """
    missing = _spans(target, before=lags.settle)
    unexpected = _spans(source, after=lags.settle, longest=lags.longest)
    cause = Cause.EXPIRED
    for incidents, why in ((source.truncated, Cause.TRUNCATED), (source.recreated, Cause.TOPIC_RECREATED)):
        if incidents and not source.is_partial:
            unexpected, cause = _ALWAYS, why
    return UndecidableSpans(
        missing=missing,
        unexpected=unexpected,
        mismatched=(*missing, *_spans(source, after=lags.settle)),
        unexpected_cause=cause,
    )


def _spans(
    log: LogHistory,
    *,
    before: timedelta = timedelta(),
    after: timedelta = timedelta(),
    longest: timedelta = timedelta(),
) -> tuple[TimeSpan, ...]:
    if log.is_partial:
        return _ALWAYS
    expired = (span.widened(before=before, after=max(after, longest)) for span in log.expired)
    return *expired, *(span.widened(before=before, after=after) for span in log.dropped)


def mark_undecidable(judged: pl.DataFrame, open_spans: UndecidableSpans) -> pl.DataFrame:
    """Turn every verdict of `judged` (`JUDGED`) that cannot stand into undecidable, with its cause as the hint."""
    turned = judged
    for verdict, spans, cause in (
        (Verdict.MISSING, open_spans.missing, Cause.EXPIRED),
        (Verdict.UNEXPECTED, open_spans.unexpected, open_spans.unexpected_cause),
        (Verdict.MISMATCHED, open_spans.mismatched, Cause.EXPIRED),
    ):
        is_open = (pl.col("verdict") == verdict.value) & _in_any(spans)
        turned = turned.with_columns(
            pl.when(is_open).then(pl.lit(cause.value)).otherwise("hint").alias("hint"),
            pl.when(is_open).then(pl.lit(Verdict.UNDECIDABLE.value)).otherwise("verdict").alias("verdict"),
        )
    return turned


def mark_unreadable(
    judged: pl.DataFrame,
    source: UnreadRecords,
    target: UnreadRecords,
    lags: Lags,
    *,
    takes_latest: bool = False,
    cause: Cause = Cause.UNREADABLE_RECORD,
) -> pl.DataFrame:
    """Turn every verdict of `judged` (`JUDGED`) into undecidable, for this cause, that a record which could not be read
    may change: of a key that a topic does not have, of a row without a record, and of values that differ. In windows
    before, its key has a time by which the record may lie there, as with offsets that were gone (`undecidable_spans`).
    Where the latest version counts (`takes_latest`), a record of the source may be one that deleted a key which is
    missing, too."""
    target = target.widened(before=lags.settle)
    deletions = (source.widened(after=lags.settle),) if takes_latest else ()
    for verdict, unread in (
        (Verdict.MISSING, (target, *deletions)),
        (Verdict.UNEXPECTED, (source.widened(after=max(lags.settle, lags.longest)),)),
        (Verdict.MISMATCHED, (source.widened(after=lags.settle), target)),
    ):
        for records in unread:
            in_span = judged.with_columns(_in_any(records.spans).alias("in_span"))["in_span"]
            is_there = records.may_be(judged) | in_span
            may_be = (pl.col("verdict") == verdict.value) & is_there
            judged = judged.with_columns(
                pl.when(may_be).then(pl.lit(cause.value)).otherwise("hint").alias("hint"),
                pl.when(may_be).then(pl.lit(Verdict.UNDECIDABLE.value)).otherwise("verdict").alias("verdict"),
            )
    return judged


def name_placeholders(judged: pl.DataFrame, *copies: pl.DataFrame) -> pl.DataFrame:
    """Name the placeholder where the value of a key is not known because copies of it (with columns `c:…`) have one."""
    keys = []
    for frame in copies:
        compared = [name for name in frame.columns if name.startswith("c:")]
        keys.append(frame.filter(pl.col("row_hash").is_null() & holds_placeholder(compared)).select(HASH))
    named = UnreadRecords(keys=pl.concat(keys)).may_be(judged)
    is_one = (pl.col("hint") == Cause.UNREADABLE_VALUE.value) & named
    return judged.with_columns(pl.when(is_one).then(pl.lit(Cause.PLACEHOLDER.value)).otherwise("hint").alias("hint"))


def _in_any(spans: Iterable[TimeSpan]) -> pl.Expr:
    is_inside = pl.lit(False)
    for span in spans:
        is_inside = is_inside | span.holds(pl.col("time"))
    return is_inside
