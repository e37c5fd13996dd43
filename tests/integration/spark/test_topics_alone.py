"""Test windows over topics that no hop joins: their records are held to each other by key, or by sequence."""

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.gate import GateAnswer
from makewhole.model.incident import IncidentKind
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.window import WindowState
from makewhole.stack.kafka_server import KafkaServer
from makewhole.window.context import WindowContext
from tests.integration.spark.test_survivors import repair
from tests.lab import raw
from tests.world.orders import BORN, DAY, orders
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

FORGETFUL = {"producer.id.expiration.ms": 500, "producer.id.expiration.check.interval.ms": 50}
"""Settings of brokers that forget a producer at once when its records are old, and take what it sends again."""
FILE = """\
version: 2
pipeline: shop
start: earliest
settle: 0s
reach: log
compare: {{amount: "decimal(8,2)"}}
{settings}
points:
  orders: {{kind: topic, connection: log, topic: {topic}{point}}}
{more}
"""
_TOMBSTONE = 4


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A broker of this module's own."""
    server = KafkaServer(tmp_path_factory.mktemp("forgetful"), settings=FORGETFUL)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def describe(shop: ReconciledShop, point: str = "", settings: str = "", more: str = "") -> None:
    shop.file.write_text(FILE.format(topic=shop.topic, point=point, settings=settings, more=more))


def send_numbered(
    shop: ReconciledShop, numbers: Sequence[int], producer: raw.ProducerId, sequence: int = 0, day: int = 0
) -> None:
    """Send a batch of an idempotent producer, which the broker has forgotten; the last of five has no value."""
    port = int(shop.bootstrap.rpartition(":")[2])
    deadline = time.monotonic() + 30
    while raw.producers(port, shop.topic, 0):
        assert time.monotonic() < deadline, "the broker has not forgotten its producers"
        time.sleep(0.05)
    values = [(b"k", None if number == _TOMBSTONE else json.dumps(order).encode())
              for number, order in zip(numbers, orders(numbers, day), strict=True)]  # fmt: skip
    moment = int((BORN + (day + 0.5) * DAY).timestamp() * 1000)
    raw.produce(port, shop.topic, 0, raw.batch(values, producer=producer, base_sequence=sequence, timestamp_ms=moment))


def new_producer(shop: ReconciledShop) -> raw.ProducerId:
    return raw.init_producer_id(int(shop.bootstrap.rpartition(":")[2]))


def repeated(shop: ReconciledShop, context: WindowContext) -> dict[str, Any]:
    with connect(shop.journal) as journal:
        (own,) = [
            incident
            for incident in incidents.of(journal, context.window)
            if incident.kind is IncidentKind.REPEATED_KEYS
        ]
    return {**own.detail, "sentence": incident_sentence(own)}


def test_a_topic_without_a_key_is_deduplicated_by_sequence(shop: ReconciledShop) -> None:
    """The five records of a request that was sent twice, one of them without a value, are there twice each; of another
    session the same numbers are other records. A later window holds its records to those of this one."""
    describe(shop)
    careless, careful = new_producer(shop), new_producer(shop)
    send_numbered(shop, range(5), careless)
    send_numbered(shop, range(5), careful)
    send_numbered(shop, range(5), careless)

    context, closed = shop.whole_way()

    repeats = repeated(shop, context)
    assert {
        name: repeats[name] for name in ("keys", "resend", "conflict", "records", "by_sequence", "not_numbered")
    } == {
        "keys": 5,
        "resend": 5,
        "conflict": 0,
        "records": 5,
        "by_sequence": True,
        "not_numbered": 0,
    }
    first = next(key for key in repeats["first"] if json.loads(key["key"])[3] == "0")
    assert json.loads(first["key"]) == [str(careless.id), "0", "0", "0"]
    assert (first["places"], first["before"]) == (["0:0", "0:10"], [])
    assert repeats["sentence"].startswith(f"5 sequences of {shop.topic} have several records each: 5 sent again ")
    assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)
    assert closed.certificate is not None
    assert closed.certificate.body["hops"]["orders"]["source_keys"] == 10
    assert closed.certificate.body["reach"]["chains"] == [{"points": ["orders"], "from": "log"}]
    limits = [limit["limit"] for limit in closed.certificate.body["reach"]["cannot_exclude"]]
    assert limits == ["not_in_log", "not_joined"]

    send_numbered(shop, range(2, 4), careless, sequence=2, day=1)
    later, closed = shop.whole_way(1)
    repeats = repeated(shop, later)
    assert (repeats["keys"], repeats["records"], closed.state) == (2, 2, WindowState.CERTIFIED)
    assert [(key["places"], key["before"]) for key in repeats["first"]] == [(["0:15"], ["0:2"]), (["0:16"], ["0:3"])]


