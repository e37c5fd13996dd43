"""Test the example of coupons on real servers: granted by a consumer that dies, and taken back once by its own file."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition

from makewhole.compensation.approval.answer import Answer, Decision, record_answer
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import PlanState
from makewhole.model.window import WindowState
from makewhole.stack.environment import connection_kafka, connection_postgres
from makewhole.stack.kafka_server import KafkaServer
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext, find_pipeline, window_context
from makewhole_spark.carrier import Carrier
from tests.world.consumer import committed, consumer, read_to_end
from tests.world.environment import enter, service_environment, set_connection
from tests.world.kept_sessions import kept_sessions
from tests.world.topics import delete_topics, make_topic, producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FILE = Path(__file__).parents[3] / "examples" / "coupons" / "coupons.yaml"
COUPONS, RETRIES, REVERSALS, GROUP = "coupons", "coupons-retry", "coupon-reversals", "loyalty"
NUMBER = 6_000
"""So many that the file's limit (a thousandth of the keys) allows the actions of this test."""
TABLES = (
    "create schema shop; create schema loyalty;"
    "create table shop.coupons (coupon_id text primary key, amount numeric(8,2), recorded_at timestamptz, body json);"
    "create table loyalty.grants (grant_id int generated always as identity (start with 4711), coupon_id text, "
    "amount numeric(8,2), granted_at timestamptz default now());"
    "create index on loyalty.grants (coupon_id); create index on loyalty.grants (granted_at);"
    "create index on shop.coupons (recorded_at)"
)


@dataclass(kw_only=True)
class Coupons(ReconciledShop):
    """The shop that gives coupons, and the service that grants them."""

    @property
    def pipeline(self) -> Pipeline:
        return find_pipeline("coupons")

    def give(self, number: int, unsent: frozenset[str]) -> None:
        """Write coupons down and send them, but for some that are never sent."""
        recorded = datetime.now(UTC)
        made = [{"coupon_id": f"C-{at:05d}", "amount": at % 90 + 0.5} for at in range(number)]
        self.sql(
            "insert into shop.coupons select r->>'coupon_id', (r->>'amount')::numeric, %s, r "
            "from json_array_elements(%s::json) r",
            recorded,
            json.dumps(made),
        )
        client = producer(self.bootstrap, linger_ms=5)
        for coupon in made:
            if coupon["coupon_id"] not in unsent:
                client.produce(COUPONS, key=str(coupon["coupon_id"]), value=json.dumps(coupon))
        assert client.flush(30) == 0

    def grant(self, topic: str = COUPONS, *, most: int = NUMBER, dies: str = "", skips: int = 0) -> None:
        """Grant what the group has not consumed yet, at most so many. `dies`: it writes and does not `commit`, or
        commits and does not `write`. The first `skips` are only committed."""
        with consumer(self.bootstrap, GROUP) as client:
            asked = [TopicPartition(topic, 0)]
            reached = max(0, committed(client, asked)[0].offset)
            messages = list(read_to_end(client, topic, {0: reached}))[:most]
            rows = [json.loads(message.value() or b"null") for message in messages[skips:]]
            if dies != "write":
                self.sql(
                    "insert into loyalty.grants (coupon_id, amount) select r->>'coupon_id', (r->>'amount')::numeric "
                    "from json_array_elements(%s::json) r",
                    json.dumps(rows),
                )
            if dies != "commit" and messages:
                end = (messages[-1].offset() or 0) + 1
                client.commit(offsets=[TopicPartition(topic, 0, end)], asynchronous=False)

    def judged_until(self, end: datetime) -> WindowContext:
        """Judge the window that ends at a moment, when the settle time is over; again: a revision of it."""
        is_first = self.journal_sql("select count(*) from makewhole.window") == [(0,)]
        context = window_context(self.ask(end=end).window, self.pipeline)
        if is_first:
            self.let_pass(timedelta(minutes=11))
        self.judge(context)
        self.validate(context)
        return context

    def taken_back(self) -> list[dict[str, Any]]:
        """Return the events that take grants back."""
        return [record.document for record in self.read(REVERSALS)]

    def granted(self) -> list[tuple[Any, ...]]:
        """Return every grant."""
        return self.sql("select * from loyalty.grants order by grant_id")


