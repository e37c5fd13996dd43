"""Test that a file that a repair writes again is read by whoever read it before, and one that it adds by them too."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from hdfs_native import AclEntry

from makewhole.datasets.files.write.staging import OTHER_RIGHTS
from makewhole.datasets.files.write.write_chunk import FilesWriter
from makewhole.file_stores.hdfs_store import HdfsStore
from makewhole.model.errors import RefusedError
from makewhole.tables.items import RestoreRow
from tests.integration.files.test_files_writer import chunk_of, fill, items_of, nothing, point_of
from tests.world.files_lake import FilesPlace

pytestmark = pytest.mark.integration

_READER, _RUNNER = 12_345, 23_456
"""Numbers of users and groups that need no name."""
_ACL = bytes.fromhex(  # user::rw-, user:12345:r--, group::r--, mask::rw-, other::---
    "02000000 01000600ffffffff 0200040039300000 04000400ffffffff 10000600ffffffff 20000000ffffffff"
)
IS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="gives files away, as root alone may")


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    """A runner whose new files no one else reads."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@contextmanager
def _as_runner(group: int = _RUNNER) -> Iterator[None]:
    """Be another user than root for a while."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(group)
    os.seteuid(_RUNNER)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


def _filled(place: FilesPlace) -> tuple[Path, Path]:
    """Return the files, of which each has a row that a repair takes or changes."""
    fill(place)
    files = Path(place.store.root, "a.parquet"), Path(place.store.root, "b.parquet")
    for file in files:
        file.chmod(0o664)
    return files


def _open_folders(root: Path) -> None:
    """Have every user write into a folder below the one of the tests."""
    root.chmod(0o777)
    for above in root.parents[:4]:
        above.chmod(above.stat().st_mode | 0o011)


def _mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def _added(place: FilesPlace) -> list[Path]:
    return sorted(Path(place.store.root).glob("makewhole-*.parquet"))


def test_written_files_have_the_mode_of_those_they_replace_and_lie_beside(place: FilesPlace) -> None:
    point, files = point_of(place), _filled(place)
    writer = FilesWriter(connection=place.connection, point=point)
    receipt = writer.write_chunk(point, chunk_of(), items_of(place, point), nothing)
    assert (receipt.actions, dict(receipt.refused)) == (3, {})
    assert [_mode(file) for file in (*files, *_added(place))] == [0o664] * 3

    [back] = [effect for effects in writer.effects(chunk_of().plan, "warehouse", 2) for effect in effects][:1]
    undo = chunk_of(plan="undo-1-0123456789ab")
    writer.write_chunk(point, undo, [RestoreRow(seq=0, key="O4", effect=back)], nothing)
    assert [_mode(file) for file in (*files, *_added(place))] == [0o664] * 4


@IS_ROOT
def test_written_files_have_owner_group_acl_and_attributes_of_those_they_replace(place: FilesPlace) -> None:
    point, files = point_of(place), _filled(place)
    for file in files:
        os.chown(file, _READER, _READER)
        os.setxattr(file, "user.tier", b"gold")
        os.setxattr(file, "system.posix_acl_access", _ACL)
    FilesWriter(connection=place.connection, point=point).write_chunk(
        point, chunk_of(), items_of(place, point), nothing
    )
    for file in (*files, *_added(place)):
        status = file.stat()
        assert (status.st_uid, status.st_gid, _mode(file)) == (_READER, _READER, 0o660), file
        assert (os.getxattr(file, "user.tier"), os.getxattr(file, "system.posix_acl_access")) == (b"gold", _ACL), file


@IS_ROOT
def test_an_acl_of_the_folder_is_not_given_to_a_file_that_had_none(place: FilesPlace) -> None:
    store = place.store
    store.replace("kept/staged", b"new")
    store.replace("a", b"old")
    for name, mode in (("kept/staged", 0o600), ("a", 0o640)):
        Path(store.root, name).chmod(mode)
    os.setxattr(Path(store.root, "kept/staged"), "system.posix_acl_access", _ACL)
    assert store.move("kept/staged", "a", is_new=False)
    assert (os.listxattr(Path(store.root, "a")), _mode(Path(store.root, "a"))) == ([], 0o640)


@IS_ROOT
@pytest.mark.parametrize("group", [_RUNNER, _READER])
def test_a_file_of_another_owner_is_left_and_rows_beside_it_are_added(place: FilesPlace, group: int) -> None:
    """The file beside is read by everyone, so that it may be of another owner, and group."""
    point, files, root = point_of(place), _filled(place), Path(place.store.root)
    _open_folders(root)
    for file in files:
        os.chown(file, _READER, _READER)
    before = [file.read_bytes() for file in files]
    with _as_runner(group):
        writer = FilesWriter(connection=place.connection, point=point)
        receipt = writer.write_chunk(point, chunk_of(), items_of(place, point), nothing)
    assert dict(receipt.refused) == {1: OTHER_RIGHTS, 2: OTHER_RIGHTS}
    assert [file.read_bytes() for file in files] == before
    [new] = _added(place)
    assert (new.stat().st_uid, new.stat().st_gid, _mode(new)) == (_RUNNER, group, 0o664)
    assert not any("staged" in name for name in place.names())


@IS_ROOT
def test_a_file_that_its_readers_could_not_read_is_not_added(place: FilesPlace) -> None:
    store, root = place.store, Path(place.store.root)
    store.replace("a", b"old")
    store.replace("b", b"new")
    os.chown(root / "a", _READER, _READER)
    (root / "a").chmod(0o640)
    assert store.give_rights("b", of="a", is_new=False)
    os.chown(root / "b", _RUNNER, _RUNNER)
    _open_folders(root)
    with _as_runner():
        assert not store.give_rights("b", of="a", is_new=True)
        with pytest.raises(RefusedError, match=r"a: a file in its place cannot be given its owner, group, mode and"):
            store.move("b", "a", is_new=False)
    with _as_runner(_READER):
        assert store.give_rights("b", of="a", is_new=True)
        assert not store.give_rights("b", of="a", is_new=False)
    assert place.content("a") == b"old"


def test_a_new_folder_has_the_rights_of_the_one_above(place: FilesPlace) -> None:
    root = Path(place.store.root)
    place.store.replace("kept/staged", b"new")
    root.chmod(0o2775)
    assert place.store.move("kept/staged", "dt=1/hour=2/a", is_new=True)
    assert [_mode(root / name) for name in ("dt=1", "dt=1/hour=2", "kept")] == [0o2775, 0o2775, 0o700]


@pytest.mark.parametrize("place", ["hdfs"], indirect=True)
def test_files_of_hdfs_keep_owner_group_permission_acl_and_replication(place: FilesPlace) -> None:
    point, store = point_of(place), cast(HdfsStore, place.store)
    fill(place)
    entries = [
        AclEntry("user", "access", "rw-"),
        AclEntry("user", "access", "r--", "analyst"),
        AclEntry("group", "access", "r--"),
        AclEntry("mask", "access", "rw-"),
        AclEntry("other", "access", "---"),
    ]
    paths = [f"{store.folder}/{name}" for name in ("a.parquet", "b.parquet")]
    for path in paths:
        store.client.set_owner(path, "etl", "loaders")
        store.client.set_acl(path, entries)
        store.client.set_replication(path, 2)
    before = [_rights(store, path) for path in paths]
    assert before[0][:4] == ("etl", "loaders", 0o660, 2)
    FilesWriter(connection=place.connection, point=point).write_chunk(
        point, chunk_of(), items_of(place, point), nothing
    )
    new = [f"{store.folder}/{name}" for name in place.names() if name.startswith("makewhole-")]
    assert [_rights(store, path) for path in (*paths, *new)] == [*before, before[0]]

    store.replace("kept/staged", b"new")
    store.replace("kept/plain", b"old")
    store.give_rights("kept/staged", of="a.parquet", is_new=False)
    store.client.set_permission(f"{store.folder}/kept/plain", 0o604)
    owner = store.client.get_file_info(f"{store.folder}/kept/plain").owner
    assert store.move("kept/staged", "kept/plain", is_new=False)
    assert _rights(store, f"{store.folder}/kept/plain")[::2] == (owner, 0o604, [])


@pytest.mark.parametrize("place", ["hdfs"], indirect=True)
def test_a_file_of_another_owner_on_hdfs_is_left(place: FilesPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    point, owner = point_of(place), cast(HdfsStore, place.store)
    fill(place)
    owner.client.set_permission(owner.folder, 0o777)
    before = {name: _rights(owner, f"{owner.folder}/{name}") for name in place.names()}
    items = items_of(place, point)
    monkeypatch.setenv("HADOOP_USER_NAME", "runner")
    receipt = FilesWriter(connection=place.connection, point=point).write_chunk(point, chunk_of(), items, nothing)
    assert dict(receipt.refused) == {1: OTHER_RIGHTS, 2: OTHER_RIGHTS}
    assert {name: _rights(owner, f"{owner.folder}/{name}") for name in before} == before
    [new] = [name for name in place.names() if name.startswith("makewhole-")]
    assert _rights(owner, f"{owner.folder}/{new}") == ("runner", *before["a.parquet"][1:])
    place.store.replace("kept/staged", b"new")
    with pytest.raises(RefusedError, match=r"a\.parquet: a file in its place cannot be given its owner"):
        place.store.move("kept/staged", "a.parquet", is_new=False)


def _rights(store: HdfsStore, path: str) -> tuple[str, str, int, int | None, list[str]]:
    status, acl = store.client.get_file_info(path), store.client.get_acl_status(path)
    entries = sorted(f"{entry.type}:{entry.name}:{entry.permissions}" for entry in acl.entries)
    return status.owner, status.group, status.permission & 0o1777, status.replication, entries
