"""Check which remedies a pipeline file may not have beside `history`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.hops.suggested import suggest
from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.hops import Remedy

pytestmark = pytest.mark.unit

REVERSAL = "compensation: {unexpected: reverse}, reverse: {to: flights, value: {reversed: yes}}"
FED, UNFED = "{from: flights, to: warehouse}", "{from: outbox, to: warehouse}"
FOR_EVER = "or take `history` out: then keys are known for ever"


def with_remedy(hop: str, said: str) -> str:
    """Return a hop that says something more."""
    return hop.replace("}", f", {said}}}")


@pytest.mark.parametrize(
    ("said", "remedy"), [("compensation: {unexpected: quarantine}", "quarantine"), (REVERSAL, "reverse")]
)
def test_rows_whose_record_may_be_known_no_more_are_not_taken_away(
    write: Callable[..., Path], minimal: str, said: str, remedy: str
) -> None:
    text = minimal.replace(FED, with_remedy(FED, said))
    load_pipeline(write(text))

    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(write(text + "history: 400d\n"))

    [problem] = caught.value.problems
    assert problem.path == "history (line 10)"
    assert problem.found == (
        f"flights→warehouse takes `unexpected: {remedy}`: the record of such a row may be in a window that is known no "
        "more, where a loader gave the row a new time"
    )
    assert problem.remedy == f"Write 'unexpected: report' in the compensation of flights→warehouse, {FOR_EVER}"


def test_a_remedy_of_the_pipeline_is_refused_for_each_hop_that_takes_it(
    write: Callable[..., Path], minimal: str
) -> None:
    text = minimal.replace(FED, f"{FED}\n  - {UNFED}") + "history: 400d\ncompensation: {unexpected: quarantine}\n"
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(write(text))

    refused = [problem.found.split(" takes ")[0] for problem in caught.value.problems]
    assert refused == ["flights→warehouse", "outbox→warehouse"]


def test_a_store_that_no_topic_feeds_may_have_them(write: Callable[..., Path], minimal: str) -> None:
    side = "  aside: {kind: store, connection: warehouse_db, table: dw.aside, key: flight_id}\n"
    hop = with_remedy("{from: outbox, to: aside}", "compensation: {unexpected: quarantine}")
    text = minimal.replace("hops:\n", f"{side}hops:\n") + f"  - {hop}\nhistory: 400d\n"

    assert load_pipeline(write(text)).hops[-1].remedies.unexpected is Remedy.QUARANTINE


def test_what_check_would_refuse_is_not_suggested(write: Callable[..., Path], minimal: str) -> None:
    pipeline = load_pipeline(write(minimal))
    assert suggest(pipeline, pipeline.hops[1], "unexpected").remedy is Remedy.QUARANTINE

    pipeline = load_pipeline(write(minimal + "history: 400d\n"))

    suggestion = suggest(pipeline, pipeline.hops[1], "unexpected")
    assert (suggestion.remedy, suggestion.does) == (
        None,
        "their records may be in windows that are known no more (`history`), so that no row of warehouse is moved",
    )
