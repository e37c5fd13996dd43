"""Return whether the two ends of a hop still agree on a key of which a repair changed the rows at one end: pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from makewhole.compute.versions import are_ordered, is_later_version
from makewhole.model.hops import Semantics
from makewhole.model.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class EndCopy:
    """A copy of a key at one end of a hop, a row or a record.

    `row_hash`: of the compared values; None: it has none, or they are not known. `passes`: the filter of the hop; None:
    not known. `partition` and `order` say where a record stands: of two in one partition the one with the higher order
    came later.
    """

    row_hash: int | None
    version: Decimal | None = None
    is_tombstone: bool = False
    passes: bool | None = True
    partition: int = 0
    order: tuple[int, ...] = ()


class _NotKnownError(Exception):
    """Signal that the rows or records of a key at an end of the hop cannot be known."""


def broken_verdict(
    semantics: Semantics, source: Sequence[EndCopy], target: Sequence[EndCopy], *, is_source_changed: bool
) -> Verdict | None:
    """Return the verdict on a key now that a repair changed its rows at one end of a hop; None: that end agrees with
    the other, or the other has nothing of the key, or nothing that is known.

    `is_source_changed`: the rows are those of the hop's source, and otherwise of its target.
    """
    judge = _of_versions if semantics is Semantics.UPSERT else _of_events
    try:
        return judge(source, target, is_source_changed)
    except _NotKnownError:
        return None


def _of_events(source: Sequence[EndCopy], target: Sequence[EndCopy], is_source_changed: bool) -> Verdict | None:
    sent = _values(copy for copy in source if copy.passes)
    held = _values(target)
    if not sent or not held:
        return _one_sided(bool(sent), bool(held), is_source_changed)
    return None if held <= sent else Verdict.MISMATCHED


def _values(copies: Iterable[EndCopy]) -> set[int]:
    hashes = [copy.row_hash for copy in copies if not copy.is_tombstone]
    if None in hashes:
        raise _NotKnownError
    return {value for value in hashes if value is not None}


def _of_versions(source: Sequence[EndCopy], target: Sequence[EndCopy], is_source_changed: bool) -> Verdict | None:
    sent, held = _latest(source), _latest(target)
    if sent is not None and sent.passes is None:
        raise _NotKnownError
    is_sent = sent is not None and not sent.is_tombstone and bool(sent.passes)
    is_held = held is not None and not held.is_tombstone
    if sent is None or held is None or not is_sent or not is_held:
        return _one_sided(is_sent, is_held, is_source_changed)
    if sent.row_hash is None or held.row_hash is None:
        raise _NotKnownError
    is_ahead = is_later_version(held.version, sent.version)
    return None if sent.row_hash == held.row_hash or is_ahead else Verdict.MISMATCHED


def _one_sided(is_sent: bool, is_held: bool, is_source_changed: bool) -> Verdict | None:
    """Return the verdict where at most one end has the key: the repair took it from the other."""
    if is_source_changed:
        return Verdict.UNEXPECTED if is_held and not is_sent else None
    return Verdict.MISSING if is_sent and not is_held else None


def _latest(copies: Sequence[EndCopy]) -> EndCopy | None:
    """Return the latest version of a key at one end; None: there is none.

    Raises:
        _NotKnownError: nothing orders its copies.
    """
    if len({copy.partition for copy in copies}) < 2:
        in_order = sorted(copies, key=lambda copy: copy.order)
        ends = [at for at, copy in enumerate(in_order) if copy.is_tombstone and copy.version is None]
        copies = in_order[ends[-1] :] if ends else in_order
        if all(copy.version is None for copy in copies):
            return copies[-1] if copies else None
        copies = [copy for copy in copies if not (copy.is_tombstone and copy.version is None)]
    return _highest(copies)


def _highest(copies: Sequence[EndCopy]) -> EndCopy | None:
    if not copies:
        return None
    if len({copy.row_hash for copy in copies}) == 1 and len({copy.passes for copy in copies}) == 1:
        return copies[-1]
    if not are_ordered(copy.version for copy in copies):
        raise _NotKnownError
    latest = max(copies, key=lambda copy: copy.version or Decimal(0))
    if any(copy.version == latest.version and copy.row_hash != latest.row_hash for copy in copies):
        raise _NotKnownError
    return latest
