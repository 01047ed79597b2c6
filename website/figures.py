"""Draw each method's compiled graph as docs/figures/METHOD.svg.

`make generated` draws them; a test says when one is stale.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from langchain_core.runnables.graph import Graph

from langchain_judges import FailureMemory, create_bsm_writer, load_judge
from langchain_judges.methods import create_cascade, create_jury
from langchain_judges.testing import FakeChatModel

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
ALONE = ("allure", "bsm", "drpe", "relative", "rubric", "sc2")
NAMES = {"__start__": "row", "__end__": "result"}
WIDTH, HEIGHT, ACROSS, DOWN = 92, 34, 128, 62

Place = tuple[int, float]


def judges() -> dict[str, Any]:
    """Judge for each figure, by the name of its method."""
    model = FakeChatModel(replies=[])
    by_name: dict[str, Any] = {name: load_judge(name, model) for name in ALONE}
    by_name["allure"] = load_judge("allure", model, memory=FailureMemory())
    members = [load_judge(name, model) for name in ("relative", "bsm")]
    by_name["writing"] = create_bsm_writer(model)
    return by_name | {"jury": create_jury(members), "cascade": create_cascade(members)}


def columns(graph: Graph) -> dict[str, int]:
    """Column of each node: the longest path to it that visits no node twice."""
    edges = [(edge.source, edge.target) for edge in graph.edges]
    column = dict.fromkeys(graph.nodes, 0)

    def walk(node: str, way: tuple[str, ...]) -> None:
        column[node] = max(column[node], len(way))
        for source, target in edges:
            if source == node and target not in (*way, node, "__end__"):
                walk(target, (*way, node))

    walk("__start__", ())
    column["__end__"] = max(column.values()) + 1
    return column


def places(column: dict[str, int]) -> dict[str, Place]:
    """Column and row of each node."""
    rows: dict[int, list[str]] = {}
    for node in sorted(column):
        rows.setdefault(column[node], []).append(node)
    return {
        node: (x, y - (len(nodes) - 1) / 2)
        for x, nodes in rows.items()
        for y, node in enumerate(nodes)
    }


def line(source: Place, target: Place, dashed: bool) -> str:
    """Arrow; bent around other columns where it passes them or goes back."""
    back = target[0] <= source[0]
    x1, y1 = source[0] * ACROSS + (0 if back else WIDTH), source[1] * DOWN + HEIGHT / 2
    x2, y2 = target[0] * ACROSS + (WIDTH if back else 0), target[1] * DOWN + HEIGHT / 2
    passed = abs(target[0] - source[0]) - 1
    bend = -DOWN if back else DOWN * (0.35 * passed + (0.5 if passed else 0))
    middle = (x1 + x2) / 2
    path = f"M{x1:g} {y1:g}C{middle:g} {y1 + bend:g} {middle:g} {y2 + bend:g} {x2:g} {y2:g}"
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<path d="{path}"{dash} marker-end="url(#tip)"/>'


def box(node: str, place: Place) -> str:
    """Node: its name in a box."""
    x, y = place[0] * ACROSS, place[1] * DOWN
    rounded = HEIGHT / 2 if node in NAMES else 5
    name, middle, base = escape(NAMES.get(node, node)), x + WIDTH / 2, y + HEIGHT / 2 + 5
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="{rounded:g}"/>'
        f'<text x="{middle:g}" y="{base:g}">{name}</text>'
    )


def page(method: str, size: tuple[float, float, float], lines: Iterable[str]) -> str:
    """Picture in colours that are readable on light and on dark pages."""
    top, width, height = size
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 {top:g} {width:g} {height:g}" '
        f'width="{width:g}" role="img"><title>The graph of {method}</title>'
    )
    style = (
        "<style>rect{fill:#e8eaf6;stroke:#5c6bc0}text{font:14px sans-serif;text-anchor:middle;"
        "fill:#1a237e}path{fill:none;stroke:#7986cb;stroke-width:1.5}</style>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8" fill="none"/></marker></defs>'
    )
    return "\n".join([head, style, *lines, "</svg>"]) + "\n"


def figure(method: str, judge: Any) -> str:
    """Drawing of a judge's graph; dashed arrows are conditional."""
    graph = judge.get_graph()
    place = places(columns(graph))
    edges = sorted({(edge.source, edge.target, edge.conditional) for edge in graph.edges})
    lines = [line(place[a], place[b], dashed) for a, b, dashed in edges]
    lines += [box(node, at) for node, at in sorted(place.items())]
    heights = [y for _, y in place.values()]
    returns = any(place[b][0] <= place[a][0] for a, b, _ in edges)
    top = min(heights) * DOWN - (DOWN if returns else 4)
    last = max(x for x, _ in place.values())
    bottom = max(max(heights) * DOWN + HEIGHT + 4, DOWN * (0.26 * last + 0.6))
    return page(method, (top, last * ACROSS + WIDTH + 8, bottom - top), lines)


def figures() -> dict[str, str]:
    """Every figure by the name of its file."""
    return {f"{name}.svg": figure(name, judge) for name, judge in judges().items()}
