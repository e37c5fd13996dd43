"""Describe an incident in words: what happened to which log or table, and what to do."""

from collections.abc import Callable, Mapping
from typing import Any

from makewhole.model.incident import Doubt, Incident, IncidentKind
from makewhole.model.progress_text import (
    progress_out_of_range,
    settled_progress_out_of_range,
    settled_unknown_progress,
    stalled_progress,
    unknown_progress,
)
from makewhole.model.text import counted

_UPSTREAM = (
    "no point of this pipeline feeds the topic, so nothing says what must be in it: add the producer's ledger as a "
    "point, or compare the archives of the windows before with the stores by hand"
)
_LISTED_MOST = 3
_SAFER = "unclean.leader.election.enable=false, acks=all and min.insync.replicas of 2 or more prevent it"


def incident_sentence(incident: Incident) -> str:
    """Return what happened as one sentence without its full stop."""
    return _SENTENCES[incident.kind](incident)


def settled_by(incident: Incident) -> str:
    """Return what would settle a window that cannot be certified because of it, or what to look at otherwise."""
    if incident.kind is IncidentKind.HANGING_TRANSACTION:
        return (
            f"end it with `kafka-transactions.sh abort --topic {incident.topic} --partition {incident.partition} "
            f"--start-offset {incident.lo}`, then run this window again"
        )
    if incident.kind is IncidentKind.BASELINE_UNKNOWN and incident.detail.get("stamps"):
        return (
            "write `start:` into the pipeline's file, with the time from which on the topic has its records (ask its "
            "owner, or look when its first records that are left were written); then run this window again. Producers "
            "that stamp records in milliseconds, or `message.timestamp.type=LogAppendTime`, prevent it"
        )
    if incident.kind is IncidentKind.BASELINE_UNKNOWN:
        return (
            f"write `start: {incident.detail['begins_at']}` into the pipeline's file when they are from before the "
            "topic, or `start: earliest` when they belong into it and were lost; then run this window again"
        )
    if incident.kind is IncidentKind.GROUP_UNKNOWN:
        return (
            f"look with `kafka-consumer-groups.sh --describe --group {incident.detail.get('group')}`: correct "
            "consumer_group in the pipeline file if it is another one, name the table with `progress` if the loader "
            "keeps its offsets there, take the line out if it keeps them elsewhere, or start the consumer; then run "
            "this window again"
        )
    if incident.kind is IncidentKind.GROUP_OUT_OF_RANGE:
        return _settled_out_of_range(incident)
    if incident.kind is IncidentKind.PROGRESS_UNKNOWN:
        return settled_unknown_progress(incident)
    if incident.kind is IncidentKind.PROGRESS_OUT_OF_RANGE:
        return settled_progress_out_of_range(incident)
    if incident.is_partial:
        return (
            "what they held is not known: a mirror or a backup of the topic can show it, and the keys in doubt that "
            f"another place names are in `makewhole findings`. {_PREVENTED.get(incident.kind, _SAFER)}"
        )
    return {
        IncidentKind.TRUNCATED: f"{_UPSTREAM}; {_SAFER}",
        IncidentKind.TOPIC_RECREATED: _UPSTREAM,
        IncidentKind.BEGINNING_GONE: (
            "what is older is counted as `before_baseline`, not as missing or unexpected"
            if incident.detail.get("begins_at")
            else "what one end alone has from before the first window is undecidable, until `start:` says a time"
        ),
        IncidentKind.OPEN_TRANSACTION: "its records are judged in a later window, when it has ended",
        IncidentKind.CONSUMER_STALLED: (
            f"look at the consumer: the record at {_place(incident)} offset {incident.detail.get('committed')} may be "
            "what it cannot get past. What waits longer than pending.max_age is missing"
        ),
        IncidentKind.SLICE_GROWN: (
            "they are judged in this window. If rows come so late as a rule, write a longer `late` into the pipeline's "
            "file"
        ),
        IncidentKind.FILTER_CHANGED: (
            f"what the windows before found stands by the former filter: rows of {incident.point} that only that one "
            "lets pass may be there still, and what only the new one lets pass was not looked for. Run those windows "
            "again to have them judged by the new one"
        ),
        IncidentKind.SLICE_SHRUNK: (
            "a purge is ordinary, and nothing has to be done then; they are not brought back unasked. If they were not "
            "purged, restore them from a backup"
        ),
        IncidentKind.SLICE_FIRST_COUNTED: (
            "rows that are new or changed since, by their transaction ids, are judged in this window; what was deleted "
            "before is not known"
        ),
        IncidentKind.TIMES_AHEAD: (
            f"look at the rows of {incident.topic} where {incident.detail.get('column')} > now() + interval '1 day', "
            "and correct the times that are wrong: a row is judged by the window that sees it come into its slice"
        ),
        IncidentKind.NO_TIME_INDEX: (
            f"make one: `create index concurrently on {incident.topic} ({incident.detail.get('column')})`"
        ),
        IncidentKind.VALUES_NOT_LOOKED_AT: _settled_values(incident),
        IncidentKind.LEADER_CHANGED: _settled_leader_change(incident),
        IncidentKind.PREPARED_TRANSACTION: _settled_prepared(incident),
    }.get(incident.kind, "nothing has to be done")


def _settled_values(incident: Incident) -> str:
    key = incident.detail.get("key", [])
    if incident.detail.get("reason") == "view":
        return "name the table that the view reads as the store, where there is one"
    if len(key) > 1:
        return "nothing has to be done: rows of a key of several columns are found by no index"
    return f"make one: `create index concurrently on {incident.topic} ({', '.join(key)})`"


