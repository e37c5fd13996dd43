"""Hold the page about delivery patterns to the lab and to the pipeline file."""

import re
from pathlib import Path

import pytest
import yaml

from makewhole.config.pipeline_file import load_pipeline
from tests.lab.report import anchor
from tests.lab.scenario import load

pytestmark = pytest.mark.unit

PAGE = (Path(__file__).parents[3] / "docs" / "patterns.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\d+) [^\n]*\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
PIECES = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ROWS_OF_PATTERNS = {21, 22, *range(80, 98), *range(141, 148), 151, 152, 153}
BASE = """\
version: 2
pipeline: patterns
compare: {amount: "decimal(8,2)"}
points:
  outbox: {kind: ledger, connection: shop_db, table: shop.orders, key: id, time: at}
  orders: {kind: topic, connection: kafka_main, topic: orders, key: "$.id"}
  warehouse: {kind: store, connection: dw_db, table: dw.orders, key: id, time: loaded_at}
"""


def test_every_pattern_has_a_section_and_a_row_in_the_table() -> None:
    assert list(SECTIONS) == [str(number) for number in range(1, 17)]
    assert re.findall(r"^\| (\d+) \| \[", PAGE, re.MULTILINE) == list(SECTIONS)


def test_every_section_says_what_the_pattern_gives() -> None:
    without = [number for number, text in SECTIONS.items() if "**Gives**" not in text]
    assert without == []


def test_every_link_to_the_lab_leads_to_a_row_and_every_row_of_patterns_is_linked() -> None:
    links = dict(re.findall(r"^\[([^\]]+)\]: faults\.md#(.*)$", PAGE, re.MULTILINE))
    used = {name or row for row, name in re.findall(r"\[(\d+)\](?:\[([^\]]+)\])?(?!:|\()", PAGE)}
    assert used == set(links)
    rows = {anchor(scenario): scenario.row for scenario in load().values()}
    assert {name: link for name, link in links.items() if rows.get(link) != int(name.split()[0])} == {}
    assert {int(name.split()[0]) for name in links} >= ROWS_OF_PATTERNS


@pytest.mark.parametrize("piece", PIECES)
def test_every_piece_of_a_pipeline_file_is_good(piece: str, tmp_path: Path) -> None:
    base, added = yaml.safe_load(BASE), yaml.safe_load(piece)
    points = base["points"] | added.get("points", {})
    ends = {hop[end] for hop in added["hops"] for end in ("from", "to")}
    ends |= {hop["reverse"]["to"] for hop in added["hops"] if "reverse" in hop}
    path = tmp_path / "patterns.yaml"
    text = yaml.safe_dump(base | added | {"points": {name: points[name] for name in ends}})
    path.write_text(text, encoding="utf-8")

    assert len(load_pipeline(path).hops) == len(added["hops"])
