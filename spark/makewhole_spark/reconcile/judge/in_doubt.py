"""Find the keys of a bucket that transactions in doubt may hold at its target, and judge nothing of them as certain.

A sink that commits in two phases leaves transactions that are prepared, and neither committed nor rolled back. What one
inserted is seen by no one, so that any key that the table lacks may be in it; a row that it changed or deleted is seen
as it was. Such a key is `pending`, and handed over by name, until it has waited for too long. One that the window's
source does not have cannot be handed over, and is undecidable.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import polars as pl

from makewhole.compute.frames import HASH, HASHES, empty
from makewhole.compute.judge.judge_copies import BucketInput
from makewhole.model.points import TablePoint
from makewhole.model.verdict import Cause, Verdict
from makewhole.tables.in_doubt import KeysInDoubt, TransactionInDoubt, together
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.read_copies import SeenInDoubt
from makewhole_spark.reconcile.judge.verdicts import has_verdict, turned

_OF_ROWS = (Verdict.MISMATCHED, Verdict.DUPLICATE, Verdict.CONFLICT, Verdict.UNEXPECTED)


@dataclass(frozen=True, kw_only=True)
class KeysHeld:
    """The keys (`HASHES`) that transactions in doubt may hold, and these transactions, the oldest first. `unread`: the
    keys that may be in files that cannot be read; they are not missing, however long they have waited."""

    keys: pl.DataFrame = field(default_factory=partial(empty, HASHES))
    unread: pl.DataFrame = field(default_factory=partial(empty, HASHES))
    transactions: tuple[TransactionInDoubt, ...] = ()


def keys_held(
    task: BucketTask,
    target: TablePoint,
    target_rows: pl.DataFrame,
    judged: pl.DataFrame,
    seen: SeenInDoubt,
) -> KeysHeld:
    """Return the keys that transactions in doubt may hold, of those that are wrong by the first verdicts (`JUDGED`).

    `target_rows`: the rows that are known of the target. `seen`: the transactions in doubt while the rows of keys were
    looked up; None: nothing was looked up. A key without a row may be held by each that may hold it at all. Of a key
    with a row the row is looked at, unless one of them has ended since: then what is known of the row may be what was
    there before. A file changes no row; under upsert it may hold the latest version of a key with a row, too.
    """
    transactions = together(seen or (), task.known_since.in_doubt)
    absent = judged.filter(has_verdict(Verdict.MISSING)).join(target_rows, on=HASH, how="anti")
    with_row = judged.filter(has_verdict(Verdict.MISSING, *_OF_ROWS)).join(target_rows, on=HASH, how="semi")
    if with_row.is_empty() or (seen == () and not transactions):
        return _held(absent, transactions)
    now = _ask_for_rows(task, target, with_row)
    ending = {item.gid for item in transactions if not item.is_file}  # a file only adds rows
    have_ended = ending - {item.gid for item in now.transactions}
    held = with_row if have_ended else with_row.filter(pl.col("key").is_in(list(now.keys)))
    transactions = together(transactions, now.transactions)
    of_files = [item for item in transactions if item.is_file] if task.is_upsert else []
    also = _held(with_row.join(held, on=HASH, how="anti"), of_files)
    of_absent = _held(absent, transactions)
    if not transactions:
        return KeysHeld()
    return KeysHeld(
        keys=pl.concat([of_absent.keys, held.select(*HASHES), also.keys]),
        unread=pl.concat([of_absent.unread, also.unread]),
        transactions=transactions,
    )


def _held(keys: pl.DataFrame, transactions: Sequence[TransactionInDoubt]) -> KeysHeld:
    """Return those of some keys that transactions may hold, with these."""
    own = tuple(item for item in transactions if item.keys is None or not keys.filter(_may_hold([item])).is_empty())
    if not own:
        return KeysHeld()
    unread = keys.filter(_may_hold([item for item in own if item.is_unreadable]))
    return KeysHeld(keys=keys.filter(_may_hold(own)).select(*HASHES), unread=unread.select(*HASHES), transactions=own)


def _may_hold(transactions: Sequence[TransactionInDoubt]) -> pl.Expr:
    if any(item.keys is None for item in transactions):
        return pl.lit(True)
    named = sorted({key for item in transactions for key in item.keys or ()})
    return pl.col("key").is_in(pl.Series(named, dtype=pl.String).implode())


def unexpected_held(judged: pl.DataFrame, seen: SeenInDoubt) -> KeysHeld:
    """Return the keys that only the target has by the first verdicts, and that transactions in doubt at the source
    (`seen`) may hold there. Another branch of such a transaction may have been committed at the target already."""
    if not seen:
        return KeysHeld()
    return KeysHeld(keys=judged.filter(has_verdict(Verdict.UNEXPECTED)).select(*HASHES), transactions=seen)


def _ask_for_rows(task: BucketTask, target: TablePoint, keys: pl.DataFrame) -> KeysInDoubt:
    shape = task.context.table_shape(target)
    return task.context.tables(target).keys_in_doubt(shape, keys.sort(HASH)["key"].to_list())


def with_keys_held(known: BucketInput, held: KeysHeld) -> BucketInput:
    """Return what is known with the keys that are held as unsettled, but for those that have waited for too long and
    may not wait on."""
    if held.keys.is_empty():
        return known
    overdue = known.overdue.join(held.unread, on=HASH, how="anti")
    waiting = held.keys.join(overdue, on=HASH, how="anti")
    unsettled = pl.concat([known.unsettled, waiting]).unique(maintain_order=True)
    return replace(known, overdue=overdue, unsettled=unsettled)


def mark_in_doubt(judged: pl.DataFrame, held: KeysHeld, at_source: KeysHeld, overdue: pl.DataFrame) -> pl.DataFrame:
    """Turn what is wrong with rows that transactions in doubt may have changed into what is not known yet, and so what
    only the target has where the source may hold it. What the target lacks is `pending` by the kernel. `overdue`
    (`HASHES`): keys that may wait no longer."""
    of_source = judged.join(at_source.keys, on=HASH, how="semi")["key_hash"].to_list()
    judged = turned(judged, has_verdict(Verdict.UNEXPECTED), of_source, Verdict.UNDECIDABLE, Cause.IN_DOUBT)
    if held.keys.is_empty():
        return judged
    of_keys = judged.join(held.keys, on=HASH, how="semi")
    waiting = of_keys.filter("in_source").join(overdue, on=HASH, how="anti")["key_hash"]
    without_source = of_keys.filter(~pl.col("in_source"))["key_hash"]
    may_be = has_verdict(*_OF_ROWS)
    marked = turned(judged, may_be, waiting.to_list(), Verdict.PENDING, Cause.IN_DOUBT)
    return turned(marked, may_be, without_source.to_list(), Verdict.UNDECIDABLE, Cause.IN_DOUBT)
