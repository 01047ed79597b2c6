"""Rows and verdicts as HTML that is safe to show: no text can inject markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline, newline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup

from langchain_judges import errors, orders
from langchain_judges.report import joined_rows, labelling, overview
from langchain_judges.report.evidence import TextTable, evidence
from langchain_judges.rows.checks import kind_of_row, names_of_sides
from langchain_judges.rows.media import held_in, kind_of_block, mark_of, media_in
from langchain_judges.rows.texts import CONVERSATION, steps_of, transcript
from langchain_judges.viewer.items import Cells, Collection

# Characters that are read as Markdown; longer texts are shown as they are.
_LONGEST = 50_000
# Words of two texts that are compared; of longer ones lines are.
_MOST_WORDS = 6_000
_UNSEEN = re.compile(f"[\u200b-\u200f\u2060\ufeff]|{errors.STEERING.pattern}")
_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table")
_MARKDOWN.disable(["autolink", "reference", "html_block", "html_inline"])
_FOLDED = re.compile(r"(invalid )?(call|result|error|file|tools available|nodes|system)\b")
_SHOWN_MEDIA = re.compile(r"image/(png|jpeg|gif|webp)|audio/[\w.+-]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s_-]+")
# Parts of a row beside its texts; what a report says of it is no part for who labels.
_CONTEXT = ("expected", "reference", "source", "rubric", "proposed", "reported")


def visible(text: object) -> str:
    """A text with its invisible and control characters made visible."""
    plain = str(text).replace("\r\n", "\n")
    return _UNSEEN.sub(lambda found: f"⟦U+{ord(found[0]):04X}⟧", plain)


def rendered_markdown(text: object) -> Markup:
    """Markdown as HTML without links, images and markup of its own."""
    seen = visible(text)
    if len(seen) > _LONGEST:
        return Markup("<pre>{}</pre>").format(seen)
    return Markup(_MARKDOWN.render(seen))  # noqa: S704 - it escapes all HTML


def _indented(state: StateInline, silent: bool) -> bool:
    """Rule for the end of a line that keeps the spaces before the next one: it may be code."""
    end = state.pos
    if not newline(state, silent):
        return False
    if not silent:
        state.pending += "\u00a0" * (state.pos - end - 1)
    return True


def _address(_: RendererHTML, tokens: Sequence[Token], place: int, *__: object) -> str:
    """Address of a link or an image as text: nothing is fetched or followed."""
    token = next(each for each in tokens[place::-1] if each.type in ("image", "link_open"))
    words = f"image {token.content}" if token.type == "image" else ""
    where = token.attrs.get("src", token.attrs.get("href"))
    return Markup("{} <small>({})</small>").format(words, where)


def _aligned(
    renderer: RendererHTML, tokens: Sequence[Token], place: int, options: OptionsDict, _: object
) -> str:
    """A cell aligned without a style attribute, which the page's policy forbids."""
    style = str(tokens[place].attrs.pop("style", "")).removeprefix("text-align:")
    tokens[place].attrs |= {"class": style} if style else {}
    return renderer.renderToken(tokens, place, options, {})


_MARKDOWN.inline.ruler.at("newline", _indented)
_MARKDOWN.add_render_rule("link_open", lambda *_: "<u>")
_MARKDOWN.add_render_rule("link_close", lambda *given: f"</u>{_address(*given)}")
_MARKDOWN.add_render_rule("image", _address)
_MARKDOWN.add_render_rule("th_open", _aligned)
_MARKDOWN.add_render_rule("td_open", _aligned)


@cache
def _environment() -> Environment:
    environment = overview.templates_of("langchain_judges.viewer")
    environment.policies["json.dumps_kwargs"] = {"default": str}
    environment.filters |= {"md": rendered_markdown, "visible": visible}
    return environment


def part(name: str, **values: object) -> str:
    """A template of the page, filled."""
    return _environment().get_template(name).render(**values)


def asset(name: str) -> str:
    """A style sheet or script of the page."""
    return files("langchain_judges.viewer").joinpath("templates", name).read_text("utf-8")


