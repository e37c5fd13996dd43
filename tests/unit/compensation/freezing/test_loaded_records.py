"""Records are loaded in pieces of bounded size, each once."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from makewhole.compensation.sources import sources as module
from makewhole.compensation.sources.sources import SourceRecord, Sources
from makewhole.model.errors import CorruptionError
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TopicPoint
from tests.unit.compensation.freezing.test_survivors import Records

pytestmark = pytest.mark.unit

PIPELINE = Pipeline(
    name="p",
    points={"orders": TopicPoint(name="orders", connection="kafka", topic="orders", key=("kafka.key",))},
    hops=(),
)


class Log(Records):
    """Records whose values have `size` bytes, but those at `gone`; a partition of 9 breaks off behind offset 1. `asked`
    are the positions that were asked for."""

    def __init__(self, size: int, gone: Sequence[int] = ()) -> None:
        super().__init__()
        self._size, self.gone = size, set(gone)
        self.asked: list[tuple[int, int]] = []

    def records(self, point: str, positions: Any) -> Iterator[SourceRecord]:  # type: ignore[override]
        self.asked += positions
        for partition, offset in positions:
            if partition == 9 and offset > 1:
                raise CorruptionError("the archive is damaged")
            if offset not in self.gone:
                yield SourceRecord(
                    partition=partition,
                    offset=offset,
                    key=f"K{offset}".encode(),
                    value=bytes(self._size),
                    headers=(),
                    timestamp_ms=None,
                )


def pieces_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which every call that decodes keys adds its number of records."""
    pieces: list[int] = []
    decode = module.business_keys

    def counted(point: TopicPoint, records: Sequence[SourceRecord]) -> list[str | None]:
        pieces.append(len(records))
        return decode(point, records)

    monkeypatch.setattr(module, "business_keys", counted)
    return pieces


def wanted(offsets: Iterable[int], partition: int = 0) -> dict[str, list[tuple[int, int]]]:
    return {"orders": [(partition, offset) for offset in offsets]}


@pytest.mark.parametrize(
    ("size", "count", "pieces"),
    [
        (10, 12_000, [5_000, 5_000, 2_000]),
        (30 * 2**20, 7, [3, 3, 1]),  # 64 MiB are reached by the third
        (70 * 2**20, 2, [1, 1]),
        (10, 0, []),
    ],
)
def test_keys_are_decoded_whenever_64_mib_of_values_are_gathered(
    monkeypatch: pytest.MonkeyPatch, size: int, count: int, pieces: list[int]
) -> None:
    decoded, log = pieces_of(monkeypatch), Log(size)
    with Sources(PIPELINE, log, {}) as sources:
        sources.load(wanted(range(count)))
        for offset in {0, count // 2, count - 1} if count else ():
            record = sources.record("orders", (0, offset), f"K{offset}")
            assert (record.offset, len(record.value or b"")) == (offset, size)

    assert decoded == pieces


def test_a_record_is_read_and_kept_once_however_often_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pass of a verification loads the same records; those that were not found are looked for again."""
    decoded, log = pieces_of(monkeypatch), Log(10, gone=[3])
    with Sources(PIPELINE, log, {}) as sources:
        sources.load(wanted(range(5)))
        log.gone, log.asked = set(), []
        sources.load(wanted(range(6)) | {"orders": [*wanted(range(6))["orders"], (1, 2)]})
        assert log.asked == [(0, 3), (0, 5), (1, 2)]
        log.asked = []
        sources.load(wanted([*range(6), 0, 5]))
        sources.load(wanted([]))
        offsets = [sources.record("orders", (0, offset), f"K{offset}").offset for offset in range(6)]

    assert (log.asked, decoded, offsets) == ([], [4, 3], [0, 1, 2, 3, 4, 5])


def test_what_was_read_before_an_archive_broke_off_is_not_read_again() -> None:
    log = Log(10)
    with Sources(PIPELINE, log, {}) as sources:
        with pytest.raises(CorruptionError):
            sources.load(wanted(range(3), partition=9))
        log.asked = []
        sources.load(wanted([0, 1], partition=9))
        assert log.asked == [(9, 0), (9, 1)]  # they were in no piece that was kept yet
        log.asked = []
        with pytest.raises(CorruptionError):
            sources.load(wanted(range(3), partition=9))
        assert log.asked == [(9, 2)]
