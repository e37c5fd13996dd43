"""Report for how long other writers of a table wait, where only a lock of the table keeps a key free."""

from makewhole.model.text import counted

CHUNK_TIME = "about 1 s for 10,000 actions"
"""The order of magnitude of a transaction that inserts the rows of a chunk; 10,000 are the most that a chunk has."""


def table_lock_sentence(table: str, chunks: int, chunk_actions: int | None = None) -> str:
    """Return the sentence on a table that so many chunks lock, each of at most `chunk_actions` where that is known."""
    of = "" if chunk_actions is None else f" of up to {counted(chunk_actions, 'action')}"
    return (
        f"{table} has no unique index on its key: other writers of the table wait during {counted(chunks, 'chunk')}"
        f"{of}, each for as long as its transaction takes ({CHUNK_TIME}); readers do not. A unique index on exactly "
        "the key makes this needless"
    )
