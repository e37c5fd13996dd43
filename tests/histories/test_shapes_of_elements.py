"""Test that random changes of the elements of records are found, and nothing else, at either end of a hop.

make histories HISTORIES_ARGS="tests/histories/test_shapes_of_elements.py --histories 1000 --seed 1"
"""

import itertools
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from random import Random

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.window.context import WindowContext
from tests.histories.shapes.bundles import BUNDLE
from tests.histories.shapes.chains import ChangedChain, Line, LineChange, Verdicts, draw_chain
from tests.histories.shapes.changes import TYPES
from tests.histories.shapes.stores import COLUMNS
from tests.histories.shapes.verdicts import REPAIRS, differing_from, found_verdicts
from tests.world.orders import Order
from tests.world.pipeline_file import Settings, flow, ledger, pipeline_file, store, topic
from tests.world.sql import insert_rows
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.histories, pytest.mark.timeout(120)]

NewShop = Callable[[int], AbstractContextManager[ReconciledShop]]

both_semantics = pytest.mark.parametrize("takes_latest", [False, True], ids=["event", "upsert"])


@pytest.mark.parametrize("change", LineChange, ids=lambda kind: kind.value)
def test_one_change_of_a_line_is_one_finding(seed: int, change: LineChange, shops: NewShop) -> None:
    """An order that a topic has twice is no finding where the latest version counts: then the store has it twice."""
    random = Random(f"one line {seed} {change}")
    takes_latest = random.choice([False, True])
    chain = draw_chain(random, takes_latest=takes_latest)
    is_of_store = change is LineChange.REPEATED and takes_latest
    hop = chain.last_hop if is_of_store else random.randint(0, chain.last_hop)
    chain.change(change, hop, random)
    with shops(random.randint(1, 3)) as shop:
        judged = _judged(shop, _Play(shop, chain, random))
        assert [len(verdicts) for verdicts in judged] == [int(number == hop) for number in range(len(judged))], chain
        assert judged == chain.verdicts, chain


@both_semantics
def test_random_changes_of_elements_are_found_on_their_hops(seed: int, takes_latest: bool, shops: NewShop) -> None:
    random = Random(f"elements {seed}")
    chain = draw_chain(random, takes_latest=takes_latest)
    for _ in range(random.randint(0, min(12, len(chain.lines[0]) - 1))):
        chain.change(random.choice([*LineChange]), random.randint(0, chain.last_hop), random)
    with shops(random.randint(1, 3)) as shop:
        assert _judged(shop, _Play(shop, chain, random)) == chain.verdicts, chain


@both_semantics
def test_rows_of_elements_are_repaired(seed: int, takes_latest: bool, shops: NewShop) -> None:
    random = Random(f"rows of elements {seed}")
    chain = draw_chain(random, takes_latest=takes_latest)
    for _ in range(random.randint(1, min(12, len(chain.lines[0]) - 1))):
        chain.change(random.choice([*LineChange]), chain.last_hop, random)
    with shops(random.randint(1, 3)) as shop:
        play = _Play(shop, chain, random)
        context = shop.judge_and_ask_the_gate()
        assert play.found(context) == chain.verdicts, chain
        assert plan_window(context).plan is not None
        compensate_window(context, lambda _: None)
        verify_window(context, lambda *_: None, patience_seconds=0)
        assert shop.certify(context).state.value == "certified", chain
        assert play.differing_rows() == [], chain


class _Play:
    """A chain on real servers: its points are `book`, `topic 0` and so on, and `warehouse`."""

    def __init__(self, shop: ReconciledShop, chain: ChangedChain, random: Random) -> None:
        self._shop, self._chain = shop, chain
        self._topics = [shop.topic, *(shop.add_topic() for _ in chain.shapes[1:])]
        names = ["book", *(f"topic_{number}" for number in range(len(chain.shapes))), "warehouse"]
        self._hops = list(itertools.pairwise(names))
        for table in ("book", "warehouse"):
            shop.sql(f"create table {table} ({BUNDLE} text, {COLUMNS})")
        self._describe(names)
        for number, shape in enumerate(chain.shapes):
            records = chain.records(number, random)
            shop.send_values(
                ((bundle, shape.value(bundle, orders), {}) for bundle, orders in records),
                topic=self._topics[number] if number else None,
            )
        insert_rows(shop.dsn, "book", map(_row, chain.lines[0]))
        insert_rows(shop.dsn, "warehouse", map(_row, random.sample(chain.lines[-1], k=len(chain.lines[-1]))))

    def _describe(self, names: Sequence[str]) -> None:
        shapes, key = dict(zip(names[1:], self._chain.shapes, strict=False)), f"[{BUNDLE}, id]"
        for shape in self._chain.shapes:
            for name, content in shape.files.items():
                (self._shop.file.parent / name).write_bytes(content)
        topics = {
            name: {**topic("log", at), **shape.point}
            for (name, shape), at in zip(shapes.items(), self._topics, strict=True)
        }
        divided = {name for name, shape in shapes.items() if shape.array is not None}
        hops: list[Settings] = [
            {"from": source, "to": target, **self._meaning({source, target} & divided)} for source, target in self._hops
        ]
        hops[-1] = {**hops[-1], "compensation": flow(REPAIRS)}
        text = pipeline_file(
            "shop",
            points={"book": ledger("db", "book", key=key), **topics, "warehouse": store("db", "warehouse", key=key)},
            hops=hops,
            settings={
                "start": "earliest",
                "settle": "0s",
                "compare": flow({name: f'"{declared}"' for name, declared in TYPES.items()}),
                "gate": "{allow_empty: false}",
                "compensation": "{limits: {share: 1.0}}",
            },
            columns={},
            is_observing=True,
        )
        self._shop.file.write_text(text)

    def _meaning(self, divided: set[str]) -> Settings:
        if not self._chain.takes_latest:
            return {}
        return {"semantics": "upsert", **({"removed_elements": "kept"} if divided else {})}

    def found(self, context: WindowContext) -> list[Verdicts]:
        """Return the findings of each hop by key; all other keys are matched."""
        judged = [found_verdicts(self._shop, context, f"{source}→{target}") for source, target in self._hops]
        for number, (source, target) in enumerate(self._hops):
            counts = self._shop.counts(context, f"{source}→{target}")
            assert (counts.matched, counts.judged) == (
                self._chain.keys(number) - len(judged[number]),
                self._chain.keys(number),
            )
        return [{tuple(json.loads(key)): verdict for key, verdict in verdicts.items()} for verdicts in judged]

    def differing_rows(self) -> list[object]:
        """Return the rows that the store has too many or too few."""
        return differing_from(self._shop, "warehouse", map(_row, self._chain.repaired_rows()))


def _judged(shop: ReconciledShop, play: _Play) -> list[Verdicts]:
    return play.found(shop.judged())


def _row(line: Line) -> Order:
    return {BUNDLE: line.bundle, **line.order}
