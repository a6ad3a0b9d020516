"""``python -m micrograd`` is the command ``micrograd``."""

import sys

from micrograd.cli import main

sys.exit(main())
