"""Judge what copiers from topic to topic leave behind, with what Kafka's own log of commits says of them.

The copiers are played record by record: what a whole one does when it is killed is in the lab.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

import makewhole_spark.reconcile.gather.copier as gathered_copier
from makewhole.cli.documents import window_document
from makewhole.compute.judge.copier_commits import COPIER
from makewhole.journal.database import connect
from makewhole.journal.results import hop_results
from makewhole.model.errors import PermanentError
from makewhole.window.context import WindowContext
from makewhole.window.readers.copier_text import copier_sentence
from tests.world.consumer import consumer
from tests.world.orders import Order, milliseconds, orders
from tests.world.pipeline_file import ledger, pipeline_file, topic
from tests.world.topics import commit_group, left_open, producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

HOP = "orders→copies"


class _Copies:
    """A shop whose topic is copied; the copies and the commits are the test's to make."""

    def __init__(self, shop: ReconciledShop, made: Sequence[Order]) -> None:
        self.shop, self.made, self.group = shop, made, f"copier-{shop.topic}"
        self.target = shop.add_topic()
        self.describe()
        shop.write("outbox", made)
        shop.send(made)

    def describe(self) -> None:
        text = pipeline_file(
            "shop",
            points={
                "outbox": ledger("db", "outbox"),
                "orders": topic("log", self.shop.topic),
                "copies": topic("log", self.target),
            },
            hops=[
                {"from": "outbox", "to": "orders"},
                {"from": "orders", "to": "copies", "consumer_group": self.group},
            ],
            settings={"start": "earliest", "settle": "0s"},
            columns={},
        )
        self.shop.file.write_text(text)

    def session(self, name: str | None = None) -> Producer:
        """A producer as a copier has it; `name` None: without transactions."""
        transactional = {} if name is None else {"transactional_id": f"{name}-{self.target}", "log_level": 0}
        client = producer(self.shop.bootstrap, enable_idempotence=True, **transactional)
        if name is not None:
            client.init_transactions(30)
        return client

    def copy(self, client: Producer, some: Sequence[Order]) -> None:
        """Write copies, and wait until they are there."""
        for order in some:
            client.produce(
                self.target,
                key=order["id"],
                value=json.dumps(order),
                partition=0,
                timestamp=milliseconds(order["at"]),
            )
        assert client.flush(30) == 0

    def transaction(self, client: Producer, some: Sequence[Order], *, offset: int | None, commits: bool = True) -> None:
        """Copy in a transaction, with the group's offset in it if there is one."""
        client.begin_transaction()
        self.copy(client, some)
        if offset is not None:
            with consumer(self.shop.bootstrap, self.group) as reader:
                reader.assign([TopicPartition(self.shop.topic, 0)])
                wanted = [TopicPartition(self.shop.topic, 0, offset)]
                client.send_offsets_to_transaction(wanted, reader.consumer_group_metadata(), 30)
        client.commit_transaction(30) if commits else client.abort_transaction(30)
        left_open(self.shop.bootstrap, self.target)

    def commit(self, offset: int) -> None:
        """Commit outside of any transaction."""
        commit_group(self.shop.bootstrap, self.group, self.shop.topic, offset)

    def copier(self, context: WindowContext) -> dict[str, Any]:
        with connect(self.shop.journal) as journal:
            return dict(hop_results.results(journal, context.window)[HOP].files[COPIER])


@pytest.fixture
def copies(shop: ReconciledShop) -> _Copies:
    return _Copies(shop, orders(range(10)))


def test_offsets_in_the_transactions_are_said_with_their_ranges(copies: _Copies) -> None:
    client = copies.session("one")
    copies.transaction(client, copies.made[:4], offset=4)
    copies.transaction(client, copies.made[4:], offset=9, commits=False)
    copies.transaction(client, copies.made[4:], offset=10)

    context = copies.shop.judged()

    assert copies.shop.found(context, HOP) == {}
    known = copies.copier(context)
    assert (known["within"], known["outside"]) == (2, 0)
    assert [(commit["lo"], commit["hi"]) for commit in known["commits"]] == [(0, 4), (4, 10)]
    assert len({(commit["producer_id"], commit["producer_epoch"]) for commit in known["commits"]}) == 1
    assert copier_sentence(known) == (
        f"group `{copies.group}` commits its offsets in its transactions (2 commits known)"
    )
    with connect(copies.shop.journal) as journal:
        document = window_document(journal, context.window)
    assert [hop.get("copier") for hop in document["hops"]] == [known, None]


