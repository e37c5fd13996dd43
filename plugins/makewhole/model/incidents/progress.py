"""Describe in words what is wrong with a sink's own progress, and what to do."""

from collections.abc import Callable, Mapping
from typing import Any

from makewhole.model.incident import Incident
from makewhole.model.text import counted

_AGAIN = "then run this window again"
_LAST = "last"
_NONE_NAMED = "-1"


def unknown_progress(incident: Incident) -> str:
    """Return why a sink's own progress says nothing of a partition in which records wait."""
    return (
        f"{progress_fault(incident.detail['progress'], incident.detail['unknown'])}, and records of {incident.place} "
        f"wait from offset {incident.lo} on: how far its sink has loaded them is not known"
    )


def progress_fault(progress: Mapping[str, Any], unknown: Mapping[str, Any]) -> str:
    """Return what is wrong with the rows of a partition in a sink's own progress."""
    table, rows, offset = progress["table"], progress["rows"], progress["offset"]
    least, greatest = unknown["least"], unknown["greatest"]
    if progress.get("is_of_files"):
        return f"{_named_up_to(rows, least)}, {_rows_up_to(progress, greatest)}"
    offsets = "" if least is None else f", with {offset} from {least} to {greatest}"
    return {
        "no_row": f"{table} has no row where {rows}",
        "several_rows": f"{table} has {counted(int(unknown['rows']), 'row')} where {rows}{offsets}",
        "no_value": f"{offset} of {table} has no value where {rows}",
        "no_offset": f"{offset} of {table} is {least} where {rows}, which is no offset",
    }[unknown["fault"]]


def _named_up_to(rows: str, offset: str) -> str:
    if offset == _NONE_NAMED:
        return f"no name of a file says up to which offset {rows} is written"
    return f"the names of files say that {rows} is written up to offset {offset}"


def _rows_up_to(progress: Mapping[str, Any], offset: str) -> str:
    if progress.get("is_shared"):
        return f"and rows, which may be of other topics, go up to {offset}"
    return f"and rows go up to {offset}"


def settled_unknown_progress(incident: Incident) -> str:
    """Return what to do about a progress that says nothing."""
    progress = incident.detail["progress"]
    if progress.get("is_shared"):
        return (
            "records of several topics come into the dataset, and its rows do not say of which topic they are: name "
            "the column that says it as `topic` under `position`, or have files named by their offsets, or name the "
            f"writer's `consumer_group` in place of `progress`; {_AGAIN}"
        )
    if progress.get("is_of_files"):
        return (
            "a compaction may have taken the names with the last offsets away, or another writer has been there: look "
            "at what the writer goes by when it starts, and name its `consumer_group` in place of `progress` if it is "
            f"that; {_AGAIN}"
        )
    return _REMEDIES[incident.detail["unknown"]["fault"]](incident, progress)


def _no_row(incident: Incident, progress: Mapping[str, Any]) -> str:
    return (
        f"look at what {progress['table']} has: if its sink writes other values there, correct `progress` of hop "
        f"{incident.detail['hop']} in the pipeline file; if it has not read the partition yet, start it; {_AGAIN}"
    )


def _several_rows(incident: Incident, progress: Mapping[str, Any]) -> str:
    columns = ["`where: \"COLUMN = 'VALUE'\"` with the column that distinguishes sinks"]
    if not progress["has_topic"]:
        columns.insert(0, "`topic: COLUMN` with the column of the topic's name")
    return (
        f"write {' or '.join(columns)} under `progress` of hop {incident.detail['hop']}; of a table that keeps former "
        f"offsets, name a view with the newest row of each partition; {_AGAIN}"
    )


def _no_value(_: Incident, progress: Mapping[str, Any]) -> str:
    return f"stop the sink, find out how far the store is, {_statement(progress)}, {_AGAIN}"


