"""The example is no part of the distribution: it is imported from the checkout, as `python -m` does."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