def texts(row: Cells, *, blind: bool, marked: bool = False) -> str:
    """The request and the texts of a row.

    Args:
        row: The row.
        blind: Whether the texts of a pair are in random positions, without names.
        marked: Whether what differs between two texts is marked.
    """
    media = {mark_of(block): block for block in media_in(row)}
    order = order_of(row, blind=blind)
    sources = [row.get(f"output_{side.lower()}") for side in order] or [row.get("output")]
    titles = ["1", "2"] if blind and order else _named(row, order, " · ") or ["Text"]
    differ = None
    if marked:
        other = row.get("expected") or row.get("reference") or ""
        pair = [_plain(each) for each in (sources if order else [sources[0], other])]
        differ = _differences(*pair)
    shown = [
        {
            "title": title,
            "steps": _steps(source, media, is_work=True),
            "missing": "not in these files" if source is None else "an empty text",
            "differs": differ[place] if differ else None,
        }
        for place, (title, source) in enumerate(zip(titles, sources, strict=True))
    ]
    context = [
        (name.capitalize(), _steps(row[name], media))
        for name in _CONTEXT
        if row.get(name) and not (blind and name == "reported")
    ]
    seen = {mark for mark in media if mark in str(row.get("source"))}
    rest = [_medium(block) for mark, block in media.items() if mark in seen]
    asked = row.get("input") or ""
    task = [] if asked == CONVERSATION else _steps(asked, media)
    return part("item.html", task=task, context=context, texts=shown, media=rest)


def order_of(row: Cells, *, blind: bool) -> str:
    """Order of a pair's texts; empty for a single text."""
    return (labelling.sides(row) if blind else "AB") if kind_of_row(row) == "pair" else ""


def _named(row: Cells, order: str, between: str) -> list[str]:
    """The texts of a pair in an order, each with the system that wrote it."""
    names = names_of_sides(row, None)
    return [f"{side}{between}{names[side]}" if side in names else side for side in order]


def _plain(value: object) -> str:
    if isinstance(value, list) and not all(isinstance(each, Mapping) for each in value):
        return "\n".join(map(str, value))
    return visible(transcript(value) if isinstance(value, str | list) else value or "")


def _steps(
    value: Any, media: Mapping[str, Mapping[str, object]], *, is_work: bool = False
) -> list[dict[str, object]]:
    """The turns of a conversation or the steps of an agent's work; of a text one."""
    if value in (None, "", []):
        return []
    is_record = isinstance(value, list) and all(isinstance(each, Mapping) for each in value)
    if is_record and all("role" in each for each in value):
        found = [(step.mark, step.text) for step in steps_of(value, is_work=is_work)]
    elif isinstance(value, list | Mapping) and not is_record:
        found = [("", _plain(value) if isinstance(value, list) else json.dumps(value, indent=1))]
    else:
        found = [("", _plain(value))]
    return [
        {
            "mark": mark,
            "text": text,
            "folded": bool(_FOLDED.match(mark)),
            "media": [_medium(block) for name, block in media.items() if name in text],
        }
        for mark, text in found
    ]


def _medium(block: Mapping[str, object]) -> dict[str, str]:
    """An image or a sound as data; what stands elsewhere is named and not fetched."""
    kind = str(kind_of_block(block))
    found = held_in(block, kind)
    data, mime = str(found.get("base64") or ""), str(found.get("mime_type") or "")
    is_shown = _SHOWN_MEDIA.fullmatch(mime) and _BASE64.fullmatch(data)
    where = str(found.get("url") or found.get("file_id") or mime or "no data")
    source = f"data:{mime};base64,{data}" if is_shown else ""
    return {"kind": kind, "mark": mark_of(block), "source": source, "where": where[:200]}


def _differences(one: str, other: str) -> list[Markup]:
    """Two texts in which the words that the other lacks are marked."""
    words: list[list[str]] = [re.findall(r"\w+|\s+|[^\w\s]", text) for text in (one, other)]
    if sum(map(len, words)) > _MOST_WORDS:
        words = [text.splitlines(keepends=True) for text in (one, other)]
    one_words, other_words = words
    marked: tuple[list[Markup], list[Markup]] = ([], [])
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, one_words, other_words).get_opcodes():
        form = Markup("{}") if kind == "equal" else Markup("<mark>{}</mark>")
        for parts, own in zip(marked, (one_words[i1:i2], other_words[j1:j2]), strict=True):
            if own:
                parts.append(form.format("".join(own)))
    return [Markup("").join(parts) for parts in marked]


