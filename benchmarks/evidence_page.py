"""Tables of measurements in docs/evidence.md, each between two marks."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "evidence.md"


def write_section(name: str, text: str) -> None:
    """Put a table between the marks of its name.

    Raises:
        ValueError: The page has no such marks.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"{PAGE} has no {begin}")
    filled = pattern.sub(lambda _: f"{begin}\n{text.strip()}\n{end}", page)
    PAGE.write_text(filled, encoding="utf-8")
