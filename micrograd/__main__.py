"""``python -m micrograd`` is the command ``micrograd``."""

import sys

from micrograd.command.main import main

sys.exit(main())
