"""Test `semantics: upsert`: what can be done about findings where the copies of a key are versions."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.hops import Remedy, Semantics

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: accounts
points:
  book: {{kind: ledger, connection: db, table: book, key: id, time: at}}
  changes: {{kind: topic, connection: log, topic: changes, key: kafka.key{version}}}
  copy: {{kind: store, connection: db, table: copy, key: id}}
hops:
  - {{from: book, to: changes, semantics: upsert{into_log}}}
  - {{from: changes, to: copy, semantics: upsert{into_store}}}
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_file(version: str = "", into_log: str = "", into_store: str = "") -> Path:
        path = tmp_path / "accounts.yaml"
        path.write_text(FILE.format(version=version, into_log=into_log, into_store=into_store))
        return path

    return write_file


def test_without_a_version_nothing_is_written_into_a_log(write: Callable[..., Path]) -> None:
    hops = load_pipeline(write(into_store=", compensation: {missing: upsert}")).hops

    assert [hop.semantics for hop in hops] == [Semantics.UPSERT, Semantics.UPSERT]
    assert [hop.remedies.missing for hop in hops] == [Remedy.REPORT, Remedy.UPSERT]


def test_with_a_version_the_log_can_be_written(write: Callable[..., Path]) -> None:
    into_log, into_store = (", compensation: {missing: produce}", ", compensation: {mismatched: redeliver}")
    hops = load_pipeline(write(', version: "$.v"', into_log, into_store)).hops

    assert [hop.remedies.missing for hop in hops] == [Remedy.PRODUCE, Remedy.REPORT]
    assert hops[1].remedies.mismatched is Remedy.REDELIVER


def test_a_mismatch_is_redelivered_to_a_store_that_keeps_the_highest_version(write: Callable[..., Path]) -> None:
    """Under `event`, where a loader may insert what comes again."""
    path = write(into_store=", compensation: {mismatched: redeliver}")
    text = path.read_text().replace(", semantics: upsert", "")
    path.write_text(text.replace("table: copy, key: id", "table: copy, key: id, version: v"))

    assert load_pipeline(path).hops[1].remedies.mismatched is Remedy.REDELIVER


@pytest.mark.parametrize(
    ("hop", "problem"),
    [
        (
            {"into_log": ", compensation: {missing: produce}"},
            "hops[0].compensation.missing (line 8): 'produce' is not possible for missing keys from a ledger to a topic"
            " under upsert without a version. Allowed: report",
        ),
        (
            {"into_store": ", compensation: {missing: redeliver}"},
            "hops[1].compensation.missing (line 9): 'redeliver' is not possible for missing keys from a topic to a "
            "store under upsert without a version. Allowed: report, upsert",
        ),
    ],
)
def test_a_remedy_that_could_overtake_a_newer_version_is_refused(
    write: Callable[..., Path], hop: dict[str, str], problem: str
) -> None:
    path = write(**hop)
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)

    assert str(caught.value) == f"{path}: {problem}"
