"""Where the tests find what they read."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DEMOS = ROOT / "demos"
DATA = ROOT / "tests" / "data"
