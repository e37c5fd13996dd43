"""Open catalogues and tables of Iceberg, and turn what goes wrong there into makewhole's own errors."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    UnauthorizedError,
)
from pyiceberg.io import load_file_io
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier
from sqlalchemy.exc import SQLAlchemyError

from makewhole.datasets.iceberg.rest_sessions import load_patient_catalog
from makewhole.datasets.iceberg.sql_sessions import is_lock_in_vain, limit_transactions, patient_properties
from makewhole.datasets.iceberg.warehouse import IO_NAME, IO_PROPERTY, with_own_classes
from makewhole.file_stores.store import is_refusal
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import PermanentError, RefusedError, TransientError

_MOST_CATALOGS = 8
_MOST_LOOKED_AT = 200
_MOST_LOADS = 3


class NoTableError(RefusedError):
    """There is no such table in the catalogue."""


def open_catalog(connection: IcebergConnection) -> Catalog:
    """Return the catalogue of a connection.

    Raises:
        TransientError: it cannot be reached.
    """
    with translated(f"the catalogue of connection {connection.id}"):
        return _catalog(os.getpid(), connection.id, connection.catalog, tuple(sorted(connection.properties.items())))


@lru_cache(maxsize=_MOST_CATALOGS)
def _catalog(
    process: int,  # noqa: ARG001 - one a process
    connection_id: str,
    name: str,
    properties: tuple[tuple[str, str], ...],
) -> Catalog:
    catalog = load_patient_catalog(name, {IO_PROPERTY: IO_NAME, **patient_properties(dict(properties))})
    return with_own_classes(limit_transactions(catalog, connection_id))


def load_table(connection: IcebergConnection, name: str) -> Table:
    """Return a table as it is now.

    Raises:
        NoTableError: there is none.
        RefusedError: the file of its metadata is gone.
        ConfigurationError: the catalogue's server refuses a session.
        TransientError: the catalogue cannot be reached.
    """
    catalog = open_catalog(connection)
    with translated(f"{name} at connection {connection.id}"):
        try:
            return _loaded(catalog, name)
        except (NoSuchTableError, NoSuchNamespaceError):
            raise NoTableError(f"there is no table {name} in the catalogue of connection {connection.id}") from None


def loaded_again(table: Table, name: str) -> Table:
    """Return a table as it is now. Raises what `load_table` does."""
    with translated(name):
        try:
            return _loaded(table.catalog, table.name())
        except (NoSuchTableError, NoSuchNamespaceError):
            raise NoTableError(f"{name} is not in its catalogue any more") from None


def _loaded(catalog: Catalog, name: str | Identifier) -> Table:
    """Return a table by its metadata. Another commit may remove the file of these between the question where it is and
    its reading; one that is gone at each of some tries was removed by what knows nothing of the table.

    Raises:
        RefusedError: it is gone.
        OSError, RuntimeError: the storage refuses or does not answer.
    """
    for _ in range(_MOST_LOADS - 1):
        with suppress(FileNotFoundError):
            return catalog.load_table(name)
    try:
        return catalog.load_table(name)
    except FileNotFoundError as error:
        if error.filename:  # a store of S3 may answer so, too, whom it does not know; asked what it has, it refuses
            load_file_io(catalog.properties, error.filename).new_input(error.filename).exists()
        table = name if isinstance(name, str) else ".".join(name)
        raise RefusedError(
            f"{error.filename or 'a file'} is gone, the metadata of {table}: nothing is known of the table without it. "
            "Bring back what it lies on, or restore it; or register the "
            "newest metadata that are left (`register_table`). Then run this window again"
        ) from error


def table_with(connection: IcebergConnection, uuid: str) -> str | None:
    """Return the name of the table with a uuid; None: none among the first of the catalogue has it. It is a hint for a
    message alone, so that what cannot be asked is passed over."""
    with suppress(Exception):
        catalog = open_catalog(connection)
        names = [name for namespace in catalog.list_namespaces() for name in catalog.list_tables(namespace)]
        for name in names[:_MOST_LOOKED_AT]:
            with suppress(Exception):
                if str(catalog.load_table(name).metadata.table_uuid) == uuid:
                    return ".".join(name)
    return None


@contextmanager
def translated(what: str, file: str = "a file") -> Iterator[None]:
    """Turn errors of the catalogue and of the storage into makewhole's. Their own messages may hold addresses with
    secrets, and are not passed on. `file`: the one that is read.

    Raises:
        TransientError: a system did not answer, a file is gone, or another writer was faster.
        PermanentError: it refuses.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise TransientError(
            f"{error.filename or file} of {what} is gone: the snapshot that it belongs to was expired, or the file was "
            "removed from the storage; read again, and if it is still gone, restore it, for the table cannot be read "
            "without it"
        ) from error
    except (UnauthorizedError, ForbiddenError, AuthorizationExpiredError, PermissionError) as error:
        raise PermanentError(f"{what} may not be used ({type(error).__name__}); give the user the right to") from None
    except (CommitFailedException, CommitStateUnknownException) as error:
        raise TransientError(f"{what} was changed by another writer meanwhile ({type(error).__name__})") from None
    except pa.ArrowInvalid as error:
        raise PermanentError(
            f"{file} of {what} is damaged, or holds what its list of files does not say ({type(error).__name__}); "
            "restore it, or take it out of the table, and run the window again"
        ) from None
    except (SQLAlchemyError, RESTError, OSError, RuntimeError, pa.ArrowException) as error:
        if is_refusal(error):
            raise PermanentError(
                f"{what} may not be used ({type(error).__name__}); give the user the right to"
            ) from None
        if is_lock_in_vain(error):
            raise TransientError(
                f"{what} waits in vain for another session that is in the middle of a commit to the catalogue; try "
                "again, and if it stays so, end that session (pg_stat_activity in the catalogue's database)"
            ) from None
        raise TransientError(f"{what} does not answer as it should ({type(error).__name__})") from None
