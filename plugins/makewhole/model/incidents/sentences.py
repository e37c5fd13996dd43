"""Describe an incident in words: what happened to which log or table."""

from collections.abc import Callable, Mapping
from typing import Any

from makewhole.model.incident import Doubt, Incident, IncidentKind
from makewhole.model.incidents.progress import (
    is_sink_unknown,
    progress_out_of_range,
    stalled_progress,
    stalled_sink,
    unknown_progress,
    unknown_sink,
)
from makewhole.model.text import counted, repeated_keys_text

_LISTED_MOST = 3


def incident_sentence(incident: Incident) -> str:
    """Return what happened as one sentence without its full stop."""
    return _SENTENCES[incident.kind](incident)


_DOUBTS: Mapping[Doubt, Callable[[int], str]] = {
    Doubt.NOT_LOOKED_AT: lambda _: "it was not looked into",
    Doubt.FEW_COPIES: lambda _: "one replica alone may acknowledge a record (min.insync.replicas, replication factor)",
    Doubt.UNCLEAN_ELECTION: lambda _: "a replica that lags may lead (unclean.leader.election.enable=true)",
    Doubt.SETTINGS_UNKNOWN: lambda _: "the settings of the topic may not be read",
    Doubt.ACKS_UNKNOWN: lambda count: (
        f"{counted(count, 'record')} of the window without a producer id, whose acks are not known"
    ),
    Doubt.NUMBERS_MISSING: lambda count: f"the numbering of its producers has {counted(count, 'gap')}",
}


def _offsets(incident: Incident) -> str:
    count = f"{incident.span:,} offset{'' if incident.span == 1 else 's'}"
    return f"{count} of {incident.place} ([{incident.lo}, {incident.hi}))"


def _truncated(incident: Incident) -> str:
    if incident.is_partial:
        return (
            f"{_offsets(incident)} were deleted before they could be read: a new leader did not have them, and cut "
            "them off after the window was opened"
        )
    return (
        f"{_offsets(incident)} that windows had read are gone: a new leader did not have them, and gave them away again"
    )


def _made_again(incident: Incident) -> str:
    if incident.is_partial:
        return f"{_offsets(incident)} were deleted before they could be read: the topic was deleted and made again"
    return (
        f"topic {incident.topic} was deleted and made again (its id is {incident.topic_id}, it was "
        f"{incident.detail.get('old_id')}); what the old one held behind the last window is not known"
    )


def _leaders(incident: Incident) -> str:
    epochs = [str(epoch) for epoch, _ in incident.detail.get("epochs", [])]
    before = incident.detail.get("before")
    if before is not None and str(before) not in epochs:
        epochs.insert(0, str(before))
    changed = f"the leader of {incident.place} changed: leader epochs {', '.join(epochs)}"
    if "doubts" not in incident.detail:
        return changed
    if not incident.may_have_lost:
        return f"{changed}; nothing shows that it took acknowledged records along"
    why = ", ".join(_DOUBTS[doubt](count) for doubt, count in incident.doubts.items())
    return f"{changed}, and it may have taken acknowledged records along: {why}"


def _beginning(incident: Incident) -> str:
    if incident.detail["begins_at"] is None:
        return (
            f"the beginning of {incident.topic} was deleted before the first window, and {_stamps(incident)}: from "
            "when on it has its records is not known"
        )
    return (
        f"the beginning of {incident.topic} was deleted before the first window: it reaches back to "
        f"{incident.detail['begins_at']}"
    )


def _stamps(incident: Incident) -> str:
    """Return the stamps of first records that cannot be, by partition."""
    listed = [f"{stamp} ms in partition {partition}" for partition, stamp in incident.detail["stamps"].items()]
    more = f" and {len(listed) - _LISTED_MOST} more" if len(listed) > _LISTED_MOST else ""
    return f"its first record has a timestamp that cannot be ({', '.join(listed[:_LISTED_MOST])}{more})"


def _older(incident: Incident) -> str:
    count = int(incident.detail["keys"])
    keys = "1 key is" if count == 1 else f"{count:,} keys are"
    if incident.detail.get("stamps"):
        return (
            f"on {incident.detail['hop']} {keys} older than the first window of {incident.topic}, and "
            f"{_stamps(incident)}: lost, or from before the topic?"
        )
    return (
        f"on {incident.detail['hop']} {keys} older "
        f"than the first record of {incident.topic} ({incident.detail['begins_at']}), whose log begins at offset 0: "
        "lost, or from before the topic?"
    )


def _transaction(incident: Incident) -> str:
    name = incident.detail.get("transactional_id")
    of = f"`{name}`" if name else f"producer {incident.detail.get('producer_id')}"
    return f"a transaction of {of} is open in {incident.place} since offset {incident.lo}, where the window has to end"


def _hanging(incident: Incident) -> str:
    return f"{_transaction(incident)}, and it hangs: no coordinator will ever end it"


def _group(incident: Incident) -> str:
    return f"group `{incident.detail.get('group')}`"


