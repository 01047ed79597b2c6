"""The console of commands and of a run's progress: no printed text controls the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from langchain_judges.rows.printable import clean


class InertConsole(Console):
    """A console whose own styles control the terminal, and never a printed text."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as `rich` does; each text is made inert."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(clean(segment.text), segment.style)