def test_what_was_committed_before_an_aborted_transaction_was_committed_before_it_was_written(
    copies: _Copies,
) -> None:
    client = copies.session("one")
    copies.transaction(client, copies.made[:4], offset=4)
    copies.commit(7)
    copies.transaction(client, copies.made[4:7], offset=None, commits=False)
    copies.transaction(client, copies.made[7:], offset=10)

    context = copies.shop.judged()

    keys = ("O4", "O5", "O6")
    assert copies.shop.found(context, HOP) == dict.fromkeys(keys, ("missing", "committed_before_written"))
    (commit,) = copies.shop.evidence(context, HOP, "O5")["copier_commits"]
    assert (commit["partition"], commit["lo"], commit["hi"], commit["producer_id"]) == (0, 4, 7, None)


def test_what_a_transaction_passed_without_a_copy_was_not_committed_before_it_was_written(copies: _Copies) -> None:
    client = copies.session("one")
    copies.transaction(client, copies.made[:8], offset=10)

    context = copies.shop.judged()

    assert copies.shop.found(context, HOP) == dict.fromkeys(("O8", "O9"), ("missing", "never_produced"))
    (commit,) = copies.shop.evidence(context, HOP, "O8")["copier_commits"]
    assert (commit["lo"], commit["hi"]) == (0, 10)
    assert commit["producer_id"] is not None


def test_one_record_in_two_sessions_whose_offsets_came_later_was_written_before_they_were_committed(
    copies: _Copies,
) -> None:
    copies.transaction(copies.session("one"), copies.made[:4], offset=None)
    copies.transaction(copies.session("two"), copies.made, offset=None)
    copies.commit(10)

    context = copies.shop.judged()

    doubled = dict.fromkeys(("O0", "O1", "O2", "O3"), ("duplicate", "written_before_committed"))
    assert copies.shop.found(context, HOP) == doubled


def test_copies_of_a_set_back_group_with_its_offsets_in_its_transactions_are_not_said_to_be_of_late_commits(
    copies: _Copies,
) -> None:
    copies.transaction(copies.session("one"), copies.made, offset=10)
    copies.commit(6)
    copies.transaction(copies.session("two"), copies.made[6:], offset=10)

    context = copies.shop.judged()

    again = dict.fromkeys(("O6", "O7", "O8", "O9"), ("duplicate", "application_resend"))
    assert copies.shop.found(context, HOP) == again
    known = copies.copier(context)
    assert (known["within"], known["outside"]) == (2, 1)
    assert [(commit["lo"], commit["hi"]) for commit in known["commits"]] == [(0, 10), (10, 6), (6, 10)]


def test_copies_of_several_records_are_not_the_copiers_doing(copies: _Copies) -> None:
    copies.shop.send(copies.made[:2], settings={"enable.idempotence": True})
    copies.copy(copies.session(), copies.made)
    copies.copy(copies.session(), copies.made[:2])
    copies.commit(12)

    context = copies.shop.judged()

    assert copies.shop.found(context, HOP) == dict.fromkeys(("O0", "O1"), ("duplicate", "application_resend"))


def test_two_copies_of_one_session_are_not_said_to_be_of_late_commits(copies: _Copies) -> None:
    client = copies.session()
    copies.copy(client, copies.made)
    copies.copy(client, copies.made[:1])
    copies.commit(10)

    assert copies.shop.found(copies.shop.judged(), HOP) == {"O0": ("duplicate", "application_resend")}


def test_verdicts_are_the_same_where_the_log_of_commits_may_not_be_read(
    copies: _Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = "Kafka gave no description of topic __consumer_offsets: TopicAuthorizationFailedError"

    def refused(*_: object, **__: object) -> None:
        raise PermanentError(refusal)

    monkeypatch.setattr(gathered_copier, "group_commits", refused)
    client = copies.session("one")
    copies.transaction(client, copies.made[:4], offset=4)
    copies.commit(7)
    copies.transaction(client, copies.made[4:7], offset=None, commits=False)
    copies.transaction(client, copies.made[7:], offset=10)

    context = copies.shop.judged()

    missing = dict.fromkeys(("O4", "O5", "O6"), ("missing", "aborted_transaction"))
    assert copies.shop.found(context, HOP) == missing
    assert "copier_commits" not in copies.shop.evidence(context, HOP, "O4")
    assert copies.copier(context) == {"group": copies.group, "unknown": refusal}
    assert copier_sentence(copies.copier(context)) == (
        f"how group `{copies.group}` commits its offsets is not known: {refusal}"
    )