def _group_unknown(incident: Incident) -> str:
    if is_sink_unknown(incident):
        return unknown_sink(incident)
    return (
        f"{_group(incident)} has committed no offset in {incident.place}, where records wait from offset "
        f"{incident.lo} on: it never consumed them, its offsets expired, or there is no such group"
    )


def _out_of_range(incident: Incident) -> str:
    committed = int(incident.detail["committed"])
    start, end = incident.detail["log"]
    where = f"behind the end of its log ({end})" if committed > end else f"before the beginning of its log ({start})"
    if (cut_off := incident.detail.get("cut_off")) is not None:
        at = "where is not known" if cut_off["agreed"] is None else cut_off["agreed"]
        where = f"behind where a change of leader cut off its log ({at})"
    return (
        f"{_group(incident)} has committed offset {committed} of {incident.place}, which is {where}, and records "
        f"wait from offset {incident.lo} on: how far it has read is not known"
    )


def _stalled(incident: Incident) -> str:
    if "progress" in incident.detail:
        return stalled_progress(incident)
    if "sink" in incident.detail:
        return stalled_sink(incident)
    return (
        f"{_group(incident)} has stood at offset {incident.detail.get('committed')} of {incident.place} since the "
        f"last window, and records wait from offset {incident.lo} on"
    )


def _rows(incident: Incident) -> str:
    count = int(incident.detail["rows"])
    return f"{count:,} row{'' if count == 1 else 's'}"


def _of_windows(incident: Incident) -> str:
    """Return the windows whose slices changed, each with its rows before and now."""
    listed = [f"window {part['window']} ({part['counted']:,} → {part['rows']:,})" for part in incident.detail["slices"]]
    more = int(incident.detail["windows"]) - len(listed)
    return ", ".join([*listed, *([f"{more} more"] if more else [])])


def _grown(incident: Incident) -> str:
    return (
        f"{_rows(incident)} came to {incident.point} ({incident.topic}) later than `late` reaches, with the times of "
        f"{_of_windows(incident)}"
    )


def _shrunk(incident: Incident) -> str:
    return (
        f"{_rows(incident)} of {incident.point} ({incident.topic}) that earlier windows had counted are gone, with the "
        f"times of {_of_windows(incident)}"
    )


def _first_counted(incident: Incident) -> str:
    windows = int(incident.detail["windows"])
    return (
        f"the rows of {incident.point} ({incident.topic}) with the times of {windows:,} earlier "
        f"window{'' if windows == 1 else 's'} were counted for the first time"
    )


def _ahead(incident: Incident) -> str:
    infinite, parts = int(incident.detail["infinite"]), []
    if incident.detail["rows"]:
        parts.append(
            f"{_rows(incident)} of {incident.point} ({incident.topic}) with times that no window reaches, from "
            f"{incident.detail['oldest']} to {incident.detail['newest']} in {incident.detail['column']}, in no count "
            "of any window"
        )
    if infinite:
        parts.append(
            f"{counted(infinite, 'row')} of {incident.point} ({incident.topic}) with the time infinity in "
            f"{incident.detail['column']}, judged like rows without a time"
        )
    return f"there {'is' if parts[0].startswith('1 ') else 'are'} {', and '.join(parts)}"


def prepared_transaction_text(transaction: Mapping[str, Any]) -> str:
    """Return a transaction in doubt by its fields: its gid as a statement has it, its owner, and since when. Of a file
    that no marker commits, or that cannot be read, its path and when it was written. Of one of the primary of a
    standby, its number."""
    if transaction.get("file"):
        unread = ", which cannot be read" if transaction.get("unreadable") else ""
        return f"file {transaction['gid']}, written {str(transaction['prepared'])[:16].replace('T', ' ')} UTC{unread}"
    if transaction["prepared"] is None:
        return f"transaction {transaction['gid']}, in progress at the primary of the standby"
    gid = str(transaction["gid"]).replace("'", "''")
    return f"'{gid}' of {transaction['owner']}, prepared {str(transaction['prepared'])[:16].replace('T', ' ')} UTC"


def _prepared(incident: Incident) -> str:
    transactions, number = incident.detail["transactions"], int(incident.detail["number"])
    listed = [prepared_transaction_text(transaction) for transaction in transactions[:_LISTED_MOST]]
    more = [f"{number - len(listed)} more"] if number > len(listed) else []
    held = f"{counted(int(incident.detail['keys']), 'key')} of {incident.point} ({incident.topic}) may be held by "
    if incident.is_of_files:
        why = "that cannot be read" if incident.is_of_unreadable_files else "that no marker commits"
        return f"{held}{counted(number, 'file')} {why}: {'; '.join([*listed, *more])}"
    if incident.is_of_standby:
        return (
            f"{held}{counted(number, 'transaction')} that may be prepared, which a standby does not show: "
            f"{'; '.join([*listed, *more])}"
        )
    return (
        f"{held}"
        f"{counted(number, 'prepared transaction')} that {'is' if number == 1 else 'are'} neither committed nor rolled "
        f"back: {'; '.join([*listed, *more])}"
    )


