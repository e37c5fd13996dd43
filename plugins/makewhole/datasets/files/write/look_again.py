"""Look at the rows of a chunk once more that a runner decided and did not carry out: they may be others by now."""

from collections.abc import Iterator, Mapping

from makewhole.datasets.files.file_source import FileSource
from makewhole.datasets.files.open_dataset import rows_of_keys
from makewhole.datasets.files.write.chunk_rows import digests_by_file, holdable
from makewhole.datasets.files.write.kept_beside import DecidedChunk, FileStep
from makewhole.model.points import TablePoint


def steps_in_vain(
    source: FileSource, point: TablePoint, decision: DecidedChunk, in_place: Mapping[str, bool]
) -> Iterator[FileStep]:
    """Yield the steps of a decision that must not be done any more: a key of their actions has other rows than when it
    was decided, outside of the files that the decision has put in place already (`in_place`, by path). A marker or a
    manifest goes with its file.

    Raises:
        TransientError: a file cannot be read.
    """
    changed = _changed_keys(source, point, decision, in_place)
    steps = decision.steps
    for at, step in enumerate(steps):
        beside = steps[at - 1 if step.staged is not None else at + 1] if not step.seqs else step
        if not in_place[beside.path] and changed.intersection(beside.seqs):
            yield step


def _changed_keys(
    source: FileSource, point: TablePoint, decision: DecidedChunk, in_place: Mapping[str, bool]
) -> frozenset[int]:
    """Return the actions whose key has other rows."""
    left = {seq for step in decision.steps if not in_place[step.path] for seq in step.seqs}
    seen = [key for key in decision.seen if key.seq in left]
    schema = source.schema()
    held = [] if schema is None else [key.key for key in seen if holdable(schema, point, [key.key])]
    by_key = rows_of_keys(source, point, held, is_exact=False)

    def elsewhere(rows: Mapping[str, str]) -> dict[str, str]:
        return {path: digest for path, digest in rows.items() if not in_place.get(path)}

    return frozenset(
        key.seq for key in seen if elsewhere(digests_by_file(by_key.get(key.key, ()))) != elsewhere(key.rows)
    )
