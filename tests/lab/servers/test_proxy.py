"""Test that the lab's proxy does to requests what its rules say, and nothing to the others."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from random import Random

import pytest

from makewhole.stack.ports import LOOPBACK, free_ports
from tests.lab.servers.proxy import Api, Fault, Proxy, Rule

pytestmark = pytest.mark.lab

_TIMEOUT_SECONDS = 10


class Broker:
    """Answers every request with its correlation id, and remembers them in the order they came."""

    def __init__(self, port: int) -> None:
        self.seen: list[int] = []
        self._server = socket.create_server((LOOPBACK, port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            while len(request := receive(client)) > 0:
                self.seen.append(int.from_bytes(request[4:8], "big"))
                client.sendall((4).to_bytes(4, "big") + request[4:8])

    def close(self) -> None:
        self._server.close()


def receive(connection: socket.socket) -> bytes:
    """One frame; nothing when the other side has closed."""
    try:
        length = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
        return connection.recv(length, socket.MSG_WAITALL) if length else b""
    except ConnectionResetError:
        return b""


System = tuple[Proxy, Broker, Callable[[], socket.socket]]


@pytest.fixture
def system() -> Iterator[System]:
    """A proxy, the broker behind it, and a way to connect a client."""
    front, back = free_ports(2)
    proxy, broker = Proxy({front: back}), Broker(back)
    proxy.start()
    with closing(broker):
        yield proxy, broker, lambda: socket.create_connection((LOOPBACK, front), timeout=_TIMEOUT_SECONDS)
        proxy.stop()


def ask(client: socket.socket, api: Api, number: int) -> int | None:
    """The number that is answered; None when the connection was cut."""
    request = int(api).to_bytes(2, "big") + (0).to_bytes(2, "big") + number.to_bytes(4, "big") + b"body"
    client.sendall(len(request).to_bytes(4, "big") + request)
    answer = receive(client)
    return int.from_bytes(answer, "big") if answer else None


def test_a_lost_answer_belongs_to_a_request_that_the_broker_has_done(system: System) -> None:
    proxy, broker, connect = system
    rule = proxy.add(Rule(api=Api.PRODUCE, fault=Fault.LOSE_ANSWER, first=2))
    with connect() as client:
        assert ask(client, Api.PRODUCE, 1) == 1
        assert ask(client, Api.FETCH, 2) == 2
        assert ask(client, Api.PRODUCE, 3) is None
    with connect() as client:
        assert ask(client, Api.PRODUCE, 4) == 4
    assert broker.seen == [1, 2, 3, 4]
    assert (rule.seen, rule.hits, rule.done) == (3, 1, 1)


def test_a_request_that_is_cut_never_reaches_the_broker(system: System) -> None:
    proxy, broker, connect = system
    proxy.add(Rule(api=Api.PRODUCE, fault=Fault.CUT))
    with connect() as client:
        assert ask(client, Api.PRODUCE, 1) is None
    with connect() as client:
        assert ask(client, Api.PRODUCE, 2) == 2
    assert broker.seen == [2]


def test_a_held_request_reaches_the_broker_after_its_client_has_gone(system: System) -> None:
    proxy, broker, connect = system
    rule = proxy.add(Rule(api=Api.END_TXN, fault=Fault.HOLD))
    with connect() as gone:
        gone.settimeout(0.2)
        with pytest.raises(TimeoutError):
            ask(gone, Api.END_TXN, 1)
    rule.wait_until_hit()
    with connect() as client:
        assert ask(client, Api.END_TXN, 2) == 2
    rule.release()
    rule.wait_until_done()
    assert broker.seen == [2, 1]


def test_nothing_comes_out_of_a_black_hole_until_it_is_reopened(system: System) -> None:
    proxy, broker, connect = system
    with connect() as client:
        assert ask(client, Api.PRODUCE, 1) == 1
        proxy.black_hole()
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            ask(client, Api.PRODUCE, 2)
        assert broker.seen == [1]
        client.settimeout(_TIMEOUT_SECONDS)
        proxy.reopen()
        assert int.from_bytes(receive(client), "big") == 2


def test_a_rule_of_chance_hits_the_same_requests_with_the_same_seed() -> None:
    frame = bytes(8)

    def hits() -> list[bool]:
        rule = Rule(api=Api.PRODUCE, fault=Fault.CUT, times=None, chance=0.3, random=Random(7))
        return [rule.takes(frame) for _ in range(100)]

    assert hits() == hits()
    assert 10 < sum(hits()) < 50