@pytest.fixture
def coupons(
    carrier: Carrier, kafka: KafkaServer, database: str, journal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Coupons]:
    """An empty system, and the example's own file."""
    made = Coupons(carrier=carrier, bootstrap=kafka.bootstrap, dsn=database, journal=journal, folder=tmp_path)
    enter(monkeypatch, service_environment(made, tmp_path))
    set_connection(monkeypatch, "kafka_main", connection_kafka(kafka.bootstrap))
    for name in ("shop_db", "loyalty_db"):
        set_connection(monkeypatch, name, connection_postgres(database))
    (tmp_path / "pipelines" / FILE.name).write_text(FILE.read_text("utf-8"))
    made.sql(TABLES)
    topics = (COUPONS, RETRIES, REVERSALS)
    for topic in topics:
        make_topic(made.admin, topic)
    with kept_sessions():
        yield made
    delete_topics(made.admin, topics)
    with suppress(KafkaException):  # there is none where nothing was granted
        made.delete_group(GROUP)


def repaired(coupons: Coupons, context: WindowContext, **actions: int) -> ClosedWindow:
    """Repair by the window's plan, which waits for an answer of `loyalty`; what was sent again is granted."""
    frozen = plan_window(context)
    assert (frozen.plan and frozen.plan.counts, frozen.refusals) == (actions, ())
    assert frozen.plan is not None
    assert frozen.plan.state is PlanState.AWAITING_APPROVAL
    answer = Answer(sha256=frozen.plan.sha256, decision=Decision.APPROVED, by="loyalty")
    record_answer(coupons.journal, frozen.plan.id, answer, context.pipeline.approval)
    compensate_window(context, lambda _: None)
    for topic in (COUPONS, RETRIES):
        coupons.read(topic)  # its transactions have ended
        coupons.grant(topic)
    verify_window(context, lambda *_: None, patience_seconds=0)
    return coupons.certify(context)


def test_coupons_that_were_granted_twice_or_never_are_made_right_once(coupons: Coupons) -> None:
    """Takes long: six thousand coupons, so that the file's own limit holds."""
    coupons.give(NUMBER, unsent=frozenset({"C-00100"}))
    coupons.grant(most=1000)
    coupons.grant(most=2, dies="commit")  # these two are granted again when it has started again
    coupons.grant(most=2000)
    coupons.grant(most=1, dies="write")  # this one is never granted
    coupons.grant()
    before = coupons.granted()

    context = coupons.judged_until(datetime.now(UTC))

    twice, lost = ["C-01001", "C-01002"], "C-03001"
    assert coupons.found(context, "shop→coupons") == {"C-00100": ("missing", "never_produced")}
    assert coupons.found(context, "coupons→grants") == {
        **dict.fromkeys(twice, ("duplicate", "written_before_committed")),
        lost: ("missing", "committed_before_written"),
    }
    closed = repaired(coupons, context, produce=1, redeliver=1, reverse=2)
    assert closed.state is WindowState.CERTIFIED, closed.reason
    assert coupons.outcomes(context) == {
        "C-00100": "repaired",
        lost: "repaired",
        twice[0]: "reversed",
        twice[1]: "reversed",
    }
    assert coupons.granted()[: len(before)] == before  # no grant was taken out of the ledger
    events = sorted(coupons.taken_back(), key=lambda event: str(event["coupon_id"]))
    assert [(event["type"], event["coupon_id"], event["reason"]) for event in events] == [
        ("coupon_reversed", key, "granted 2 times") for key in twice
    ]
    of_second = {row[1]: (row[0], -float(row[2])) for row in before if row[1] in twice}  # the later one of each
    assert {event["coupon_id"]: (event["grant_id"], event["amount"]) for event in events} == of_second

    again = coupons.judged_until(context.window.end)
    assert again.window.revision == 2
    assert plan_window(again).plan is None
    verify_window(again, lambda *_: None, patience_seconds=0)
    assert {coupons.outcome_of(again, "coupons→grants", key)[0] for key in twice} == {"reversed"}
    assert coupons.certify(again).state is WindowState.CERTIFIED
    assert len(coupons.taken_back()) == 2


def test_only_loyalty_may_answer(coupons: Coupons) -> None:
    coupons.give(2000, unsent=frozenset())
    coupons.grant(most=1, dies="commit")
    coupons.grant()
    context = coupons.judged_until(datetime.now(UTC))
    frozen = plan_window(context)
    assert frozen.plan is not None
    answer = Answer(sha256=frozen.plan.sha256, decision=Decision.APPROVED, by="anna")
    with pytest.raises(RefusedError):
        record_answer(coupons.journal, frozen.plan.id, answer, context.pipeline.approval)
    assert coupons.taken_back() == []
