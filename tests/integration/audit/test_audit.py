"""Test every number of an audit against an independent count by the broker's own dump tool."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from makewhole.stack.kafka_server import KafkaServer
from tests.integration.audit.dump import Counted, dump
from tests.integration.audit.messy import COMPACTED, DAMAGED, EVENTS, FORGETFUL, Mess

pytestmark = pytest.mark.integration

Document = dict[str, Any]
TOPICS = (EVENTS, COMPACTED)
_MAKEWHOLE = Path(sys.executable).parent / "makewhole"


@pytest.fixture(scope="module")
def mess(server_folder: Path) -> Iterator[Mess]:
    with KafkaServer(server_folder / "forgetful", settings=FORGETFUL) as server:
        mess = Mess(server)
        mess.make()
        yield mess


def run(mess: Mess, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(_MAKEWHOLE), "audit", *arguments, "--bootstrap", mess.bootstrap]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "COLUMNS": "100"})


@pytest.fixture(scope="module")
def audits(mess: Mess) -> dict[str, Document]:
    return {topic: json.loads(run(mess, topic, "--json").stdout) for topic in TOPICS}


@pytest.fixture(scope="module")
def counts(mess: Mess, audits: dict[str, Document]) -> dict[str, list[Counted]]:
    segments = {
        (topic, part["partition"]): mess.segments(topic, part["partition"])
        for topic, audit in audits.items()
        for part in audit["partitions"]
    }
    dumped = dump(chain.from_iterable(segments.values()))
    return {
        topic: [
            Counted(
                dumped[segments[topic, part["partition"]][0].parent],
                log_start=part["log_start"],
                stable=part["stable"],
                end=part["end"],
            )
            for part in audit["partitions"]
        ]
        for topic, audit in audits.items()
    }


@pytest.fixture(params=TOPICS)
def both(
    request: pytest.FixtureRequest, audits: dict[str, Document], counts: dict[str, list[Counted]]
) -> tuple[Document, list[Counted]]:
    return audits[request.param], counts[request.param]


Both = tuple[Document, list[Counted]]


def test_every_offset_is_what_the_dump_says(both: Both) -> None:
    """Takes long: the topics are filled, and the broker's own tool reads them."""
    audit, counted = both
    assert [part["offsets"] for part in audit["partitions"]] == [dumped.offsets() for dumped in counted]
    totals = {name: sum(dumped.offsets()[name] for dumped in counted) for name in audit["offsets"]}
    assert audit["offsets"] == totals


def test_the_tail_holds_what_the_dump_says(both: Both) -> None:
    audit, counted = both
    assert [part["tail"]["records"] for part in audit["partitions"]] == [dumped.tail_records() for dumped in counted]


def test_batches_records_and_bytes_are_those_of_the_dump(both: Both) -> None:
    audit, counted = both
    for part, partition_dump in zip(audit["partitions"], counted, strict=True):
        sizes = sum(batch.number("size") for batch in partition_dump.data)
        assert (part["batches"], part["records"], part["size_bytes"]) == (
            len(partition_dump.data),
            partition_dump.records(),
            sizes,
        )
    codecs = {
        name: tuple(sum(dumped.codecs().get(name, (0, 0, 0))[index] for dumped in counted) for index in range(3))
        for name in {name for dumped in counted for name in dumped.codecs()}
    }
    assert {name: tuple(total.values()) for name, total in audit["batches"]["codecs"].items()} == codecs
    kinds = sum((dumped.kinds() for dumped in counted), Counter[str]())
    assert {name: total["records"] for name, total in audit["batches"]["kinds"].items()} == kinds
    each = [batch.number("count") for dumped in counted for batch in dumped.data]
    spread = audit["batches"]["records_per_batch"]
    assert (spread["count"], spread["total"], spread["least"], spread["most"]) == (
        len(each), sum(each), min(each), max(each),
    )  # fmt: skip
    assert spread["at_most"] == classes(each)


