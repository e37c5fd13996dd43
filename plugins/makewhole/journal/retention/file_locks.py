"""Keep an erasure and whatever else reads and writes files of past windows apart, by locks of the journal's session.

They end with the session, however that ends.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from makewhole.journal.database import JournalSession
from makewhole.model.errors import TransientError
from makewhole.sql import PgConnection, single_value, statements_of

_run = statements_of("erasure")


@contextmanager
def files_kept(journal: PgConnection, pipeline: str) -> Iterator[None]:
    """Hold back erasures while files are made of others that are there. It commits.

    Raises:
        TransientError: one is being erased.
    """
    _share(journal, pipeline)
    journal.commit()
    try:
        yield
    finally:
        _run(journal, "unshare_files", pipeline=pipeline)
        journal.commit()


@contextmanager
def files_kept_by(session: JournalSession, pipeline: str) -> Iterator[None]:
    """Do as `files_kept`, in a session of short transactions, which ends where its connection breaks. Raises as it
    does."""
    with session.transaction() as journal:
        _share(journal, pipeline)
    with session.kept():
        try:
            yield
        finally:
            with session.transaction() as journal:
                _run(journal, "unshare_files", pipeline=pipeline)


def hold_files(journal: PgConnection, pipeline: str) -> None:
    """Hold back erasures until the transaction ends.

    Raises:
        TransientError: a key is being erased.
    """
    if not single_value(_run(journal, "hold_files", pipeline=pipeline)):
        raise _being_erased(pipeline)


def _share(journal: PgConnection, pipeline: str) -> None:
    if not single_value(_run(journal, "share_files", pipeline=pipeline)):
        journal.rollback()
        raise _being_erased(pipeline)


def _being_erased(pipeline: str) -> TransientError:
    return TransientError(f"a key of {pipeline} is being erased: its files are written again; try again after that")


def require_files(journal: PgConnection, pipeline: str) -> None:
    """Take the files of a pipeline for the rest of the session, or see that it has them still.

    Raises:
        TransientError: they are being merged, removed, or written again by another erasure.
    """
    if not single_value(_run(journal, "take_files", pipeline=pipeline)):
        raise TransientError(
            f"files of {pipeline} are being merged, removed, or written again by another erasure; try again after that"
        )


def leave_files(session: JournalSession) -> None:
    """Give back what `require_files` took."""
    with session.transaction() as journal:
        _run(journal, "leave_files")
