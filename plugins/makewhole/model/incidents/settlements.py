"""Describe what settles an incident, or what to look at."""

from collections.abc import Callable, Mapping

from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.incidents.progress import (
    is_sink_unknown,
    settled_progress_out_of_range,
    settled_unknown_progress,
    settled_unknown_sink,
)


def abort_text(topic: str | None, partition: int | None, offset: int | None) -> str:
    """Return what ends a hanging transaction."""
    return f"end it with `kafka-transactions.sh abort --topic {topic} --partition {partition} --start-offset {offset}`"


def settled_by(incident: Incident) -> str:
    """Return what would settle a window that cannot be certified because of it, or what to look at otherwise."""
    if is_sink_unknown(incident):
        return settled_unknown_sink(incident)
    if incident.kind in _SETTLED:
        return _SETTLED[incident.kind](incident)
    if incident.is_partial:
        return (
            "what they held is not known: a mirror or a backup of the topic can show it, and the keys in doubt that "
            f"another place names are in `makewhole findings`. {_PREVENTED.get(incident.kind, _SAFER)}"
        )
    if incident.kind in _LOOKED_AT:
        return _LOOKED_AT[incident.kind](incident)
    return _SENTENCES.get(incident.kind, "nothing has to be done")


def _settled_hanging(incident: Incident) -> str:
    return f"{abort_text(incident.topic, incident.partition, incident.lo)}, then run this window again"


def _settled_baseline(incident: Incident) -> str:
    if incident.detail.get("stamps"):
        return (
            "write `start:` into the pipeline's file, with the time from which on the topic has its records (ask its "
            "owner, or look when its first records that are left were written); then run this window again. Producers "
            "that stamp records in milliseconds, or `message.timestamp.type=LogAppendTime`, prevent it"
        )
    return (
        f"write `start: {incident.detail['begins_at']}` into the pipeline's file when they are from before the "
        "topic, or `start: earliest` when they belong into it and were lost; then run this window again"
    )


def _settled_group(incident: Incident) -> str:
    return (
        f"look with `kafka-consumer-groups.sh --describe --group {incident.detail.get('group')}`: correct "
        "consumer_group in the pipeline file if it is another one, name the table with `progress` if the loader "
        "keeps its offsets there, take the line out if it keeps them elsewhere, or start the consumer; then run "
        "this window again"
    )


def _settled_beginning(incident: Incident) -> str:
    if incident.detail.get("begins_at"):
        return "what is older is counted as `before_baseline`, not as missing or unexpected"
    return "what one end alone has from before the first window is undecidable, until `start:` says a time"


def _settled_stalled(incident: Incident) -> str:
    return (
        f"look at the consumer: the record at {incident.place} offset {incident.detail.get('committed')} may be "
        "what it cannot get past. What waits longer than pending.max_age is missing"
    )


def _settled_filter(incident: Incident) -> str:
    return (
        f"what the windows before found stands by the former filter: rows of {incident.point} that only that one "
        "lets pass may be there still, and what only the new one lets pass was not looked for. Run those windows "
        "again to have them judged by the new one"
    )


def _settled_times(incident: Incident) -> str:
    return (
        f"look at the rows of {incident.topic} where {incident.detail.get('column')} > now() + interval '1 day', "
        "and correct the times that are wrong: a row is judged by the window that sees it come into its slice"
    )


def _settled_index(incident: Incident) -> str:
    return f"make one: `create index concurrently on {incident.topic} ({incident.detail.get('column')})`"


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


def _settled_out_of_range(incident: Incident) -> str:
    checks = "checks leader epochs and " if "cut_off" in incident.detail else ""
    without = "; one that does not goes on there, and never reads what waits before it" if checks else ""
    return (
        f"a consumer that {checks}asks for such an offset goes by its auto.offset.reset: with `latest` it begins "
        "at the end and never reads what waits, with `earliest` it reads the log from its beginning, again what it had "
        f"loaded, with `none` it stops{without}. Find out how far its loader is, set the offset with "
        "`kafka-consumer-groups.sh "
        f"--reset-offsets --to-offset OFFSET --topic {incident.topic}:{incident.partition} --group "
        f"{incident.detail.get('group')} --execute`, then run this window again"
    )


SETTLES_PREPARED = (
    "stop the sink, and settle each by the range of offsets that it holds, as its gid or a table that it wrote to has "
    "it: COMMIT PREPARED where the range ends at or before the sink's committed offset, ROLLBACK PREPARED where it "
    "begins at or after it. Any other, and one whose range nothing shows, a person decides; its age decides nothing. "
    "What waits longer than pending.max_age is missing"
)
"""Commands that settle prepared transactions of a store."""


