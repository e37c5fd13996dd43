"""Send again what may be in the log, as clients and applications do (rows 84, 86, 87)."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from tests.lab import naive, raw
from tests.lab.processes.sender import FAILED, WRITTEN, Way, send
from tests.lab.processes.steps import Step
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import (
    IN_ONE_REQUEST,
    NOT_TRIED_AGAIN,
    batches_of_a_day,
    contained,
    fail,
    flat,
    reports,
    sent_twice,
    whole_day,
)
from tests.lab.servers.cluster import BROKERS
from tests.lab.servers.proxy import Api, Fault, Rule
from tests.world.orders import Order


@scenario(
    row=84,
    name="Failed sends that the application sends again",
    happens=(
        "The same failures, and an application that waits for its reports and sends again what failed. What had "
        "arrived all the same is there twice."
    ),
    made=(
        "As before, sync; the loader inserts whatever it reads. `duplicate: quarantine` at the store, and then the "
        "repair is taken back."
    ),
    why=(
        "The copies have no producer id: no broker could know. What is in a topic stays there; the finding is "
        "contained when every store behind it has one row."
    ),
)
def failures_sent_again(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    batches = batches_of_a_day(lab, least=4)
    cut, unanswered = lab.random.sample(range(len(batches)), 2)
    # Whichever batch fails first is sent once more before the other one's turn.
    fail(lab, cut + 1 + (unanswered < cut), unanswered + 1 + (cut < unanswered))
    way = Way(settings={**NOT_TRIED_AGAIN, "acks": "all"}, sends_again=True)
    send(shop, batches, way, bootstrap=lab.cluster.proxied_bootstrap)
    shop.load()
    made, again = flat(batches), batches[unanswered]
    return contained(shop, made, again, "retry_without_idempotence", truth=sent_twice(made, again))


@scenario(
    row=86,
    name="A retry by an idempotent producer",
    happens="The answer to a produce request is lost, and an idempotent producer sends the batch again.",
    made=(
        "`enable.idempotence=true`; a proxy loses one answer to a produce request and cuts the connection. The topic "
        "has the brokers' clock (`LogAppendTime`), so that its records are of now."
    ),
    why="The broker knows the producer's sequence and takes the batch once. Each record is there once.",
)
def idempotent_retry(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(topic={"message_timestamp_type": "LogAppendTime"})
    made, again, reports = _retried(lab)
    context = shop.open_until(datetime.now(UTC))
    return Outcome(
        truth=f"Here {len(made)} orders were sent, {len(again)} of them by two requests.",
        naive=(reports,),
        windows=(Window(judged=shop.close(context), expected=whole_day(made)),),
    )


@scenario(
    row=86,
    name="A retry by an idempotent producer that sends old records",
    happens=(
        "The same in a backfill. Brokers forget a producer by the time of its records, not by the clock: one whose "
        "records are older than `producer.id.expiration.ms` is forgotten at once, and its retry is taken for new."
    ),
    made=(
        "As before, with records that are older than the 24 days for which these brokers remember producers. "
        "`duplicate: quarantine`, and then the repair is taken back."
    ),
    why=(
        "The same producer id, epoch and sequence are there twice. Idempotence does not protect a backfill: the "
        "business key does."
    ),
)
def retry_of_old_records(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    made, again, _ = _retried(lab, is_forgotten=True)
    return contained(shop, made, again, "sequence_repeated", truth=sent_twice(made, again))


def _retried(lab: Lab, *, is_forgotten: bool = False) -> tuple[list[Order], list[Order], Naive]:
    """Send orders by an idempotent producer, one batch of them by two requests, and load what is in the topic.
    `is_forgotten`: the second request comes when the broker has forgotten the producer."""
    shop, batches = lab.shop, batches_of_a_day(lab)
    hit = lab.random.randrange(len(batches))
    lost = lab.cluster.proxy.add(Rule(api=Api.PRODUCE, fault=Fault.LOSE_ANSWER, first=hit + 1))
    second = lab.cluster.proxy.add(Rule(api=Api.PRODUCE, fault=Fault.HOLD, first=hit + 2))
    way = Way(settings={**IN_ONE_REQUEST, "enable_idempotence": True})
    with ThreadPoolExecutor() as sender:
        sending = sender.submit(send, shop, batches, way, bootstrap=lab.cluster.proxied_bootstrap)
        second.wait_until_hit()
        assert lost.done == 1
        if is_forgotten:
            leader = lab.cluster.port(lab.cluster.leader(shop.topic))
            lab.cluster.wait("the producer to be forgotten", lambda: not raw.producers(leader, shop.topic, 0))
        second.release()
        steps = sending.result()
    shop.load()
    return flat(batches), batches[hit], reports(steps, naive.WELL)


@scenario(
    row=87,
    name="Too few replicas in sync, and a send that fails",
    happens=(
        "The followers hang, and a producer with `acks=all` waits for them in vain: its send fails. The leader has "
        "written the records all the same, and when the followers are back they are in the log. The application sends "
        "them again."
    ),
    made=(
        "SIGSTOP of the followers, a send with a short `message.timeout.ms`, SIGCONT; the application sends again what "
        "failed. With idempotence or without, by the seed. `duplicate: quarantine`, and then the repair is taken back."
    ),
    why=(
        "A send that failed may be in the log. Whether it is, is read and not concluded: each record that is there "
        "twice is found by its key."
    ),
)
def failed_and_there(lab: Lab) -> Outcome:
    shop, cluster = lab.shop.open_shop(), lab.cluster
    batches = batches_of_a_day(lab)
    hit, is_idempotent = lab.random.randrange(1, len(batches)), lab.random.random() < 0.5
    followers = cluster.followers(shop.topic)
    settings = {"linger_ms": 1000, "enable_idempotence": is_idempotent, "acks": "all", "message_timeout_ms": 1500}

    def at(step: Step) -> None:
        if (step.batch, step.name) == (hit, WRITTEN):
            cluster.pause(*followers)
        if (step.batch, step.name) == (hit, FAILED):
            cluster.resume(*followers)
            cluster.wait_for_isr(shop.topic, 0, BROKERS)

    send(shop, batches, Way(settings=settings, sends_again=True), at=at)
    shop.load()
    made, again = flat(batches), batches[hit]
    cause = "application_resend" if is_idempotent else "retry_without_idempotence"
    return contained(shop, made, again, cause, truth=sent_twice(made, again))
