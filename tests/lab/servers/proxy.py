"""Lose, hold and cut requests to Kafka by their API key: a TCP proxy on loopback that understands Kafka's framing.

Brokers advertise the proxy's ports on a listener of their own, so nothing in an answer has to be rewritten. Each rule
counts the requests that it is about, and acts on the n-th of them: the same run gives the same fault. All traffic that
no rule is about passes unchanged.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from random import Random

from tests.lab.servers.tcp_proxy import Stream, TcpProxy

_LENGTH_BYTES = 4
_TIMEOUT_SECONDS = 90.0
_LAST_ANSWERS_SECONDS = 5.0


class Api(IntEnum):
    """The API keys of the requests that scenarios are about."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32


class Fault(StrEnum):
    """Name what happens to a request. After a lost answer the connection is cut too: the client retries at once."""

    NOTE = "note"
    LOSE_ANSWER = "lose_answer"
    HOLD = "hold"
    CUT = "cut"


@dataclass(kw_only=True, eq=False)
class Rule:
    """Acts on matching requests from the `first` on, `times` of them (None: all), each with probability `chance`."""

    api: Api
    fault: Fault
    first: int = 1
    times: int | None = 1
    containing: bytes = b""
    chance: float = 1.0
    random: Random = field(default_factory=lambda: Random(0))
    seen: int = 0
    hits: int = 0
    done: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _released: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: asyncio.AbstractEventLoop | None = None

    def takes(self, frame: bytes) -> bool:
        """Whether it acts on this request; counts it."""
        if int.from_bytes(frame[:2], "big") != self.api or self.containing not in frame:
            return False
        with self._changed:
            self.seen += 1
            is_due = self.seen >= self.first and (self.times is None or self.hits < self.times)
            if is_due and self.random.random() < self.chance:
                self.hits += 1
                self._changed.notify_all()
                return True
        return False

    def wait_until_hit(self, times: int = 1) -> None:
        """Until so many requests were acted on."""
        self._wait(lambda: self.hits >= times, f"{self.api.name} to be met by {self.fault}")

    def wait_until_done(self, times: int = 1) -> None:
        """Until the broker's answers to so many of these requests came, or until so many of them were cut."""
        self._wait(lambda: self.done >= times, f"{self.fault} of {self.api.name} to be over")

    def release(self) -> None:
        """Release what is held, and hold nothing more."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._released.set)

    async def held(self) -> None:
        await self._released.wait()

    def finish(self) -> None:
        with self._changed:
            self.done += 1
            self._changed.notify_all()

    def belongs_to(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, _TIMEOUT_SECONDS), f"waited {_TIMEOUT_SECONDS:.0f} s for {what}"


class Proxy(TcpProxy):
    """Between clients and brokers; `ports` as `TcpProxy` has them."""

    def __init__(self, ports: Mapping[int, int]) -> None:
        super().__init__(ports)
        self._rules: list[Rule] = []
        self._is_open: asyncio.Event = asyncio.Event()
        self._is_open.set()

    def add(self, rule: Rule) -> Rule:
        """Begin to act by a rule."""
        rule.belongs_to(self.loop)
        self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """No longer act by a rule; what it holds is let go."""
        self._rules.remove(rule)
        rule.release()

    def black_hole(self) -> None:
        """From now on nothing passes, in no direction; connections stay open."""
        self.loop.call_soon_threadsafe(self._is_open.clear)

    def reopen(self) -> None:
        """End a black hole; what waited goes on."""
        self.loop.call_soon_threadsafe(self._is_open.set)

    def reset(self) -> None:
        """No rules, no black hole, no connections."""
        for rule in list(self._rules):
            self.remove(rule)
        self.reopen()
        self.cut_all()

    async def carry(self, client: Stream, server: Stream) -> None:
        await _Link(self._rules, self._is_open, client, server).carry()


class _Link:
    """One connection of a client, and ours to the broker behind it."""

    def __init__(self, rules: list[Rule], is_open: asyncio.Event, client: Stream, broker: Stream) -> None:
        self._rules = rules
        self._is_open = is_open
        self._client, self._broker = client, broker
        self._awaited: dict[int, Rule | None] = {}
        self._answered = asyncio.Event()

    async def carry(self) -> None:
        """Until one side closes; the answers to what the client sent last are waited for, or the broker drops them."""
        requests, answers = asyncio.create_task(self._requests()), asyncio.create_task(self._answers())
        try:
            await asyncio.wait((requests, answers), return_when=asyncio.FIRST_COMPLETED)
            if not answers.done():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._until_answered(), _LAST_ANSWERS_SECONDS)
        finally:
            for task in (requests, answers):
                task.cancel()
            await asyncio.gather(requests, answers, return_exceptions=True)
            self._broker[1].close()

    async def _until_answered(self) -> None:
        while self._awaited:
            self._answered.clear()
            await self._answered.wait()

    async def _requests(self) -> None:
        while True:
            frame = await _read(self._client[0])
            await self._is_open.wait()
            rule = next(iter([rule for rule in self._rules if rule.takes(frame)]), None)  # each of them counts
            if rule is not None and rule.fault is Fault.CUT:
                rule.finish()
                return
            if rule is not None and rule.fault is Fault.HOLD:
                await rule.held()
            self._awaited[int.from_bytes(frame[4:8], "big")] = rule
            await _write(self._broker[1], frame)

    async def _answers(self) -> None:
        while True:
            frame = await _read(self._broker[0])
            await self._is_open.wait()
            rule = self._awaited.pop(int.from_bytes(frame[:4], "big"), None)
            self._answered.set()
            if rule is not None:
                rule.finish()
                if rule.fault is Fault.LOSE_ANSWER:
                    self._client[1].close()
                    return
            if not self._client[1].is_closing():
                with suppress(OSError):
                    await _write(self._client[1], frame)


async def _read(reader: asyncio.StreamReader) -> bytes:
    length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
    return await reader.readexactly(length)


async def _write(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(len(frame).to_bytes(_LENGTH_BYTES, "big") + frame)
    await writer.drain()
