"""Give a file of HDFS the owner, group, permission, ACL and replication of another one."""

from collections.abc import Callable, Sequence

from hdfs_native import AclEntry, Client

from makewhole.file_stores.store import is_fit, is_refusal

_MODE = 0o1777
_NO_ACLS = "AclException"  # of a NameNode with `dfs.namenode.acls.enabled` false
_ACTIONS = ("---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx")


def give_rights(client: Client, path: str, of: str, *, is_new: bool) -> bool:
    """Give a file or folder the rights of another one as far as this user may; return whether it is fit (`is_fit`).
    The owner is set last: who gives a file away may not change it any more. Attributes (`user.*`) are not given: the
    client has no call for them.

    Raises:
        FileNotFoundError: one of the two is not there.
    """
    own, like = client.get_file_info(path), client.get_file_info(of)
    unlike, mode = set[str](), like.permission & _MODE
    if own.group != like.group and not _may(lambda: client.set_owner(path, None, like.group)):
        unlike.add("group")
    if own.permission & _MODE != mode and not _may(lambda: client.set_permission(path, mode)):
        unlike.add("mode")
    if not _has_acl(client, path, _acl(client, of), mode):
        unlike.add("ACL")
    if own.replication and like.replication and own.replication != like.replication:
        client.set_replication(path, like.replication)
    if own.owner != like.owner and not _may(lambda: client.set_owner(path, like.owner, None)):
        unlike.add("owner")
    return is_fit(unlike, mode, is_new=is_new)


def make_folders(client: Client, folder: str) -> None:
    """Make a folder, and those above it that are not there, each with the rights of the one above as far as it can
    be."""
    above = folder.rpartition("/")[0] or "/"
    if folder in ("", "/") or _is_there(client, folder):
        return
    make_folders(client, above)
    client.mkdirs(folder, client.get_file_info(above).permission & _MODE, True)
    give_rights(client, folder, above, is_new=True)


def _is_there(client: Client, path: str) -> bool:
    try:
        client.get_file_info(path)
    except FileNotFoundError:
        return False
    return True


def _has_acl(client: Client, path: str, wanted: Sequence[AclEntry], mode: int) -> bool:
    """Set an ACL where a file has another one; return whether it has it."""
    known = _acl(client, path)
    if _texts(known) == _texts(wanted):
        return True
    if not wanted:
        return _may(lambda: client.remove_acl(path)) and _may(lambda: client.set_permission(path, mode))
    return _may(lambda: client.set_acl(path, [*wanted, *_entries_of_mode(mode)]))


def _entries_of_mode(mode: int) -> Sequence[AclEntry]:
    """Return what an ACL has in the mode: with an ACL the digit of the group is the mask of its entries."""
    digits = zip(("user", "mask", "other"), (mode >> 6, mode >> 3, mode), strict=True)
    return [AclEntry(kind, "access", _ACTIONS[digit & 7]) for kind, digit in digits]  # type: ignore[arg-type]


def _acl(client: Client, path: str) -> Sequence[AclEntry]:
    """Return the entries of a file beside its mode; none where the NameNode has no ACLs."""
    try:
        return [entry for entry in client.get_acl_status(path).entries if entry.scope == "access"]
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as error:
        if _NO_ACLS not in str(error):
            raise
        return []


def _texts(entries: Sequence[AclEntry]) -> Sequence[str]:
    return sorted(f"{entry.type}:{entry.name or ''}:{entry.permissions}" for entry in entries)


def _may(change: Callable[[], object]) -> bool:
    """Make a change; return whether this user may."""
    try:
        change()
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as error:
        if not is_refusal(error):
            raise
        return False
    return True
