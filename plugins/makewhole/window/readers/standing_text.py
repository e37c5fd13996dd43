"""Describe in words why it is not known where what loads a hop's target stands."""

from dataclasses import asdict

from makewhole.model.hops import Hop
from makewhole.model.incidents.progress import progress_fault
from makewhole.window.readers.hop_offsets import ReaderOffsets
from makewhole.window.readers.sink_text import unknown_sink


def unknown_standing(hop: Hop, offsets: ReaderOffsets, topic: str, partition: int) -> str | None:
    """Return why it is not known how far the loader has come in a partition; None: it is known, or there is a group
    that has committed nothing there."""
    beyond = offsets.out_of_range.get(partition)
    if beyond is not None:
        return f"{hop.reader} stands at offset {beyond.committed} of {topic}/{partition}, whose log {beyond.log_text}"
    if offsets.sink is not None and (why := unknown_sink(offsets.sink, partition)) is not None:
        return f"how far {hop.reader} has brought {topic}/{partition} is not known: {why}"
    fault = offsets.unknown.get(partition)
    if hop.progress is None or fault is None:
        return None
    progress = hop.progress
    rows = progress.rows_of(topic, partition)
    of_files = {"is_of_files": progress.is_of_files, "is_shared": bool(progress.other_topics)}
    return progress_fault({"table": progress.table, "offset": progress.offset, "rows": rows, **of_files}, asdict(fault))
