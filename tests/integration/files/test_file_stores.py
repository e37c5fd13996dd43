"""Files in a folder, on HDFS and on S3: published as a whole and for one of many, replaced, listed."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from makewhole.config.connections import from_airflow_fields
from makewhole.file_stores.open_store import file_store
from makewhole.file_stores.store import FileStore
from makewhole.model.errors import RefusedError, TransientError
from tests.world.files_lake import FilesPlace

pytestmark = pytest.mark.integration

EVERY = pytest.mark.parametrize("place", ["folder", "hdfs", "s3"], indirect=True)
_WRITERS = 20


def _read(store: FileStore, path: str) -> bytes:
    with store.open(path) as file:
        return file.read()


@pytest.mark.parametrize("place", ["folder", "hdfs", "hdfs service", "s3"], indirect=True)
def test_a_published_file_is_there_as_a_whole_and_nothing_else_is(store: FileStore) -> None:
    assert store.list() == []
    assert store.find("dt=1/a.parquet") is None
    assert store.publish("dt=1/a.parquet", b"one")
    assert store.publish("b.parquet", b"")
    assert [(file.path, file.size_bytes, file.name) for file in store.list()] == [
        ("b.parquet", 0, "b.parquet"),
        ("dt=1/a.parquet", 3, "a.parquet"),
    ]
    assert abs(store.list()[1].modified_ms / 1000 - time.time()) < 60
    assert store.find("dt=1/a.parquet") == store.list()[1]
    assert _read(store, "dt=1/a.parquet") == b"one"


@EVERY
def test_a_name_that_is_taken_is_left_as_it_is_and_can_be_replaced(store: FileStore) -> None:
    assert store.publish("a", b"one")
    assert not store.publish("a", b"two and more")
    assert _read(store, "a") == b"one"
    store.replace("a", b"three")
    store.replace("new", b"four")
    assert [(file.path, _read(store, file.path)) for file in store.list()] == [("a", b"three"), ("new", b"four")]
    store.remove("a")
    store.remove("a")
    assert [file.path for file in store.list()] == ["new"]
    with pytest.raises(FileNotFoundError):
        store.open("a").read()


@EVERY
def test_a_file_is_moved_once_onto_a_new_name_or_over_one(store: FileStore) -> None:
    store.replace("kept/a", b"one")
    store.replace("kept/b", b"two")
    store.replace("dt=1/old", b"old")
    assert not store.move("kept/a", "dt=1/old", is_new=True)
    assert store.move("kept/a", "dt=2/new", is_new=True)
    assert store.move("kept/b", "dt=1/old", is_new=False)
    files = [("dt=1/old", b"two"), ("dt=2/new", b"one")]
    assert [(file.path, _read(store, file.path)) for file in store.list()] == files
    store.replace("dt=1/old", b"newer")
    store.remove("dt=2/new")
    assert not store.move("kept/b", "dt=1/old", is_new=False)
    assert not store.move("kept/a", "dt=2/new", is_new=True)
    assert [(file.path, _read(store, file.path)) for file in store.list()] == [("dt=1/old", b"newer")]


@pytest.mark.parametrize("place", ["folder", "hdfs"], indirect=True)
@pytest.mark.parametrize("is_new", [True, False])
def test_of_many_that_move_one_file_one_succeeds(store: FileStore, is_new: bool) -> None:
    store.replace("staged", b"one")
    with ThreadPoolExecutor(_WRITERS) as pool:
        done = list(pool.map(lambda _: store.move("staged", "a", is_new=is_new), range(_WRITERS)))
    assert done.count(True) == 1
    assert [(file.path, _read(store, file.path)) for file in store.list()] == [("a", b"one")]


@pytest.mark.parametrize("place", ["folder", "hdfs"], indirect=True)
def test_of_many_that_publish_one_name_one_succeeds_and_its_content_is_there(store: FileStore) -> None:
    contents = [f"{number}".encode() * 1000 for number in range(_WRITERS)]
    with ThreadPoolExecutor(_WRITERS) as pool:
        done = list(pool.map(lambda content: store.publish("a", content), contents))
    assert done.count(True) == 1
    assert _read(store, "a") == contents[done.index(True)]
    assert [file.path for file in store.list()] == ["a"]
    assert store.has_exclusive_names


@pytest.mark.parametrize("place", ["s3"], indirect=True)
def test_s3_says_that_it_does_not_choose_one_of_many(store: FileStore) -> None:
    assert not store.has_exclusive_names


@pytest.mark.parametrize("place", ["s3"], indirect=True)
def test_s3_that_refuses_access_is_distinguished_from_one_that_does_not_answer(place: FilesPlace) -> None:
    assert place.store.publish("a", b"one")
    wrong = FilesPlace(path=place.path, fields={**place.fields, "login": "wrong-key"}).store
    for ask in (wrong.list, lambda: wrong.find("a"), lambda: wrong.open("a"), lambda: wrong.replace("a", b"two")):
        with pytest.raises(RefusedError, match=r": access is refused; grant it to the user that makewhole runs as$"):
            ask()
    assert _read(place.store, "a") == b"one"


def test_a_name_node_that_is_away_is_an_error_within_seconds() -> None:
    store = file_store(from_airflow_fields("lake", "hdfs", host="127.0.0.1", port=1), "/lake")
    started = time.monotonic()
    with pytest.raises(TransientError) as raised:
        store.list()
    assert str(raised.value).startswith("hdfs://127.0.0.1:1/lake does not answer: ")
    assert time.monotonic() - started < 30
