"""What cannot be known of a key because part of a log is gone: then absence proves nothing, in neither direction."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from makewhole.compute.log_history import LogHistory, TimeSpan
from makewhole.model.verdict import Cause, Verdict

_ALWAYS = (TimeSpan(),)


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """In which spans of a key's time a verdict of each kind cannot stand, and why. Empty: everywhere it can."""

    missing: tuple[TimeSpan, ...] = ()
    unexpected: tuple[TimeSpan, ...] = ()
    mismatched: tuple[TimeSpan, ...] = ()
    stranger_cause: Cause = Cause.EXPIRED


def doubt_of(source: LogHistory, target: LogHistory, settle: timedelta, *, is_upsert: bool) -> Doubt:
    """What the histories of both ends leave open.

    A key that the target lacks may have been in offsets that nobody could read: of this window, or of an earlier one
    when its record is as old as that. So may the record of a row that the source does not know: a consumer lags by the
    settle time at most. Under upsert the same holds for the latest version. Of a log that was cut off or made again
    nobody knows what it held behind the last window's end.
    """
    missing = _spans(target, before=settle)
    strangers = _spans(source, after=settle)
    cause = Cause.EXPIRED
    for found, why in ((source.truncated, Cause.TRUNCATED), (source.recreated, Cause.TOPIC_RECREATED)):
        if found and not source.is_partial:
            strangers, cause = _ALWAYS, why
    return Doubt(
        missing=missing,
        unexpected=strangers,
        mismatched=(*missing, *_spans(source, after=settle)) if is_upsert else (),
        stranger_cause=cause,
    )


def _spans(log: LogHistory, *, before: timedelta = timedelta(), after: timedelta = timedelta()) -> tuple[TimeSpan, ...]:
    if log.is_partial:
        return _ALWAYS
    return tuple(span.around(before=before, after=after) for span in log.expired)


def with_doubt(judged: pl.DataFrame, doubt: Doubt) -> pl.DataFrame:
    """`judged` (`JUDGED`) with every verdict that cannot stand turned into undecidable, its cause as the hint."""
    turned = judged
    for verdict, spans, cause in (
        (Verdict.MISSING, doubt.missing, Cause.EXPIRED),
        (Verdict.UNEXPECTED, doubt.unexpected, doubt.stranger_cause),
        (Verdict.MISMATCHED, doubt.mismatched, Cause.EXPIRED),
    ):
        is_doubtful = (pl.col("verdict") == verdict.value) & _in_any(spans)
        turned = turned.with_columns(
            pl.when(is_doubtful).then(pl.lit(cause.value)).otherwise("hint").alias("hint"),
            pl.when(is_doubtful).then(pl.lit(Verdict.UNDECIDABLE.value)).otherwise("verdict").alias("verdict"),
        )
    return turned


def _in_any(spans: Iterable[TimeSpan]) -> pl.Expr:
    found = pl.lit(False)
    for span in spans:
        found = found | span.holds(pl.col("time"))
    return found
