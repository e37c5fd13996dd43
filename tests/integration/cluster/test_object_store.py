"""Test everything that is stored on an object store, by a connection of Airflow's form and by the SDK's own chain."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePath

import polars as pl
import pytest

from bench.cluster.spark_cluster import SparkCluster
from makewhole.compensation.freezing.payload_file import verified_copy, write_payloads
from makewhole.file_system import arrow_file_system
from makewhole.kafka.log.archive import ArchiveLog, SegmentWriter
from makewhole.lake.storage import Storage
from makewhole.model.actions import Payload
from makewhole.model.errors import CorruptionError
from makewhole.model.window import PartitionRange
from tests.integration.cluster.application import Submitter
from tests.integration.cluster.conftest import ClusterShop
from tests.integration.cluster.object_store import BUCKET, REGION, ObjectStore
from tests.world.environment import set_connection

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(600)]

FRAME = pl.DataFrame({"key_hi": [1, 2, 3], "key": ["a", None, "ü"]}, schema={"key_hi": pl.UInt64, "key": pl.String})
RANGE = PartitionRange(topic="flights", topic_id="A", partition=3, lo=5, hi=9)


@pytest.fixture(scope="module")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    made = ObjectStore.start(tmp_path_factory.mktemp("s3"), "AKPLANTED", "a-planted-secret-key")
    yield made
    made.stop()


@pytest.fixture
def storage(object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    set_connection(monkeypatch, "storage", object_store.connection)
    monkeypatch.setenv("MAKEWHOLE_STORAGE", f"s3://storage@{BUCKET}/{tmp_path.name}")
    return Storage.from_environment()


def test_files_are_written_read_listed_and_removed(storage: Storage) -> None:
    first, other = (storage.write_parquet(f"p/bucket=0{at}", FRAME[at:]) for at in range(2))
    with storage.sorted_parquet("p/index") as index:
        index.append(FRAME)
    uri = storage.write_bytes("p/certificates/1.json", b"{}\x00")

    read = storage.read_parquet([first, other])

    assert read is not None and read.equals(pl.concat([FRAME, FRAME[1:]]))
    assert storage.sorted_rows(index.path).between(2, None).equals(FRAME[1:])
    assert uri == f"{storage.root}/p/certificates/1.json"
    assert storage.read_bytes("p/certificates/1.json") == b"{}\x00"
    assert storage.names("p/certificates") == ["1.json"]
    assert [file.path for file in storage.files_below("p")] == sorted(
        [first, other, index.path, "p/certificates/1.json"]
    )
    storage.remove(first)
    storage.remove(first)
    assert storage.names("p/bucket=00") == storage.names("p/none") == []
    assert storage.read_if_exists("p/none.json") is None
    with pytest.raises(CorruptionError, match="is named by a manifest and is not there"):
        storage.read_parquet([first])


def test_a_file_that_never_changes_is_written_once(storage: Storage) -> None:
    for _ in range(2):
        assert storage.write_once("p/anchors/1.json", b"one") == f"{storage.root}/p/anchors/1.json"

    with pytest.raises(CorruptionError, match="is there with another content"):
        storage.write_once("p/anchors/1.json", b"other")
    assert storage.names("p/anchors") == ["1.json"]
    assert storage.read_bytes("p/anchors/1.json") == b"one"


def test_an_attempt_that_was_given_up_leaves_nothing_in_the_archive(storage: Storage) -> None:
    writer = SegmentWriter(storage.uri("p/archive"), RANGE)
    writer.write(5, b"half a batch")
    writer.discard()

    assert storage.files_below("p") == []
    with pytest.raises(CorruptionError, match="holds no segment of an archive"):
        ArchiveLog(storage.uri("p/archive")).ranges()


def test_a_segment_is_there_whole_and_damage_is_noticed(storage: Storage) -> None:
    writer = SegmentWriter(storage.uri("p/archive"), RANGE)
    writer.write(5, b"some batches")
    writer.finish((), ())

    names = ["00000000000000000005.aborted.json", "00000000000000000005.log"]
    assert storage.names("p/archive/partition=3") == names
    [archived] = ArchiveLog(storage.uri("p/archive")).ranges()
    assert (archived.topic, archived.topic_id, archived.partition, archived.lo, archived.hi) == (
        "flights",
        "A",
        3,
        5,
        9,
    )
    assert set(writer.sha256) == {f"partition=3/{name}" for name in names}
    storage.write_bytes(f"p/archive/partition=3/{names[1]}", b"some")
    with pytest.raises(CorruptionError, match="has 4 bytes, 12 were written"):
        ArchiveLog(storage.uri("p/archive")).ranges()


def test_the_payloads_of_a_plan_come_back_and_another_file_is_refused(storage: Storage) -> None:
    uri, sha256 = write_payloads(storage.uri("p/plan/payloads"), [[(0, Payload(key=b"K", value=b"V"))]])

    copy = verified_copy(uri, sha256)
    assert copy.rows == 1
    copy.close()
    [file] = storage.files_below("p/plan")
    assert uri == storage.uri(file.path)
    with pytest.raises(CorruptionError, match="is not the one that the plan froze"):
        verified_copy(uri, "0" * 64)
    storage.remove(file.path)
    with pytest.raises(CorruptionError, match="is gone; nothing was written"):
        verified_copy(uri, sha256)


def test_credentials_may_come_from_the_chain_of_the_sdk(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", object_store.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", object_store.secret_key)
    root = f"s3://{BUCKET}/chain?region={REGION}&scheme=http&endpoint_override={object_store.endpoint}"

    stored = Storage(root=root)

    assert stored.write_bytes("p/one", b"1") == root.replace("?", "/p/one?")
    assert stored.read_bytes("p/one") == b"1"
    assert arrow_file_system(stored.uri("p/one"))[1] == f"{BUCKET}/chain/p/one"


def test_a_window_on_a_cluster_with_its_storage_on_an_object_store_gives_the_report_of_one_machine(
    shop: ClusterShop,
    submitter: Submitter,
    local: Submitter,
    cluster: SparkCluster,
    object_store: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_a_folder = shop.judged(local)
    folders = folders_with_files(shop.open().storage)
    set_connection(monkeypatch, "storage", object_store.connection)
    cluster.know_environment()
    monkeypatch.setenv("MAKEWHOLE_STORAGE", f"s3://storage@{BUCKET}/{shop.topic}")

    context = shop.open()
    assert context.storage.files_below("shop") == []
    assert shop.judged(submitter) == in_a_folder
    assert "shop/window=#/revision=#/orders/archive/partition=#" in folders
    assert folders_with_files(context.storage) == folders


def folders_with_files(storage: Storage) -> set[str]:
    """Return the folders of the shop that hold files, with `#` for numbers."""
    parents = {str(PurePath(file.path).parent) for file in storage.files_below("shop")}
    return {re.sub(r"=[^/]+", "=#", parent) for parent in parents}
