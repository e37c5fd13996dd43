"""Name the folder of the kinds of tables that tests install: their entry points, found where it is on a path."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / "tests" / "memory" / "installed"
