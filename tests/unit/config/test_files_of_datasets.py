"""Check how a pipeline file names a dataset of files: its path, and what commits a file."""

from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.points import TablePoint
from makewhole.window.configuration import configuration_document

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: shop
points:
  log: {kind: topic, connection: k, topic: log, key: "$.id"}
  store: {kind: dataset, connection: lake, FORMAT, key: idCOMMITTED}
hops: [{from: log, to: store}]
"""
PARQUET = "format: parquet, path: /dw/orders"


def file_of(folder: Path, committed: str, form: str = PARQUET) -> Path:
    """Write a file."""
    path = folder / "shop.yaml"
    path.write_text(FILE.replace("FORMAT", form).replace("COMMITTED", committed))
    return path


@pytest.mark.parametrize(
    ("said", "marker"),
    [
        ("", ""),
        (", committed: rename", ""),
        (", committed: _SUCCESS", "_SUCCESS"),
        (", committed: manifest", "_manifest*.json"),
    ],
)
def test_files_count_by_their_names_or_by_a_marker(tmp_path: Path, said: str, marker: str) -> None:
    pipeline = load_pipeline(file_of(tmp_path, said))
    store = pipeline.points["store"]
    assert isinstance(store, TablePoint)
    assert store.dataset is not None
    assert (store.table, store.dataset.format, store.dataset.marker) == ("/dw/orders", "parquet", marker)
    assert ("marker" in str(configuration_document(pipeline))) is bool(marker)


@pytest.mark.parametrize(
    ("form", "said", "message"),
    [
        (PARQUET, ", committed: _DONE", "'_DONE' does not commit files. Allowed: _SUCCESS, manifest, rename"),
        (
            "format: iceberg, table: dw.orders",
            ", committed: _SUCCESS",
            "is not for iceberg, whose catalogue says what is committed. Take it out",
        ),
    ],
)
def test_what_commits_no_file_is_named(tmp_path: Path, form: str, said: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load_pipeline(file_of(tmp_path, said, form))
    assert f"points.store.committed (line 5): {message}" in str(raised.value)