def classes(values: list[int]) -> list[list[int]]:
    histogram = Counter(2 ** value.bit_length() - 1 if value else 0 for value in values)
    return [[bound, histogram[bound]] for bound in sorted(histogram)]


def test_transactions_are_those_of_the_dump(both: Both) -> None:
    audit, counted = both
    ended = [dumped.transactions() for dumped in counted]
    for name in ("committed", "aborted"):
        sizes = [records for of_partition in ended for records in of_partition[name]]
        totals = audit["transactions"][name]
        assert (totals["count"], totals["records"], totals["without_data"]) == (len(sizes), sum(sizes), sizes.count(0))
        assert [part[f"{name}_transactions"] for part in audit["partitions"]] == [
            len(of_partition[name]) for of_partition in ended
        ]


def test_producers_and_their_numbering_are_those_of_the_dump(both: Both) -> None:
    audit, counted = both
    sequences = audit["sequences"]
    identities = {identity for dumped in counted for identity in dumped.sequences()}
    assert sequences["producers"] == len({producer for producer, _ in identities})
    producers = {
        (producer["producer_id"], epoch["epoch"]) for producer in sequences["listed"] for epoch in producer["epochs"]
    }
    assert producers <= identities
    for producer in sequences["listed"]:
        of_it = [
            [
                (epoch, pieces)
                for (producer_id, epoch), pieces in dumped.sequences().items()
                if producer_id == producer["producer_id"]
            ]
            for dumped in counted
        ]
        assert producer["epoch_count"] == max(len(epochs) for epochs in of_it)
        assert producer["batches"] == sum(len(pieces) for epochs in of_it for _, pieces in epochs)


def test_every_listed_epoch_has_the_sequences_of_the_dump(both: Both) -> None:
    audit, counted = both
    for producer in audit["sequences"]["listed"]:
        for epoch in producer["epochs"]:
            pieces = counted[epoch["partition"]].sequences()[producer["producer_id"], epoch["epoch"]]
            assert epoch["first_sequence"] == pieces[0][0]
            highest = max((start - pieces[0][0]) % 2**31 + length - 1 for start, length in pieces)
            assert epoch["last_sequence"] == (pieces[0][0] + highest) % 2**31
            assert epoch["batches"] == len(pieces)


def test_gaps_and_repeats_are_those_of_the_dump_record_by_record(
    audits: dict[str, Document], counts: dict[str, list[Counted]]
) -> None:
    sequences = audits[EVENTS]["sequences"]
    numbering = [dumped.numbering() for dumped in counts[EVENTS]]
    assert {name: sequences[name] for name in ("missing", "repeated", "gaps")} == {
        name: sum(of_partition[name] for of_partition in numbering) for name in ("missing", "repeated", "gaps")
    }
    assert (sequences["gaps"], sequences["missing"], sequences["repeats"], sequences["repeated"]) == (1, 7, 1, 4)
    assert sequences["wraps"] == 1
    compacted = audits[COMPACTED]["sequences"]
    assert (compacted["gaps"], compacted["repeats"], compacted["missing_heads"]) == (0, 0, 0)


def test_leader_epochs_and_times_are_those_of_the_dump(both: Both) -> None:
    audit, counted = both
    for part, partition_dump in zip(audit["partitions"], counted, strict=True):
        spans = [tuple(span.values()) for span in part["leader_epochs"]]
        assert spans == partition_dump.leader_epochs()
    stamps = [int(batch.fields["CreateTime"]) for dumped in counted for batch in dumped.data]
    assert audit["times"]["newest_ms"] == max(stamps)
    assert audit["times"]["late"]["batches"] == sum(dumped.late_batches() for dumped in counted)
    assert sum(records for _, records in audit["times"]["rates"]) == sum(dumped.records() for dumped in counted)