_REMEDIES: Mapping[str, Callable[[Incident, Mapping[str, Any]], str]] = {
    "no_row": _no_row,
    "several_rows": _several_rows,
    "no_value": _no_value,
    "no_offset": _no_value,
}


def progress_out_of_range(incident: Incident) -> str:
    """Return which offset a sink's own progress has that the log does not have."""
    progress, committed = incident.detail["progress"], int(incident.detail["committed"])
    start, end = incident.detail["log"]
    held = committed - 1 if progress["means"] == _LAST else committed
    where = f"behind the end of its log ({end})" if committed > end else f"before the beginning of its log ({start})"
    meaning = f", the last one done, so that {committed} is next" if progress["means"] == _LAST else ""
    return (
        f"{progress['offset']} of {progress['table']} is {held} for {incident.place}{meaning}, which is {where}, and "
        f"records wait from offset {incident.lo} on: how far its sink has loaded them is not known"
    )


def settled_progress_out_of_range(incident: Incident) -> str:
    """Return what to do about a progress that the log does not have."""
    progress, committed = incident.detail["progress"], int(incident.detail["committed"])
    if progress.get("is_of_files"):
        return (
            "the files are of another log, or this one has lost what comes behind them: where its writer goes by its "
            f"files, it reads again from the beginning or the end of the log; {_AGAIN}"
        )
    is_one_too_far = progress["means"] == _LAST and committed == incident.detail["log"][1] + 1
    hint = (
        f"if {progress['offset']} is the offset that is read next, write `means: next` under `progress` of hop "
        f"{incident.detail['hop']}. Otherwise: "
        if is_one_too_far
        else ""
    )
    return (
        f"{hint}a sink that asks for such an offset goes by its auto.offset.reset: with `latest` it begins at the end "
        "and never reads what waits, with `earliest` it reads the log from its beginning, again what it had loaded, "
        f"with `none` it stops. Stop it, find out how far the store is, {_statement(progress)}, {_AGAIN}"
    )


def stalled_progress(incident: Incident) -> str:
    """Return where a sink has stood since the window before."""
    progress = incident.detail["progress"]
    return (
        f"by {progress['offset']} of {progress['table']} the sink has stood at offset "
        f"{incident.detail.get('committed')} of {incident.place} since the last window, and records wait from offset "
        f"{incident.lo} on"
    )


def is_sink_unknown(incident: Incident) -> bool:
    """Return whether it is of a sink of which its control topic does not say how far it is."""
    return bool(incident.detail.get("sink", {}).get("why"))


def unknown_sink(incident: Incident) -> str:
    """Return why it is not known how far a sink has brought a partition into its table."""
    return (
        f"how far the sink of group `{incident.detail['group']}` has brought {incident.place} into its table is not "
        f"known, and records wait from offset {incident.lo} on: {incident.detail['sink']['why']}"
    )


def settled_unknown_sink(incident: Incident) -> str:
    """Return what to do about a sink of which that is not known."""
    control = incident.detail["sink"]["control_topic"]
    return (
        "start the sink, so that it commits what is to come, and run this window again; set retention.ms of "
        f"{control} to longer than the sink is ever away"
    )


def stalled_sink(incident: Incident) -> str:
    """Return where the table of a sink has stood since the window before."""
    return (
        f"the table of the sink of group `{incident.detail['group']}` has stood at offset "
        f"{incident.detail.get('committed')} of {incident.place} since the last window (the group: "
        f"{incident.detail['sink']['group_committed']}), and records wait from offset {incident.lo} on"
    )


def _statement(progress: Mapping[str, Any]) -> str:
    """Return the statement that sets the progress of a partition."""
    table, offset, rows = progress["table"], progress["offset"], progress["rows"]
    return " ".join(["run `update", table, "set", offset, "= OFFSET where", f"{rows}` with", _meaning(progress)])


def _meaning(progress: Mapping[str, Any]) -> str:
    return "that of the last record it has" if progress["means"] == _LAST else "that of the first record it lacks"
