"""Test that what is suggested on a hop is accepted by `makewhole check`, and the reason where nothing is."""

import itertools
from pathlib import Path

import pytest

from makewhole.config.hops.remedies import VERDICTS
from makewhole.config.hops.suggested import suggest
from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.hops import Remedy
from tests.world.pipeline_file import Settings, ledger, pipeline_file, store, topic

pytestmark = pytest.mark.unit

ENDS = (("outbox", "orders"), ("orders", "delays"), ("orders", "warehouse"), ("outbox", "warehouse"))
CONTAINED = "a record cannot be taken out of a topic, and its copies are contained at the stores"
REVERSED = f"{CONTAINED}; what a copy did is taken back by `reverse`, with an event that the hop describes"
UNCHANGEABLE = "a record can neither be changed in a topic nor taken out of it"
GONE = "what was taken out of a topic is not sent again"


def _file(folder: Path, hops: list[dict[str, str]], version: Settings) -> Path:
    in_record = {name: f'"$.{column}"' for name, column in version.items()}
    points = {
        "outbox": ledger("db", "outbox", **version),
        "orders": topic("log", "orders", **in_record),
        "delays": topic("log", "delays", **in_record),
        "warehouse": store("db", "warehouse", **version),
    }
    joined = {name for hop in hops for name in (hop["from"], hop["to"])}
    path = folder / "shop.yaml"
    path.write_text(
        pipeline_file(
            "shop",
            points={name: point for name, point in points.items() if name in joined},
            hops=hops,
            settings={},
            columns={},
            is_observing=True,
        )
    )
    return path


@pytest.mark.parametrize(
    ("ends", "semantics", "version", "verdict"),
    list(itertools.product(ENDS, ("event", "upsert"), ({}, {"version": "v"}), VERDICTS)),
)
def test_each_suggestion_is_accepted_on_its_hop_and_switches_its_remedy_on(
    tmp_path: Path, ends: tuple[str, str], semantics: str, version: Settings, verdict: str
) -> None:
    hop = {"from": ends[0], "to": ends[1], "semantics": semantics}
    pipeline = load_pipeline(_file(tmp_path, [hop], version))
    suggestion = suggest(pipeline, pipeline.hops[0], verdict)
    if suggestion.remedy is None:
        assert suggestion.line is None
        assert suggestion.does
        return

    assert suggestion.line is not None
    written = _file(tmp_path, [{**hop, "compensation": f"{{{suggestion.line}}}"}], version)

    remedies = load_pipeline(written).hops[0].remedies
    assert {name: getattr(remedies, name) for name in VERDICTS} == {
        name: suggestion.remedy if name == verdict else Remedy.REPORT for name in VERDICTS
    }


def test_what_is_suggested_and_why_there_is_nothing(tmp_path: Path) -> None:
    hops = [{"from": source, "to": target} for source, target in ENDS[:2]]
    pipeline = load_pipeline(_file(tmp_path, hops, {}))
    suggestions = {
        (hop.target, verdict): suggest(pipeline, hop, verdict) for hop in pipeline.hops for verdict in VERDICTS
    }

    assert {place: (suggestion.line, suggestion.does) for place, suggestion in suggestions.items()} == {
        ("orders", "missing"): ("missing: produce", "would send them into orders, from outbox"),
        ("orders", "duplicate"): (None, REVERSED),
        ("orders", "mismatched"): (None, UNCHANGEABLE),
        ("orders", "unexpected"): (None, UNCHANGEABLE),
        ("orders", "vanished"): (None, GONE),
        ("delays", "missing"): ("missing: redeliver", "would send their records into orders again"),
        ("delays", "duplicate"): (None, REVERSED),
        ("delays", "mismatched"): (None, UNCHANGEABLE),
        ("delays", "unexpected"): (None, UNCHANGEABLE),
        ("delays", "vanished"): (None, GONE),
    }


def test_a_store_is_repaired_by_itself_whoever_else_reads_the_topic(tmp_path: Path) -> None:
    hops = [{"from": "orders", "to": target} for target in ("delays", "warehouse")]
    pipeline = load_pipeline(_file(tmp_path, hops, {}))

    into_topic = suggest(pipeline, pipeline.hops[0], "missing")
    into_store = [suggest(pipeline, pipeline.hops[1], verdict) for verdict in VERDICTS]

    assert (into_topic.line, into_topic.does) == (
        None,
        "what is sent into orders again reaches warehouse, too; `redeliver` needs a topic of its own there, see "
        "`redeliver_to`",
    )
    assert [(suggestion.line, suggestion.does) for suggestion in into_store] == [
        ("missing: upsert", "would write their rows into warehouse, from orders"),
        ("duplicate: quarantine", "would move the rows too many in warehouse aside, restorable"),
        ("mismatched: upsert", "would write the values of orders into their rows in warehouse"),
        ("unexpected: quarantine", "would move their rows in warehouse aside, restorable; look first whose they are"),
        (
            None,
            "what was deleted is not brought back unasked; where it was deleted by mistake, `vanished: upsert` "
            "writes their rows into warehouse again",
        ),
    ]


def test_under_upsert_nothing_is_sent_into_a_topic_without_a_version(tmp_path: Path) -> None:
    hops = [{"from": source, "to": target, "semantics": "upsert"} for source, target in ENDS[:2]]
    pipeline = load_pipeline(_file(tmp_path, hops, {}))

    suggestions = [
        (suggestion.line, suggestion.does)
        for hop in pipeline.hops
        for suggestion in [suggest(pipeline, hop, "missing")]
    ]

    assert suggestions == [
        (None, "under upsert nothing is sent into orders without a version; name one at the point"),
        (None, "under upsert nothing is sent into orders without a version; name one at the point"),
    ]
    assert suggest(pipeline, pipeline.hops[0], "duplicate").does == CONTAINED