def test_open_and_hanging_transactions_are_distinguished(audits: dict[str, Document]) -> None:
    running = {transaction["transactional_id"]: transaction for transaction in audits[EVENTS]["transactions"]["open"]}
    assert {name: transaction["is_hanging"] for name, transaction in running.items()} == {
        None: True,
        "messy-open": False,
    }
    assert (running[None]["records"], running["messy-open"]["records"]) == (3, 5)
    assert running["messy-open"]["timeout_ms"] == 600_000


def test_the_findings_are_what_was_done_to_the_topic(audits: dict[str, Document]) -> None:
    codes = {topic: {finding["code"] for finding in audit["findings"]} for topic, audit in audits.items()}
    assert {
        "sequence_gap", "sequence_repeat", "missing_head", "hanging_transaction", "open_transaction", "no_numbering",
        "epoch_bumps", "aborted", "expired", "late_timestamps",
    } == codes[EVENTS]  # fmt: skip
    assert codes[COMPACTED] == {"no_gap", "no_numbering", "aborted", "compacted"}


def test_a_part_of_a_topic_is_counted_alike(mess: Mess, counts: dict[str, list[Counted]]) -> None:
    dumped = counts[EVENTS][0]
    lo = dumped.data[3].number("baseOffset") + 5
    (part,) = json.loads(run(mess, EVENTS, "--partition", "0", "--from", str(lo), "--json").stdout)["partitions"]
    assert part["offsets"] == Counted(dumped.all, log_start=lo, stable=dumped.stable, end=dumped.end).offsets() | {
        "expired": 0,
        "span": dumped.stable - lo,
    }


@pytest.mark.extended
def test_a_part_that_begins_inside_a_compacted_batch_is_counted_record_by_record(
    mess: Mess, counts: dict[str, list[Counted]]
) -> None:
    (dumped,) = counts[COMPACTED]
    sparse = next(
        batch
        for batch in dumped.data
        if 1 < batch.number("count") < batch.number("lastOffset") - batch.number("baseOffset")
    )
    lo = int(sparse.records[1]["offset"])
    (part,) = json.loads(run(mess, COMPACTED, "--from", str(lo), "--json").stdout)["partitions"]
    assert part["offsets"] == Counted(dumped.all, log_start=lo, stable=dumped.stable, end=dumped.end).offsets() | {
        "expired": 0,
        "span": dumped.stable - lo,
    }


def test_the_report_for_people_fits_its_page_and_names_what_was_found(mess: Mess) -> None:
    done = run(mess, EVENTS)
    assert done.returncode == 1, done.stderr
    assert max(len(line.rstrip()) for line in done.stdout.splitlines()) <= 100
    assert "1 gap in producers' numbering: at least 7 records are missing" in done.stdout
    assert "A transaction hangs in partition 1" in done.stdout
    assert done.stderr == ""


def test_a_flipped_bit_on_a_broker_s_disk_is_counted_placed_and_not_rounded_to_sound(mess: Mess) -> None:
    done = run(mess, DAMAGED, "--json")
    assert done.returncode == 3, done.stderr
    (part,) = json.loads(done.stdout)["partitions"]
    assert (part["offsets"]["data"], part["offsets"]["undecodable"]) == (20, 10)
    assert part["undecodable"] == [{"offset": 10, "end_offset": 20, "reason": "wrong checksum (CRC-32C)"}]
    trusting = json.loads(run(mess, DAMAGED, "--json", "--no-crc").stdout)
    assert trusting["offsets"]["data"] == 30
    assert not trusting["is_crc_checked"]


def test_exit_codes_say_what_came_of_it(mess: Mess) -> None:
    assert run(mess, COMPACTED).returncode == 0
    assert run(mess, "no-such-topic").returncode == 2
    assert run(mess, EVENTS, "--partition", "7").returncode == 2
    command = [str(_MAKEWHOLE), "audit", EVENTS]
    assert subprocess.run([*command], capture_output=True, timeout=60).returncode == 2
