"""Hold what makewhole said and did of a window of versions to what was true: each difference is a sentence."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.histories.upserts.events import History
from tests.histories.upserts.held import Held, Seen, says
from tests.histories.watched import TableRow
from tests.world.orders import BORN, DAY
from tests.world.shop import LEDGER_HOP, STORE_HOP

_STORE_HOPS = (STORE_HOP, "others→warehouse", "outbox→warehouse", "archive→warehouse")
_NOT_KNOWN = {"undecidable"}


def differences(history: History, seen: Sequence[Seen]) -> list[str]:
    """Return everything that makewhole said or did in the last window and that was not right."""
    now = seen[-1]
    wrong = [*_of_store(seen), *_of_certificate(seen), *_of_alarms(seen), *now.unnamed]
    if history.has_ledger and not history.is_direct:
        wrong += _of_ledger(now)
    if now.before is not None and now.after is not None:
        wrong += _of_repair(history, seen, now.before, now.after)
    return [f"window {len(seen)} ({now.state}): {difference}" for difference in wrong]


# What a window is about


def _keys(seen: Sequence[Seen]) -> set[str]:
    """Return the keys that the last window is about: those of its records, and of rows with a time of its day."""
    now = seen[-1]
    held = now.moments[0]
    rows = {row["id"] for row in held.warehouse if _day_of(row) == now.day}
    return {record.version.key for record in held.records if now.has(record)} | rows


def _day_of(row: TableRow) -> int:
    return int((datetime.fromisoformat(row["at"]) - BORN) // DAY)


def _is_whole(now: Seen, held: Held, key: str) -> bool:
    """Whether a key is whole by the records of the window and those before, or by all of them."""
    return held.until(now.ends).is_whole(key) or held.is_whole(key)


def _is_explained_by_file(seen: Sequence[Seen], key: str) -> bool:
    """Whether a key was whole under a filter that the file had in an earlier window, and nothing of it came since."""
    now = seen[-1].moments[0]
    if any(seen[-1].has(record) for record in now.of_key(key)):
        return False
    earlier = [before.moments[0].region for before in seen[:-1] if before.moments[0].region != now.region]
    return any(Held(now.has_version, region, now.records, (), now.warehouse).is_whole(key) for region in earlier)


def _is_in_doubt_by_file(seen: Sequence[Seen], cause: str | None) -> bool:
    """Whether a key may be in doubt, since its record was read when the file had another filter. A ledger does not
    say whether it was that, or the key left the filter in an earlier window."""
    has_changed = any(earlier.moments[0].region != seen[-1].moments[0].region for earlier in seen[:-1])
    return cause == "filter_changed" and (has_changed or seen[-1].moments[0].is_direct)


# What it said


def _of_store(seen: Sequence[Seen]) -> Iterator[str]:
    now = seen[-1]
    for key in sorted(_keys(seen)):
        verdict, cause = next((now.found[hop, key] for hop in _STORE_HOPS if (hop, key) in now.found), (None, None))
        whole = [_is_whole(now, held, key) for held in now.moments[:1]]
        held = now.moments[0]
        if held.is_damaged(key) or verdict in _NOT_KNOWN:
            is_unread = any(record.damage for record in held.of_key(key))
            if verdict is not None and not is_unread and not _is_in_doubt_by_file(seen, cause):
                yield f"{key} is said to be {verdict} ({cause}), and all of it can be read. {_shown(now, key)}"
            continue
        if verdict is None and not any(whole) and not _is_explained_by_file(seen, key):
            yield f"nothing is said of {key}, which is wrong in the store. {_shown(now, key)}"
        if verdict is not None and all(whole):
            yield f"{key} is said to be {verdict} ({cause}), and is right. {_shown(now, key)}"


def _of_ledger(now: Seen) -> Iterator[str]:
    held = now.moments[0]
    for key in sorted({row["id"] for row in held.outbox if _day_of(row) == now.day}):
        verdict, cause = now.found.get((LEDGER_HOP, key), (None, None))
        is_whole = _topic_has(held, key)
        if held.is_damaged(key, in_topic=True) or held.is_unnumbered(key):
            continue
        if verdict is None and not is_whole:
            yield f"nothing is said of {key}, which the topic has not as the ledger. {_shown(now, key)}"
        if verdict is not None and is_whole:
            yield f"{key} is said to be {verdict} ({cause}) in the topic, and is right. {_shown(now, key)}"


def _topic_has(held: Held, key: str) -> bool:
    """Whether the latest version of the topic is at least that of the ledger, with its value."""
    latest, row = held.latest(key), _newest_row(held, key)
    if latest is None or latest.is_deletion:
        return False
    return says(row, latest, has_version=held.has_version)


def _newest_row(held: Held, key: str) -> TableRow:
    return max((row for row in held.outbox if row["id"] == key), key=lambda row: row.get("version", row["at"]))


def _of_certificate(seen: Sequence[Seen]) -> Iterator[str]:
    now = seen[-1]
    if now.state != "certified":
        return
    for record in now.moments[0].records:
        if now.has(record) and record.damage and now.moments[0].is_damaged(record.version.key):
            yield f"certified, and a record of {record.version.key} cannot be read"
    for key in sorted(_keys(seen)):
        is_whole = any(_is_whole(now, held, key) for held in now.moments)
        if not is_whole and not now.moments[0].is_damaged(key) and not _is_explained_by_file(seen, key):
            yield f"certified over {key}. {_shown(now, key)}"


def _of_alarms(seen: Sequence[Seen]) -> Iterator[str]:
    now = seen[-1]
    held = now.moments[0]
    if now.state == "certified":
        return
    if not now.reason:
        yield "there is no reason"
    if now.state not in ("gaps", "not_known"):
        yield f"the window came to no end: {now.reason}"
    is_damaged = any(record.damage for record in held.records if record.offset < now.ends[record.partition])
    # A ledger's row of another day that was touched since is looked at once more.
    are_whole = all(_is_whole(now, held, key) for key in _keys(seen) | {key for _, key in now.found})
    is_in_doubt = any(_is_in_doubt_by_file(seen, cause) for _, cause in now.found.values())
    if are_whole and not is_damaged and not is_in_doubt and not [hop for hop, _ in now.found if hop == LEDGER_HOP]:
        yield f"nothing is wrong, and it is not certified: {now.reason}"


# What it did


def _of_repair(history: History, seen: Sequence[Seen], before: Held, after: Held) -> Iterator[str]:
    now = seen[-1]
    if not history.is_repairing and (before.warehouse != after.warehouse or before.records != after.records):
        yield "the pipeline only reports, and something was written"
    yield from _of_sent(before, after)
    for key in sorted({row["id"] for row in (*before.warehouse, *after.warehouse)}):
        old, new = before.rows_of(key), after.rows_of(key)
        if old != new:
            shown = f"{old} → {new}. {_shown(now, key)}"
            yield from (f"{key}: {text}. {shown}" for text in _of_rows(seen, before, key, old, new))


def _of_rows(seen: Sequence[Seen], before: Held, key: str, old: list[TableRow], new: list[TableRow]) -> Iterator[str]:
    due = before.due(key)
    if not any((hop, key) in seen[-1].found for hop in _STORE_HOPS):
        yield "was written to, and nothing was said to be wrong with it"
    if before.is_whole(key):
        yield "was right, and was written to"
    if _is_explained_by_file(seen, key):
        yield "is other than it should be by a change of the file alone, and was written to"
    if before.is_damaged(key):
        yield "has a record that cannot be read, and was written to"
    if due is None and new:
        yield "should have no row, and was given one"
    if due is not None and not (len(new) == 1 and says(new[0], due, has_version=before.has_version)):
        yield "has not the values of its latest version"
    is_new = bool(new) and not old and due is not None
    if is_new and (new[0]["region"], new[0]["number"]) != (due.region, int(due.key[1:])):  # type: ignore[union-attr]
        yield "has other values than its record in what the file says is written"


def _of_sent(before: Held, after: Held) -> Iterator[str]:
    sent = [record.version for record in after.records if record not in before.records]
    for key in sorted({version.key for version in sent}):
        of_key = [version for version in sent if version.key == key]
        rows = [row for row in before.outbox if row["id"] == key]
        if len(of_key) > 1:
            yield f"{key} was sent {len(of_key)} times"
        if not rows or not says(_newest_row(before, key), of_key[0], has_version=before.has_version):
            yield f"{key} was sent, and the ledger does not say so: {of_key[0]}, {rows}"
        elif _topic_has(before, key):
            yield f"{key} was sent, and the topic had it"
        if before.is_damaged(key):
            yield f"{key} was sent, and the topic has a record of it that cannot be read"


def _shown(now: Seen, key: str) -> str:
    held = now.moments[0]
    log: list[Mapping[str, Any] | str] = [
        f"{record.partition}:{record.offset} v{record.version.number} {record.version.cents} {record.version.region}"
        f"{' deleted' if record.version.is_deletion else ''}{' damaged ' + record.damage if record.damage else ''}"
        f"{' *' if now.has(record) else ''}"
        for record in held.of_key(key)
    ]
    rows = [dict(row) for row in held.rows_of(key)]
    ledger = [(row.get("version"), row["amount"], row["at"]) for row in held.outbox if row["id"] == key]
    return f"Ledger {ledger}, log {log}, store {rows}, filter {held.region}"