def verdicts(
    found: Collection, place: int, people: Sequence[Cells] = (), *, blind: bool = False
) -> str:
    """Verdict of each judge on a row with its reasons, and people's answers."""
    row = found.rows[place]
    order = order_of(row, blind=blind)
    judged = {name: run[place] for name, run in found.judges.items() if place in run}
    named = [f"{n} is {name}" for n, name in enumerate(_named(row, order, ", by "), 1)]
    return part(
        "verdict.html",
        judges=[
            _judge(name, each, order if blind else "") | {"calls": found.requests(name, each)}
            for name, each in judged.items()
        ],
        tags=found.tags(place, people),
        people=_people(row, people, order if blind else ""),
        sides=f"{'; '.join(named)}." if blind and order else "",
    )


def _judge(name: str, each: joined_rows.JudgedRow, order: str) -> dict[str, object]:
    verdict = each.verdict
    usage = verdict.get("usage") or {}
    tokens = [f"{usage.get(f'{k}_tokens', 0):,} {k} tokens" for k in ("input", "output")]
    if usage.get("calls") and not (usage.get("input_tokens") or usage.get("output_tokens")):
        tokens = ["tokens not reported"]
    cost = [f"{usage.get('calls', 0)} calls", *tokens]
    cost += [f"${each.row['cost']:.4f}"] if each.row.get("cost") is not None else []
    reason = str(verdict.get("rationale") or "")
    confidence = verdict.get("confidence")
    places = dict(zip(order, "12", strict=False))
    return {
        "name": name,
        "said": _said(each.answer, order),
        "sure": "" if confidence is None else f"confidence {confidence:.2f}",
        "flipped": verdict.get("flipped"),
        "reason": orders.naming_sides(reason, places),
        "tables": [_in_places(table, places) for table in evidence(each.row)],
        "lookups": verdict.get("lookups") or [],
        "cost": " · ".join(cost),
    }


def _said(answer: object, order: str) -> str:
    if answer is None:
        return "not judged"
    if order and answer in ("A", "B"):
        return f"{order.index(str(answer)) + 1} is better"
    return {"A": "A is better", "B": "B is better", "tie": "a tie"}.get(str(answer), str(answer))


def _in_places(table: TextTable, places: Mapping[str, str]) -> TextTable:
    def named(cell: str) -> str:
        return places.get(cell) or orders.naming_sides(cell, places)

    cells = [[named(cell) for cell in row] for row in table.rows]
    return TextTable(table.title, [named(name) for name in table.head], cells)


def _people(row: Cells, answers: Sequence[Cells], order: str) -> list[tuple[str, str]]:
    """Who said what: the labels of the row, then the answers on the page."""
    before = {"label": row.get("label"), **(row.get("labels") or {})}
    before |= {f"vote {n}": vote for n, vote in enumerate(row.get("human_votes") or (), 1)}
    told = [(name, _said(label, order)) for name, label in before.items() if label is not None]
    for each in answers:
        own = {"": each["label"]} if "label" in each else {}
        parts = [
            f"{name} {'cannot say' if label is None else _said(label, order)}".strip()
            for name, label in {**own, **(each.get("labels") or {})}.items()
        ]
        first = f" (1 was {each['first']})" if "first" in each and not order else ""
        parts += [f"“{each['note']}”{first}"] if each.get("note") else []
        parts += ["the verdict was opened first"] if each.get("opened") else []
        told.append((each["by"] or "somebody", "; ".join(parts)))
    return told


def rows_page(
    config: Mapping[str, object], rows: Sequence[tuple[str, str]] | None = None, **values: object
) -> str:
    """The page, which asks a server for its rows; with rows one file that loads nothing."""
    own: dict[str, object] = {"policy": None}
    if rows is not None:
        style, script = asset("page.css"), asset("page.js")
        hashes = [hashlib.sha256(text.encode()).digest() for text in (style, script)]
        marks = [f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes]
        policy = f"default-src 'none'; style-src {marks[0]}; script-src {marks[1]}; {_DATA}"
        own = {"policy": policy, "style": style, "script": script}
    return part("page.html", config=config, rows=rows or (), **own, **values)


_DATA = "img-src data:; media-src data:; base-uri 'none'; form-action 'none'"
