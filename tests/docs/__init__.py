"""Tests of the site; what builds it is beside the pages, in docs/."""

import sys

from tests.folders import ROOT

if str(ROOT / "docs") not in sys.path:
    sys.path.insert(0, str(ROOT / "docs"))
