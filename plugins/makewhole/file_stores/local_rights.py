"""Give a file of this machine the owner, group, mode and extended attributes, ACLs among them, of another one."""

import os
import stat
import sys
from collections.abc import Callable, Container, Mapping
from errno import EACCES, EINVAL, ENOTSUP, EPERM
from functools import partial

from makewhole.file_stores.store import is_fit

_NOT_ALLOWED = (EACCES, EINVAL, ENOTSUP, EPERM)  # EINVAL: a user or group that this container does not know
_NEEDED = ("system.", "user.")  # ACLs, and what people set; labels of the kernel's own follow its rules
_ACLS = "system."


def give_rights(path: str, of: str, *, is_new: bool) -> bool:
    """Give a file or folder the rights of another one as far as this user may; return whether it is fit (`is_fit`).

    The owner is set last: who gives a file away may not change it any more. The mode is set after attributes, which a
    file that is only read takes from no one, and before ACLs, which the mode would change.

    Raises:
        FileNotFoundError: one of the two is not there.
    """
    own, like = os.stat(path), os.stat(of)  # noqa: PTH116 - by name, as all calls here
    unlike = set[str]()
    if own.st_gid != like.st_gid and not _may(lambda: os.chown(path, -1, like.st_gid)):
        unlike.add("group")
    wanted = _attributes(of)
    acls = {name: value for name, value in wanted.items() if name.startswith(_ACLS)}
    if not _set_attributes(path, {name: value for name, value in wanted.items() if name not in acls}):
        unlike.add("attributes")
    is_bare = _remove_acls(path, kept=acls)
    if not _set_mode(path, stat.S_IMODE(like.st_mode)):
        unlike.add("mode")
    if not (is_bare and _set_attributes(path, acls)):
        unlike.add("ACL")
    if own.st_uid != like.st_uid and not _may(lambda: os.chown(path, like.st_uid, -1)):
        unlike.add("owner")
    return is_fit(unlike, like.st_mode, is_new=is_new)


def missing_folders(folder: str) -> list[str]:
    """Return a folder and those above it that are not there, the topmost first."""
    missing: list[str] = []
    while not os.path.isdir(folder):  # noqa: PTH112 - as above
        missing.insert(0, folder)
        folder = os.path.dirname(folder)  # noqa: PTH120 - as above
    return missing


def _attributes(path: str) -> Mapping[str, bytes]:
    """Return the extended attributes of a file; none where its system has none."""
    if sys.platform != "linux":
        return {}
    try:
        names = os.listxattr(path)
    except OSError as error:
        if error.errno != ENOTSUP:
            raise
        return {}
    attributes = ((name, _attribute(path, name)) for name in names)
    return {name: value for name, value in attributes if value is not None}


def _attribute(path: str, name: str) -> bytes | None:
    try:
        return os.getxattr(path, name)
    except FileNotFoundError:
        raise
    except OSError:  # it went, or is not shown to this user
        return None


def _set_attributes(path: str, wanted: Mapping[str, bytes]) -> bool:
    """Set attributes that a file has not; return whether it has those that people set."""
    known = _attributes(path)
    new = {name: value for name, value in wanted.items() if known.get(name) != value}
    done = {name: _may(partial(os.setxattr, path, name, value)) for name, value in new.items()}
    return all(is_set or not name.startswith(_NEEDED) for name, is_set in done.items())


def _remove_acls(path: str, kept: Container[str]) -> bool:
    """Remove ACLs that a file has from its folder, and is not to have; return whether it has none of them."""
    foreign = [name for name in _attributes(path) if name.startswith(_ACLS) and name not in kept]
    return not [name for name in foreign if not _may(partial(os.removexattr, path, name))]


def _set_mode(path: str, mode: int) -> bool:
    """Set a mode that a file has not, as there are systems that let no one set any; return whether it has it."""
    is_set = stat.S_IMODE(os.stat(path).st_mode) == mode  # noqa: PTH116 - as above
    return is_set or _may(lambda: os.chmod(path, mode))  # noqa: PTH101 - as above


def _may(change: Callable[[], object]) -> bool:
    """Make a change; return whether this user may."""
    try:
        change()
    except OSError as error:
        if error.errno not in _NOT_ALLOWED:
            raise
        return False
    return True