def _settled_leader_change(incident: Incident) -> str:
    if "doubts" not in incident.detail:
        return f"what only the old leader had acknowledged may be gone; {_SAFER}"
    if not incident.may_have_lost:
        return "nothing has to be done"
    return (
        "no point of this pipeline feeds the topic, so nothing says what must be in it: add the producer's ledger as a "
        "point, or write `reach: log` into the pipeline's file to accept that windows are proven from the log on; then "
        f"run this window again. Producers with enable.idempotence=true, {_SAFER}"
    )


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

_PREVENTED = {
    IncidentKind.EXPIRED: "A longer retention, or windows that run sooner after their end, prevent it",
    IncidentKind.TOPIC_RECREATED: "Windows that have run before a topic is deleted prevent it",
}


def _place(incident: Incident) -> str:
    return f"{incident.topic}/{incident.partition}"


def _offsets(incident: Incident) -> str:
    count = f"{incident.span:,} offset{'' if incident.span == 1 else 's'}"
    return f"{count} of {_place(incident)} ([{incident.lo}, {incident.hi}))"


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
    changed = f"the leader of {_place(incident)} changed: leader epochs {', '.join(epochs)}"
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
    return (
        f"a transaction of {of} is open in {_place(incident)} since offset {incident.lo}, where the window has to end"
    )


def _hanging(incident: Incident) -> str:
    return f"{_transaction(incident)}, and it hangs: no coordinator will ever end it"


def _group(incident: Incident) -> str:
    return f"group `{incident.detail.get('group')}`"


def _group_unknown(incident: Incident) -> str:
    return (
        f"{_group(incident)} has committed no offset in {_place(incident)}, where records wait from offset "
        f"{incident.lo} on: it never consumed them, its offsets expired, or there is no such group"
    )


def _out_of_range(incident: Incident) -> str:
    committed = int(incident.detail["committed"])
    start, end = incident.detail["log"]
    where = f"behind the end of its log ({end})" if committed > end else f"before the beginning of its log ({start})"
    return (
        f"{_group(incident)} has committed offset {committed} of {_place(incident)}, which is {where}, and records "
        f"wait from offset {incident.lo} on: how far it has read is not known"
    )


def _settled_out_of_range(incident: Incident) -> str:
    return (
        "a consumer that asks for such an offset goes by its auto.offset.reset: with `latest` it begins at the end and "
        "never reads what waits, with `earliest` it reads the log from its beginning, again what it had loaded, with "
        "`none` it stops. Find out how far its loader is, set the offset with `kafka-consumer-groups.sh "
        f"--reset-offsets --to-offset OFFSET --topic {incident.topic}:{incident.partition} --group "
        f"{incident.detail.get('group')} --execute`, then run this window again"
    )


def _stalled(incident: Incident) -> str:
    if "progress" in incident.detail:
        return stalled_progress(incident)
    return (
        f"{_group(incident)} has stood at offset {incident.detail.get('committed')} of {_place(incident)} since the "
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
    that no marker commits its path, and when it was written."""
    if transaction.get("file"):
        return f"file {transaction['gid']}, written {str(transaction['prepared'])[:16].replace('T', ' ')} UTC"
    gid = str(transaction["gid"]).replace("'", "''")
    return f"'{gid}' of {transaction['owner']}, prepared {str(transaction['prepared'])[:16].replace('T', ' ')} UTC"


def _prepared(incident: Incident) -> str:
    transactions, number = incident.detail["transactions"], int(incident.detail["number"])
    listed = [prepared_transaction_text(transaction) for transaction in transactions[:_LISTED_MOST]]
    more = [f"{number - len(listed)} more"] if number > len(listed) else []
    held = f"{counted(int(incident.detail['keys']), 'key')} of {incident.point} ({incident.topic}) may be held by "
    if _is_of_files(incident):
        return f"{held}{counted(number, 'file')} that no marker commits: {'; '.join([*listed, *more])}"
    return (
        f"{held}"
        f"{counted(number, 'prepared transaction')} that {'is' if number == 1 else 'are'} neither committed nor rolled "
        f"back: {'; '.join([*listed, *more])}"
    )


def _is_of_files(incident: Incident) -> bool:
    """Return whether files of a dataset are in doubt, and no transactions."""
    return any(transaction.get("file") for transaction in incident.detail.get("transactions", ()))


def _settled_prepared(incident: Incident) -> str:
    if _is_of_files(incident):
        return (
            "have the job that wrote them end, which sets the marker; or remove them where it died. What waits longer "
            "than pending.max_age is missing"
        )
    return (
        "stop the sink, and settle each by the range of offsets that it holds, as its gid or a table that it wrote to "
        "has it: COMMIT PREPARED where the range ends at or before the sink's committed offset, ROLLBACK PREPARED "
        "where it begins at or after it. Any other, and one whose range nothing shows, a person decides; its age "
        "decides nothing. What waits longer than pending.max_age is missing"
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
    IncidentKind.PREPARED_TRANSACTION: _prepared,
    IncidentKind.VALUES_NOT_LOOKED_AT: lambda incident: (
        f"the rows of {incident.point} ({incident.topic}) that earlier windows judged are not looked at again: "
        + ("it is a view" if incident.detail.get("reason") == "view" else "no index finds the rows of a key")
        + ". What is changed there with its time left as it was is not seen"
    ),
    IncidentKind.NO_TIME_INDEX: lambda incident: (
        f"no index of {incident.point} ({incident.topic}) begins with {incident.detail.get('column')}: every window "
        "reads the whole table"
    ),
}
