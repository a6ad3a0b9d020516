"""The page that campaigns write their results to: a section each, under a heading of its own."""

import re
import sys
from datetime import date
from pathlib import Path


def report(text: str, heading: str, path: Path | None) -> None:
    """Print a section, and put it into a page where a path is given."""
    if path is not None:
        page = path.read_text(encoding="utf-8") if path.exists() else "# Reliability\n"
        path.write_text(written(page, heading, text), encoding="utf-8")
    sys.stdout.write(text)


def measured(campaign: str, what: str = "Measured", again: str = "measure") -> str:
    """The line below a table: the day, and the command that writes the table again."""
    return f"{what} on {date.today()}. To {again} again: `python -m {campaign} --write docs/reliability.md`."


def written(page: str, heading: str, text: str) -> str:
    """The page with a section in the place of the one it had under that heading, or at its end."""
    pattern = re.compile(rf"^{re.escape(heading)}\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
    if pattern.search(page):
        return pattern.sub(lambda _: text + "\n", page).rstrip() + "\n"
    return f"{page.rstrip()}\n\n{text}"
