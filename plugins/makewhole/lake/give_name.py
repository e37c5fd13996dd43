"""Give a file that was written under another name its own: for one of many, or in the place of what is there."""

import errno
import os
import re
from pathlib import Path
from uuid import uuid4

from pyarrow import fs

from makewhole.file_system import fsspec_file_system, is_object_store

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
"""Errors of a file system that gives no file two names."""
UNFINISHED = re.compile(r"(?P<whole>.*)\.([0-9a-f]{32}\.tmp|[0-9a-f]{16}\.unfinished)")
"""Path of a file that an attempt writes before it gives it its name, `whole`; of an archive it ends in tmp."""


def unfinished_path(path: str) -> str:
    """Return a path, of no other attempt, for a file that will be given this one."""
    return f"{path}.{uuid4().hex[:16]}.unfinished"


def give_name(system: fs.FileSystem, unfinished: str, full: str) -> None:
    """Give a file its name.

    Raises:
        FileExistsError: a folder or HDFS has another one of this name.
    """
    if not isinstance(system, fs.LocalFileSystem):
        system.move(unfinished, full)
        return
    try:
        os.link(unfinished, full)  # a move would take the name from who has it
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        system.move(unfinished, full)
    else:
        system.delete_file(unfinished)


def take_place(root: str, system: fs.FileSystem, written: str, full: str) -> None:
    """Give a file the name of another one, which goes: a reader sees all of the old one, or all of the new one."""
    if isinstance(system, fs.LocalFileSystem):
        Path(written).replace(full)
    elif is_object_store(root):
        system.move(written, full)
    else:
        fsspec_file_system(root)[0].mv(written, full, overwrite=True)
