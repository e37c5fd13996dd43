"""Count a broker's segments independently: the records of its own dump tool, added up in the plainest way."""

import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from makewhole.stack.kafka_jars import kafka_libs
from makewhole.stack.maven_jars import java

_FIELD = re.compile(r"(\w+): (\S+)")
_CODECS = {"none": "none", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd"}


@dataclass(kw_only=True)
class DumpedBatch:
    """A batch line of the tool, and the record lines below it."""

    fields: dict[str, str]
    records: list[dict[str, str]] = field(default_factory=list)

    def number(self, name: str) -> int:
        return int(self.fields[name])

    def is_set(self, name: str) -> bool:
        return self.fields[name] == "true"

    @property
    def is_commit(self) -> bool:
        return self.records[0]["endTxnMarker"] == "COMMIT"


def dump(segments: Iterable[Path]) -> Mapping[Path, list[DumpedBatch]]:
    """All batches of segment files, by the folder of their partition, in offset order."""
    names = ",".join(str(path) for path in segments)
    command = [java(), "-Xmx128m", "-XX:+UseSerialGC", "-cp", f"{kafka_libs()}/*", "kafka.tools.DumpLogSegments"]
    done = subprocess.run(
        [*command, "--print-data-log", "--files", names], capture_output=True, text=True, check=True, timeout=120
    )
    by_partition: defaultdict[Path, list[DumpedBatch]] = defaultdict(list)
    batches: list[DumpedBatch] = []
    for line in done.stdout.splitlines():
        if line.startswith("Dumping "):
            batches = by_partition[Path(line.removeprefix("Dumping ")).parent]
        elif line.startswith("baseOffset: "):
            batches.append(DumpedBatch(fields=dict(_FIELD.findall(line))))
        elif line.startswith("| offset: "):
            batches[-1].records.append(dict(_FIELD.findall(line.split(" payload: ")[0])))
    return {
        folder: sorted(of_it, key=lambda batch: batch.number("baseOffset")) for folder, of_it in by_partition.items()
    }


class Counted:
    """Everything the report says of one partition, from the dump and the log's three offsets alone."""

    def __init__(self, batches: list[DumpedBatch], *, log_start: int, stable: int, end: int) -> None:
        self.all = batches
        self.log_start, self.stable, self.end = log_start, stable, end
        self.visible = [batch for batch in batches if batch.number("lastOffset") >= log_start]
        self.data = [batch for batch in self.visible if not batch.is_set("isControl")]
        self.markers = [batch for batch in self.visible if batch.is_set("isControl")]

    def aborted_offsets(self) -> set[int]:
        """Going from the end to the beginning: a transactional record belongs to its producer's next marker."""
        ending: dict[int, bool] = {}
        offsets = set()
        for batch in reversed(self.all):
            producer = batch.number("producerId")
            if batch.is_set("isControl"):
                ending[producer] = batch.is_commit
            elif batch.is_set("isTransactional") and ending.get(producer) is False:
                offsets |= {int(record["offset"]) for record in batch.records}
        return offsets

    def offsets(self) -> dict[str, int]:
        """Offset by offset, up to the stable one."""
        data = {int(record["offset"]) for batch in self.data for record in batch.records}
        control = {int(record["offset"]) for batch in self.markers for record in batch.records}
        aborted, kinds = self.aborted_offsets(), Counter[str]()
        for offset in range(self.stable):
            if offset < self.log_start:
                kinds["expired"] += 1
            elif offset in control:
                kinds["control"] += 1
            elif offset in data:
                kinds["aborted" if offset in aborted else "data"] += 1
            else:
                kinds["compacted"] += 1
        names = ("data", "control", "aborted", "compacted", "expired", "undecodable")
        return {"span": self.stable, **{name: kinds[name] for name in names}}

    def tail_records(self) -> int:
        return sum(int(record["offset"]) >= self.stable for batch in self.data for record in batch.records)

    def records(self) -> int:
        return sum(batch.number("count") for batch in self.data)

    def transactions(self) -> dict[str, list[int]]:
        """Numbers of records of each transaction that ended, committed or aborted, in the order of markers."""
        open_records: dict[int, int] = defaultdict(int)
        counts: dict[str, list[int]] = {"committed": [], "aborted": []}
        for batch in self.visible:
            producer = batch.number("producerId")
            if batch.is_set("isControl"):
                counts["committed" if batch.is_commit else "aborted"].append(open_records.pop(producer, 0))
            elif batch.is_set("isTransactional"):
                open_records[producer] += batch.number("count")
        return counts

    def sequences(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """Per (producer id, epoch): (first sequence, how many) of each batch, in offset order."""
        sequences: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for batch in self.data:
            if batch.number("producerId") >= 0:
                offsets = batch.number("lastOffset") - batch.number("baseOffset") + 1
                identity = batch.number("producerId"), batch.number("producerEpoch")
                sequences[identity].append((batch.number("baseSequence"), offsets))
        return sequences

    def numbering(self) -> dict[str, int]:
        """Record by record: what is there twice, and what is not there between the first and the last."""
        missing = repeated = gaps = 0
        for pieces in self.sequences().values():
            numbers = [(start + index) % 2**31 for start, length in pieces for index in range(length)]
            repeated += len(numbers) - len(set(numbers))
            ascending = [(number - numbers[0]) % 2**31 for number in set(numbers)]
            holes = sorted(set(range(max(ascending) + 1)) - set(ascending))
            missing += len(holes)
            gaps += sum(index == 0 or hole != holes[index - 1] + 1 for index, hole in enumerate(holes))
        return {"missing": missing, "repeated": repeated, "gaps": gaps}

    def codecs(self) -> dict[str, tuple[int, int, int]]:
        """Batches, records and bytes by codec."""
        codecs: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for batch in self.data:
            total = codecs[_CODECS[batch.fields["compresscodec"]]]
            total[0], total[1] = total[0] + 1, total[1] + batch.number("count")
            total[2] += batch.number("size")
        return {name: (total[0], total[1], total[2]) for name, total in codecs.items()}

    def kinds(self) -> Counter[str]:
        """Records by kind of producer."""
        kinds = Counter[str]()
        for batch in self.data:
            is_numbered = batch.number("producerId") >= 0
            kind = "transactional" if batch.is_set("isTransactional") else "idempotent" if is_numbered else "plain"
            kinds[kind] += batch.number("count")
        return kinds

    def leader_epochs(self) -> list[tuple[int, int, int]]:
        """(epoch, first offset, offset behind) up to the stable offset."""
        epochs: list[tuple[int, int, int]] = []
        for batch in self.visible:
            epoch, end = batch.number("partitionLeaderEpoch"), min(batch.number("lastOffset") + 1, self.stable)
            start = max(batch.number("baseOffset"), self.log_start)
            if end <= start:
                continue
            if epochs and epochs[-1][0] == epoch:
                epochs[-1] = (epoch, epochs[-1][1], end)
            else:
                epochs.append((epoch, start, end))
        return epochs

    def late_batches(self) -> int:
        newest, late = -1, 0
        for batch in self.data:
            stamp = int(batch.fields["CreateTime"])
            late += stamp < newest
            newest = max(newest, stamp)
        return late
