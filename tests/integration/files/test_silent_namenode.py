"""Test stores on an HDFS whose NameNode takes a question and says nothing: they are asked again later."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from makewhole import limited_hdfs
from makewhole.datasets.iceberg.warehouse import WarehouseIO
from makewhole.file_stores.open_store import file_store
from makewhole.file_system import hdfs_client, open_to_read
from makewhole.limited_hdfs import limited
from makewhole.model.connection import HdfsConnection
from makewhole.model.errors import TransientError

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server that takes connections, and reads and says nothing."""
    monkeypatch.setattr(limited_hdfs, "_ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"
    for thread in threading.enumerate():
        if thread.name == limited_hdfs.QUESTION:
            thread.join(20)
            assert not thread.is_alive()


def test_a_dataset_is_asked_again_later(silent: str) -> None:
    store = file_store(HdfsConnection(id="lake", address=silent, properties={}), "/lake")
    asked: tuple[Callable[[], object], ...] = (store.list, lambda: store.find("a"), lambda: store.open("a"))
    for ask in asked:
        with pytest.raises(TransientError, match=r"/lake does not answer: the NameNode took a question and"):
            ask()


def test_the_files_of_a_table_and_of_the_storage_raise_what_their_callers_try_again(silent: str) -> None:
    with pytest.raises(OSError, match="said nothing"):
        WarehouseIO().new_input(f"hdfs://{silent}/warehouse/a.parquet").open()
    with pytest.raises(OSError, match="said nothing"), open_to_read(f"hdfs://{silent}/storage/a"):
        pass


def test_after_a_question_without_an_answer_another_connection_is_made(silent: str) -> None:
    connection = HdfsConnection(id="lake", address=silent, properties={})
    first = hdfs_client(connection)
    assert hdfs_client(connection) is first
    with pytest.raises(OSError, match="said nothing"):
        first.get_file_info("/a")
    assert hdfs_client(connection) is not first


class Listing:
    """A client that lists so many files, in answers of a hundred, and fails at the end."""

    def __init__(self, count: int) -> None:
        self._count = count

    def list_status(self, path: str, recursive: bool) -> Iterator[str]:
        assert (path, recursive) == ("/lake", True)
        yield from (f"f{number}" for number in range(self._count))
        raise FileNotFoundError(path)


def test_a_long_listing_is_whole_and_ends_as_it_ends() -> None:
    class Asked:
        inner: object = Listing(2_500)

    asked: object = limited(Asked())  # type: ignore[arg-type]
    listed = asked.inner.list_status("/lake", True)  # type: ignore[attr-defined]
    names = [next(listed) for _ in range(2_000)]

    assert names == [f"f{number}" for number in range(2_000)]
    with pytest.raises(FileNotFoundError, match="/lake"):
        list(listed)
