"""Ask for what every pipeline needs besides its points: the journal, the storage, and what certificates take."""

from collections.abc import Callable
from uuid import uuid4

from makewhole.journal import certificates
from makewhole.journal.database import connect
from makewhole.journal.deployment import schema_version
from makewhole.lake.storage import Storage
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.window.certifying.certificate_chain import require_none_ahead
from makewhole.window.readiness.mistakes import Readiness

_JOURNAL, _STORED = "journal", "storage"
_STORAGE = "MAKEWHOLE_STORAGE"
_PROBE = b"makewhole writes, reads and removes this file to see that it may"


def look_at_journal(readiness: Readiness) -> None:
    """Ask whether the journal answers, whether its schema is the one that is needed, and whether its user has the
    rights of the service."""
    with readiness.asking(_JOURNAL, "MAKEWHOLE_JOURNAL_DSN"):
        schema_version.require_current()
        missing = schema_version.missing_rights()
        if missing:
            raise ConfigurationError([missing])


def look_at_storage(readiness: Readiness) -> None:
    """Write a small file into the storage, read it, and remove it."""
    with readiness.asking(_STORED, _STORAGE):
        storage = Storage.from_environment()
        path = f"makewhole-probe-{uuid4().hex}"
        for act, done in (
            ("written", lambda: storage.write_bytes(path, _PROBE)),
            ("read", lambda: _require_same(storage.read_bytes(path))),
            ("removed", lambda: storage.remove(path)),
        ):
            _try(storage, act, done)


def _require_same(content: bytes) -> None:
    if content != _PROBE:
        raise OSError("another content was read than was written")


def _try(storage: Storage, act: str, done: Callable[[], object]) -> None:
    """Do one act at the storage. The libraries of file systems raise errors of any kind.

    Raises:
        ConfigurationError: it failed.
    """
    try:
        done()
    except ConfigurationError:
        raise
    except Exception as error:
        found = f"a file cannot be {act} in {storage.root} ({type(error).__name__}: {_first_line(error)})"
        remedy = (
            "Set it to a folder or a URI that exists and in which this user may write, read and remove files; an "
            "object store has its keys in the connection that the URI names"
        )
        raise ConfigurationError([Problem(file="environment", path=_STORAGE, found=found, remedy=remedy)]) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0][:200]


def look_at_signing_key(readiness: Readiness, read_key: Callable[[], object]) -> None:
    """Read the key that signs certificates, by what raises ConfigurationError where there is none."""
    with readiness.asking("signing key", "MAKEWHOLE_SIGNING_KEY"):
        read_key()


def look_at_chain(readiness: Readiness, service: Readiness, pipeline: str) -> None:
    """Ask whether the journal has all certificates of a pipeline that were published: what it lacks was judged, and is
    not known there. Where `service`, which was asked before, has no journal or storage to ask, nothing more is said."""
    if {_JOURNAL, _STORED} & {*service.failed}:
        return
    remedy = "Restore the journal as it was, with every entry that stands beside the files"
    with readiness.asking(f"certificates of {pipeline}", "journal", remedy), connect() as journal:
        last = certificates.last(journal, pipeline)
        require_none_ahead(journal, Storage.from_environment(), pipeline, last, "No window can be judged")