def _unreadable(incident: Incident) -> str:
    number = int(incident.detail["number"])
    listed = [_unreadable_file(file) for file in incident.detail["files"][:_LISTED_MOST]]
    more = [f"{number - len(listed)} more"] if number > len(listed) else []
    is_one = number == 1
    is_any_spoilt = any(file.get("spoilt") or file.get("gone") for file in incident.detail["files"])
    cut_off = "is no whole Parquet file" if is_one else "are no whole Parquet files"
    return (
        f"{counted(number, 'file')} of {incident.point} ({incident.topic}) "
        f"{'cannot be read' if is_any_spoilt else cut_off}: {'; '.join([*listed, *more])}. "
        f"What {'it holds' if is_one else 'they hold'} is not known"
    )


def _unreadable_file(file: Mapping[str, Any]) -> str:
    written = f"written {file['written'][:16].replace('T', ' ')} UTC"
    if file.get("gone"):
        return f"{file['path']} (listed {written.removeprefix('written ')}{_by_snapshot(file)}; it is gone)"
    why = "; it does not decode" if file.get("spoilt") else ""
    return f"{file['path']} ({file['size_bytes']} bytes, {written}{_by_snapshot(file)}{why})"


def _by_snapshot(file: Mapping[str, Any]) -> str:
    return f" by snapshot {file['snapshot']}" if "snapshot" in file else ""


def _left_over(incident: Incident) -> str:
    number = int(incident.detail["number"])
    listed = [
        f"{file['path']} ({file['size_bytes']} bytes, written {file['written'][:16].replace('T', ' ')} UTC)"
        for file in incident.detail["files"][:_LISTED_MOST]
    ]
    more = [f"{number - len(listed)} more"] if number > len(listed) else []
    return (
        f"{counted(number, 'file')} beside those of {incident.point} ({incident.topic}) "
        f"{'is' if number == 1 else 'are'} under a temporary name, or not committed, for longer than pending.max_age "
        f"({incident.detail['size_bytes']} bytes): {'; '.join([*listed, *more])}. No reader takes them"
    )


def _filter_changed(incident: Incident) -> str:
    before, now = (incident.detail[name] or "no filter" for name in ("before", "now"))
    return f"`where` of {incident.detail['hop']} is {now} now, and was {before} in the windows before"


_SENTENCES: Mapping[IncidentKind, Callable[[Incident], str]] = {
    IncidentKind.TRUNCATED: _truncated,
    IncidentKind.TOPIC_RECREATED: _made_again,
    IncidentKind.EXPIRED: lambda incident: f"{_offsets(incident)} were deleted before they could be read",
    IncidentKind.LEADER_CHANGED: _leaders,
    IncidentKind.BEGINNING_GONE: _beginning,
    IncidentKind.BASELINE_UNKNOWN: _older,
    IncidentKind.PARTITIONS_ADDED: lambda incident: f"partition {incident.partition} of {incident.topic} is new",
    IncidentKind.OPEN_TRANSACTION: _transaction,
    IncidentKind.HANGING_TRANSACTION: _hanging,
    IncidentKind.GROUP_UNKNOWN: _group_unknown,
    IncidentKind.GROUP_OUT_OF_RANGE: _out_of_range,
    IncidentKind.PROGRESS_UNKNOWN: unknown_progress,
    IncidentKind.PROGRESS_OUT_OF_RANGE: progress_out_of_range,
    IncidentKind.CONSUMER_STALLED: _stalled,
    IncidentKind.SLICE_GROWN: _grown,
    IncidentKind.SLICE_SHRUNK: _shrunk,
    IncidentKind.SLICE_FIRST_COUNTED: _first_counted,
    IncidentKind.TIMES_AHEAD: _ahead,
    IncidentKind.FILTER_CHANGED: _filter_changed,
    IncidentKind.NEVER_COMPARED: lambda incident: (
        f"neither end of {incident.detail['hop']} has ever had a value of "
        f"{', '.join(f'`{name}`' for name in incident.detail['columns'])}, so that nothing of it was compared"
    ),
    IncidentKind.PREPARED_TRANSACTION: _prepared,
    IncidentKind.UNREADABLE_FILES: _unreadable,
    IncidentKind.LEFT_OVER_FILES: _left_over,
    IncidentKind.VALUES_NOT_LOOKED_AT: lambda incident: (
        f"the rows of {incident.point} ({incident.topic}) that earlier windows judged are not looked at again: "
        + ("it is a view" if incident.detail.get("reason") == "view" else "no index finds the rows of a key")
        + ". What is changed there with its time left as it was is not seen"
    ),
    IncidentKind.REPEATED_KEYS: lambda incident: repeated_keys_text(incident.topic, incident.detail),
    IncidentKind.NO_TIME_INDEX: lambda incident: (
        f"no index of {incident.point} ({incident.topic}) begins with {incident.detail.get('column')}: every window "
        "reads the whole table"
    ),
}