def _settled_unreadable(incident: Incident) -> str:
    if any(file.get("gone") for file in incident.detail.get("files", ())):
        return (
            "restore what is gone. Where it is lost for good, take it out of the table, or out of the manifest that "
            "lists it, or roll back to a snapshot that does not list it: what it held is missing then, and is "
            "repaired. Then run this window again, and look at what removed the files"
        )
    return (
        "have their writer write them again, or move them out of the dataset once it is known what they held; then "
        "run this window again. A writer has to write under a name that begins with a dot, and rename"
    )


def _settled_prepared(incident: Incident) -> str:
    if incident.is_of_unreadable_files:
        return "restore the files, or move them out of the dataset; what they may hold waits until then"
    if incident.is_of_files:
        return (
            "have the job that wrote them end, which sets the marker; or remove them where it died. What waits longer "
            "than pending.max_age is missing"
        )
    if incident.is_of_standby:
        return (
            "look for it at the primary, in pg_prepared_xacts and pg_stat_activity, and let it end; what is prepared "
            f"there is settled so: {SETTLES_PREPARED}"
        )
    return SETTLES_PREPARED


_UPSTREAM = (
    "no point of this pipeline feeds the topic, so nothing says what must be in it: add the producer's ledger as a "
    "point, or compare the archives of the windows before with the stores by hand"
)


_SAFER = "unclean.leader.election.enable=false, acks=all and min.insync.replicas of 2 or more prevent it"


_PREVENTED = {
    IncidentKind.EXPIRED: "A longer retention, or windows that run sooner after their end, prevent it",
    IncidentKind.TOPIC_RECREATED: "Windows that have run before a topic is deleted prevent it",
}


_SETTLED: Mapping[IncidentKind, Callable[[Incident], str]] = {
    IncidentKind.HANGING_TRANSACTION: _settled_hanging,
    IncidentKind.BASELINE_UNKNOWN: _settled_baseline,
    IncidentKind.GROUP_UNKNOWN: _settled_group,
    IncidentKind.GROUP_OUT_OF_RANGE: _settled_out_of_range,
    IncidentKind.PROGRESS_UNKNOWN: settled_unknown_progress,
    IncidentKind.PROGRESS_OUT_OF_RANGE: settled_progress_out_of_range,
    IncidentKind.UNREADABLE_FILES: _settled_unreadable,
}
"""How kinds are settled whether or not the incident is partial."""


_LOOKED_AT: Mapping[IncidentKind, Callable[[Incident], str]] = {
    IncidentKind.BEGINNING_GONE: _settled_beginning,
    IncidentKind.CONSUMER_STALLED: _settled_stalled,
    IncidentKind.FILTER_CHANGED: _settled_filter,
    IncidentKind.TIMES_AHEAD: _settled_times,
    IncidentKind.NO_TIME_INDEX: _settled_index,
    IncidentKind.VALUES_NOT_LOOKED_AT: _settled_values,
    IncidentKind.LEADER_CHANGED: _settled_leader_change,
    IncidentKind.PREPARED_TRANSACTION: _settled_prepared,
}
"""How kinds are settled whose sentence depends on the incident."""


_SENTENCES: Mapping[IncidentKind, str] = {
    IncidentKind.TRUNCATED: f"{_UPSTREAM}; {_SAFER}",
    IncidentKind.TOPIC_RECREATED: _UPSTREAM,
    IncidentKind.OPEN_TRANSACTION: "its records are judged in a later window, when it has ended",
    IncidentKind.NEVER_COMPARED: (
        "look whether `compare` has the name, or the place, as the records and rows have it, and run this window again "
        "once it does; a field that nothing has filled yet is compared from its first value on"
    ),
    IncidentKind.SLICE_GROWN: (
        "they are judged in this window. If rows come so late as a rule, write a longer `late` into the pipeline's file"
    ),
    IncidentKind.SLICE_SHRUNK: (
        "a purge is ordinary, and nothing has to be done then; they are not brought back unasked. If they were not "
        "purged, restore them from a backup"
    ),
    IncidentKind.SLICE_FIRST_COUNTED: (
        "rows that are new or changed since, by their transaction ids, are judged in this window; what was deleted "
        "before is not known"
    ),
    IncidentKind.LEFT_OVER_FILES: (
        "what is missing is found without them, and written from the records. Remove them once their writer is "
        "known to be dead; whoever gives them their names then brings their rows a second time"
    ),
    IncidentKind.REPEATED_KEYS: (
        "nothing is done about them: what reads the topic has to pass over a second record. Look at its producers: "
        "without enable.idempotence a retry is a second record, and an application may send again what it had sent"
    ),
}
"""The kinds that are always settled in the same way."""
