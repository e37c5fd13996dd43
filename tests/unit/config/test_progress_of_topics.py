"""Test which topics a progress speaks of, and that no two topics have the same offsets from one."""

from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline, read_file
from makewhole.model.pipeline import Pipeline
from makewhole.window.configuration import configuration_document

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: orders
reach: log
points:
  orders: {kind: topic, connection: k, topic: orders, key: "$.id"}
  web: {kind: topic, connection: k, topic: web-orders, key: "$.id"}
  retry: {kind: topic, connection: k, topic: orders-retry, key: "$.id"}
  lake: LAKE
  lines: LINES
hops:
  - {from: orders, to: lake, progress: PROGRESS, redeliver_to: retry, compensation: {missing: redeliver}}
  - {from: web, to: OTHER, progress: SECOND}
"""
FILES = (
    "{kind: dataset, connection: h, format: parquet, path: /dw/orders, key: id, position: {partition: p, offset: o}}"
)
TABLE = "{kind: store, connection: pg, table: dw.orders, key: id}"


def written(
    folder: Path,
    *,
    lake: str = FILES,
    lines: str | None = None,
    progress: str = "files",
    second: str | None = None,
    has_replay: bool = True,
) -> Path:
    """Write a pipeline of two topics into one place, or with `lines` into two."""
    words = {"LAKE": lake, "LINES": lines or "", "PROGRESS": progress, "SECOND": second or progress}
    text = FILE.replace("  lines: LINES\n", "") if lines is None else FILE
    for word, value in {**words, "OTHER": "lake" if lines is None else "lines"}.items():
        text = text.replace(word, value)
    if not has_replay:
        text = text.replace(", redeliver_to: retry, compensation: {missing: redeliver}", "")
        text = "".join(line for line in text.splitlines(keepends=True) if "retry" not in line)
    path = folder / "orders.yaml"
    path.write_text(text)
    return path


def others(pipeline: Pipeline) -> list[tuple[str, ...]]:
    """Return the topics besides its own that the progress of each hop knows of."""
    return [() if hop.progress is None else hop.progress.other_topics for hop in pipeline.hops]


def test_files_of_several_topics_are_known_to_be_so_where_rows_do_not_say_their_topic(tmp_path: Path) -> None:
    pipeline = load_pipeline(written(tmp_path))
    assert others(pipeline) == [("orders-retry", "web-orders"), ("orders", "orders-retry")]
    assert [hop.progress and hop.progress.knows_topics for hop in pipeline.hops] == [False, False]
    assert "'other_topics': ['orders-retry', 'web-orders']" in str(configuration_document(pipeline))

    assert others(load_pipeline(written(tmp_path, has_replay=False))) == [("web-orders",), ("orders",)]
    with_topic = FILES.replace("partition: p", "topic: t, partition: p")
    pipeline = load_pipeline(written(tmp_path, lake=with_topic))
    assert others(pipeline) == [(), ()]
    assert "other_topics" not in str(configuration_document(pipeline))


def test_one_folder_is_one_place_whatever_its_points_are_called(tmp_path: Path) -> None:
    pipeline = load_pipeline(written(tmp_path, lines=FILES))
    assert others(pipeline) == [("orders-retry", "web-orders"), ("orders", "orders-retry")]
    elsewhere = FILES.replace("/dw/orders", "/dw/web")
    assert others(load_pipeline(written(tmp_path, lines=elsewhere))) == [("orders-retry",), ()]


def test_a_table_of_progress_says_of_which_topic_an_offset_is(tmp_path: Path) -> None:
    plain = "{table: dw.progress, partition: part, offset: at}"
    path = written(tmp_path, lake=TABLE, progress=plain, has_replay=False)
    assert [f"{problem.path}: {problem.found}. {problem.remedy}" for problem in read_file(path).problems] == [
        "hops[1] (line 10): orders→lake and web→lake read one progress, and nothing says which topic an offset of "
        "dw.progress is of. Write 'topic: COLUMN' under 'progress' of both with the column of the topic's name, or a "
        "'where' that distinguishes their rows"
    ]
    own = "{table: dw.progress, partition: part, offset: web_at}"
    for first, second in (
        (plain, own),
        (plain.replace("at}", "at, topic: t}"), None),
        (plain.replace("at}", "at, where: \"sink = 'a'\"}"), plain.replace("at}", "at, where: \"sink = 'b'\"}")),
    ):
        load_pipeline(written(tmp_path, lake=TABLE, progress=first, second=second, has_replay=False))


def test_one_topic_may_have_one_progress_for_two_stores(tmp_path: Path) -> None:
    plain = "{table: dw.progress, partition: part, offset: at}"
    path = written(tmp_path, lake=TABLE, lines=TABLE.replace("orders", "lines"), progress=plain, has_replay=False)
    path.write_text(path.read_text().replace("from: web", "from: orders").replace("  web: ", "  # web: "))
    assert len(load_pipeline(path).hops) == 2