def test_a_record_without_a_producer_id_is_not_known_to_be_the_first(shop: ReconciledShop) -> None:
    """Where second records are only reported, this is reported, too; where they are refused, nothing is proven."""
    describe(shop)
    shop.send(orders(range(3)))
    send_numbered(shop, range(5, 7), new_producer(shop))

    context, closed = shop.whole_way()

    says = (
        f"no sequence of {shop.topic} has a second record; 3 records of {shop.topic} have no sequence, as the producer "
        "is not idempotent: whether the same was sent before is not known"
    )
    assert (repeated(shop, context)["sentence"], closed.state) == (says, WindowState.CERTIFIED)
    assert shop.accounting(context) == {"span": 5, "data": 2, "undecodable": 3} | dict.fromkeys(
        ("control", "aborted", "compacted", "expired"), 0
    )
    shown = CliRunner().invoke(app, ["windows", "shop"], env={"COLUMNS": "400"})
    assert says in shown.output
    assert "orders: 2 keys in 2 records" in shown.output

    describe(shop, ", duplicates: refused")
    _, closed = shop.whole_way()
    assert closed.state is WindowState.NOT_KNOWN
    assert f"3 records of {shop.topic} have no sequence" in str(closed.reason)


def test_second_records_that_are_refused_are_gaps(shop: ReconciledShop) -> None:
    describe(shop, ", duplicates: refused")
    careless = new_producer(shop)
    send_numbered(shop, range(3), careless)
    _, closed = shop.whole_way()
    assert closed.state is WindowState.CERTIFIED

    send_numbered(shop, range(1), careless, day=1)
    context, closed = shop.whole_way(1)
    assert closed.state is WindowState.GAPS
    assert f"1 sequence of {shop.topic} has several records: 1 sent again with the same values" in str(closed.reason)
    again, closed = shop.whole_way(1)
    assert (again.window.revision, closed.state, repeated(shop, again)["keys"]) == (2, WindowState.GAPS, 1)
    assert repeated(shop, again)["first"] == repeated(shop, context)["first"]


def test_a_topic_alone_has_a_business_key_too_and_another_value_is_a_conflict(shop: ReconciledShop) -> None:
    describe(shop, ', key: "$.id"')
    made = orders(range(4))
    shop.send([*made, made[1], made[2] | {"amount": "77.00"}])
    context, closed = shop.whole_way()
    repeats = repeated(shop, context)
    assert (repeats["resend"], repeats["conflict"], closed.state) == (1, 1, WindowState.CERTIFIED)
    assert "by_sequence" not in repeats
    shown = CliRunner().invoke(app, ["explain", "shop", "O2"], env={"COLUMNS": "300"})
    assert (shown.exit_code, shown.output.count("77.00")) == (0, 1)
    shown = CliRunner().invoke(app, ["findings", "shop"], env={"COLUMNS": "300"})
    assert shown.exit_code == 0


@pytest.mark.parametrize("is_allowed", [False, True])
def test_an_empty_topic_passes_only_where_the_file_permits_it(shop: ReconciledShop, is_allowed: bool) -> None:
    describe(shop, settings="gate: {allow_empty: true}" if is_allowed else "")
    _, closed = shop.whole_way()
    assert closed.state is (WindowState.CERTIFIED if is_allowed else WindowState.NOT_KNOWN)
    if not is_allowed:
        assert "orders is empty in this window, and silence is not proof" in str(closed.reason)


def test_offsets_that_were_gone_before_they_were_read_are_not_known(shop: ReconciledShop) -> None:
    describe(shop)
    send_numbered(shop, range(5), new_producer(shop))
    context = shop.open()
    shop.delete_records({0: 3})
    shop.judge(context)
    shop.validate(context)
    closed = shop.certify(context)
    assert closed.state is WindowState.NOT_KNOWN
    assert "3 offsets" in str(closed.reason)


def test_a_topic_alone_is_judged_beside_hops_and_changes_nothing_of_them(shop: ReconciledShop) -> None:
    name = shop.add_topic()
    hops = f"""\
  source: {{kind: topic, connection: log, topic: {name}, key: "$.id"}}
  warehouse: {{kind: store, connection: db, table: warehouse, key: id}}
hops:
  - {{from: source, to: warehouse, write: {{number: int, region: string, at: timestamp}},
      compensation: {{missing: upsert}}}}
compensation: {{limits: {{share: 1.0}}}}
"""
    describe(shop, ", duplicates: report", more=hops)
    careless = new_producer(shop)
    send_numbered(shop, range(3), careless)
    send_numbered(shop, range(3), careless)
    made, own = orders(range(4)), shop.topic
    shop.topic = name
    shop.send(made)
    shop.topic = own
    shop.write("warehouse", made[1:])

    context = shop.judged()
    report = shop.validate(context)
    closed = shop.certify(context)

    assert (repeated(shop, context)["keys"], report.answer, closed.state) == (3, GateAnswer.FAIL, WindowState.GAPS)
    assert shop.found(context, "source→warehouse") == {"O0": ("missing", "lost_after_topic")}
    again = shop.judge_and_ask_the_gate()
    assert repair(shop, again).state is WindowState.CERTIFIED
    assert shop.sql("select count(*) from warehouse") == [(4,)]
