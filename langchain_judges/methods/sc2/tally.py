"""The state and replies of SC², the tournament of its tables, and the verdict from preferences.

Online aspects (section 4 of the paper: "self-consistency to select the most agreeable
aspect"). It gives neither the number of samples nor the rule. Ours: phrases of one normal form
are one aspect; those that most samples name are kept, among equals those named earlier.

The tournament (section 3.2): the consistency of a table is known only through a comparator of
two tables, so the best of |C| samples is found by a knockout (|C| - 1 comparisons) instead
of comparing all with all. Everything here is a pure function of what was said so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import permutations
from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model
from typing_extensions import TypedDict

from langchain_judges import escaping
from langchain_judges.asking import reading, reply_text
from langchain_judges.asking.question import Account
from langchain_judges.errors import InputError
from langchain_judges.methods import pairs
from langchain_judges.methods.sc2.options import SC2, Inference, normal_form
from langchain_judges.methods.tasks import TableRow
from langchain_judges.orders import Order, Slot, SlotOrTie, in_slots, naming_ab, naming_slots
from langchain_judges.verdict import Preference, Verdict

# Strings of full length for which a table has room, where a model's replies are cut soon.
_STRINGS = 3
# Characters of a cell, at least.
_SHORTEST = 24
# Aspects of one text that a reply may name.
MOST_ASPECTS = 8
# What a cell holds that has nothing to say.
NOTHING = "none"
# Characters of a cell that later prompts show; entries are meant to be short.
CELL_SIZE = 800
# The cells of a row, by slot and by identity.
_SLOTS = ("common", "only_1", "only_2")
_CELLS = ("common", "only_a", "only_b")
_EMPTY = {"", "none", "n/a", "-", "–", "—"}


DecidedBy = Literal["comparator", "coin", "bye", "identical"]


class ComparisonTable(TypedDict):
    """A sampled table, by identity of the texts.

    Attributes:
        number: From 1, as traces and brackets call it.
        rows: One for each aspect, in their order; cells that say nothing hold `none`.
        valid: Whether more than half of its rows say something; one that is not
            valid takes no part.
    """

    number: int
    rows: list[TableRow]
    valid: bool


class AspectProposal(TypedDict):
    """The aspects that one online sample named, best first."""

    sample: int
    aspects: list[str]


class TableMatch(TypedDict):
    """A meeting of two tables, or a bye.

    Attributes:
        tables: Their numbers, in the order in which the comparator sees them; one for a bye.
        asked: Whether the comparator was asked.
    """

    round: int
    match: int
    tables: list[int]
    winner: int
    decided_by: DecidedBy
    why: str
    asked: bool


class PreferenceReply(TypedDict):
    """The reply of one preference call, by identity of the texts.

    Attributes:
        probability: Of the label's own tokens, where log-probabilities came.
    """

    order: Order
    preference: Preference
    probability: float | None
    comparison: str


class SC2State(pairs.PairState, total=False):
    """State of the graph.

    Attributes:
        bracket: Who met whom, who won, and why.
        table: The table that won; None where there is none.
    """

    proposals: list[AspectProposal]
    aspects: list[str]
    tables: list[ComparisonTable]
    bracket: list[TableMatch]
    table: ComparisonTable | None
    choices: list[PreferenceReply]


Phrases = list[Annotated[str, Field(json_schema_extra={"maxLength": 40})]]


class Aspects(BaseModel):
    """Aspects of a pair, after thinking about them."""

    reasoning: str
    aspects: Phrases = Field(min_length=1, json_schema_extra={"maxItems": 5})


@cache
def aspects_shape(n: int) -> type[Aspects]:
    """The shape of a reply that names at most n aspects."""
    most = Field(min_length=1, json_schema_extra={"maxItems": n})
    return create_model("Aspects", __base__=Aspects, aspects=(Phrases, most))


class Extracted(BaseModel):
    """Aspects of one text."""

    aspects: Phrases = Field(min_length=1, json_schema_extra={"maxItems": MOST_ASPECTS})


class Decision(BaseModel):
    """Which of two tables is more consistent."""

    justification: str
    more_consistent: Slot


class EvenDecision(Decision):
    """The same, or that both are equally consistent."""

    more_consistent: SlotOrTie  # type: ignore[assignment]


class Preferred(BaseModel):
    """Which of two texts is preferred, after comparing them."""

    comparison: str
    preferred: Slot


def aspect_names(n: int) -> list[str]:
    """The name of each of n aspects, or its row, in a reply."""
    return [f"aspect_{number}" for number in range(1, n + 1)]


@cache
def table_shapes(n: int, text_limit: int | None = None) -> tuple[type[BaseModel], type[BaseModel]]:
    """The shape of a table of n rows, and one that saves what rows there are.

    Args:
        n: Rows.
        text_limit: Most characters of a string, where the model's replies are cut soon; a
            table has many strings, and each gets its share of a few such lengths.
    """
    most = max(_SHORTEST, _STRINGS * text_limit // (3 * n)) if text_limit else None
    cell = Annotated[str, Field(json_schema_extra={"maxLength": most} if most else None)]
    row = reading.shape_of("Row", dict.fromkeys(_SLOTS, cell))
    names = aspect_names(n)
    return reading.shape_of("Table", dict.fromkeys(names, row)), reading.lax_shape(tuple(names))


def merged_shape(n: int) -> type[BaseModel]:
    """The shape of exactly n aspects."""
    phrase = Annotated[str, Field(min_length=1, json_schema_extra={"maxLength": 40})]
    return reading.shape_of("Merged", dict.fromkeys(aspect_names(n), phrase))


# What names the preferred text, and the better table.
PREFERRED = reply_text.ChoiceFields("comparison", "preferred")
DECISION = reply_text.ChoiceFields("justification", "more_consistent")


def distinct_phrases(phrases: Iterable[str], most: int | None = None) -> list[str]:
    """The phrases on one line each, the first of every normal form.

    Numbers and bullets before a phrase are dropped; what is longer than eighty characters
    is no phrase, and is cut.
    """
    by_form: dict[str, str] = {}
    for phrase in phrases:
        bare = re.sub(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+", "", phrase)
        line = " ".join(bare.split()).strip(" .:;,*_\"'`")[:80]
        if normal_form(line):
            by_form.setdefault(normal_form(line), line)
    return list(by_form.values())[:most]


def by_frequency(lists: Iterable[Sequence[str]]) -> list[str]:
    """Every phrase once: those of most lists first, among equals those named earlier.

    Args:
        lists: Phrases, in each list the best first.
    """
    distinct_lists = [distinct_phrases(each) for each in lists]
    names = {normal_form(name): name for each in reversed(distinct_lists) for name in each}
    ranks: dict[str, list[int]] = {}
    for phrases in distinct_lists:
        for rank, phrase in enumerate(phrases):
            ranks.setdefault(normal_form(phrase), []).append(rank)
    forms = sorted(ranks, key=lambda form: (-len(ranks[form]), fmean(ranks[form])))
    return [names[form] for form in forms]


def read_rows(data: Mapping[str, object], aspects: Sequence[str]) -> list[TableRow]:
    """One row for each aspect, in their order; cells that are missing say nothing.

    Tables are asked with A in the first slot, so slots and identities agree here.
    """
    rows: list[TableRow] = []
    for name, aspect in zip(aspect_names(len(aspects)), aspects, strict=True):
        value = data.get(name)
        row = value if isinstance(value, Mapping) else {}
        common, only_a, only_b = (_table_cell(row.get(slot)) for slot in _SLOTS)
        rows.append({"aspect": aspect, "common": common, "only_a": only_a, "only_b": only_b})
    return rows


def silent_rows(rows: Sequence[TableRow]) -> list[str]:
    """The aspects whose row says nothing: all of its cells are one text, in whatever language."""
    said = [(row["aspect"], {row["common"], row["only_a"], row["only_b"]}) for row in rows]
    return [aspect for aspect, cells in said if len(cells) == 1]


def within(rows: Sequence[TableRow]) -> tuple[list[TableRow], list[str]]:
    """Rows with cells of at most `CELL_SIZE` characters, and the aspects whose cells were cut.

    Every match and preference shows whole tables: one cell must not crowd out the others.
    """
    cut: Any = [{k: escaping.shortened(str(v), CELL_SIZE) for k, v in row.items()} for row in rows]
    return cut, [row["aspect"] for row, other in zip(rows, cut, strict=True) if row != other]


def in_prompt(rows: Sequence[TableRow], order: Order = "AB") -> str:
    """Render rows for a prompt, by slots of the order in which the texts are shown."""
    rows_by_slot: list[dict[str, str]] = []
    for row in rows:
        texts = (row["common"], *in_slots(order, row["only_a"], row["only_b"]))
        cells = [naming_slots(text, order) for text in texts]
        rows_by_slot.append({"aspect": row["aspect"], **dict(zip(_CELLS, cells, strict=True))})
    return as_table(rows_by_slot, ("aspect", "both", "only response 1", "only response 2"))


def may_number(rows: Sequence[TableRow]) -> bool:
    """Whether a cell has a 1 or a 2 of any script, which may stand for a text."""
    cells = " ".join(f"{row['common']} {row['only_a']} {row['only_b']}" for row in rows)
    return not {1, 2}.isdisjoint(map(int, re.findall(r"(?<!\d)\d(?!\d)", cells)))


def _table_cell(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return NOTHING if text.strip(" .").casefold() in _EMPTY else naming_ab(text, "AB")


def render_table(table: Mapping[str, Any] | None, names: tuple[str, str] = ("A", "B")) -> str:
    """Render a comparison table in Markdown, with its aspects as rows.

    Args:
        table: A table of `create_sc2_judge`.
        names: What the two texts are called in the head.

    Raises:
        InputError: There is no table.
    """
    if table is None:
        raise InputError("there is no table: SC² compared the texts without one")
    heads = ("Aspect", "In both", *(f"Only in {escaping.clean(name)}" for name in names))
    rows = [{key: escaping.clean(cell) for key, cell in row.items()} for row in table["rows"]]
    return as_table(rows, heads)


def as_table(rows: Sequence[Mapping[str, str]], heads: Sequence[str]) -> str:
    """The rows as a Markdown table; no cell can break out of its place."""
    cells = [[row[name] or NOTHING for name in ("aspect", *_CELLS)] for row in rows]
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join("| " + " | ".join(map(_in_a_cell, line)) + " |" for line in lines)


def _in_a_cell(text: str) -> str:
    # A backslash before a bar would undo the bar's own: every bar gets an odd number.
    return " ".join(re.sub(r"(\\*)\|", r"\1\1\\|", text).split())


def meetings(
    mode: Inference, contenders: Sequence[int], number: int, seed: str
) -> list[tuple[int, ...]]:
    """Who meets whom in a round, in the order they are shown; one alone has a bye.

    Args:
        mode: How the best table is found.
        contenders: The numbers of the tables that are left; neighbours meet.
        number: Of the round.
        seed: Seed of which table comes first.
    """
    if mode == "exact":
        return list(permutations(sorted(contenders), 2))
    coin = pairs.seeded(seed, "slots", number)
    neighbours = [tuple(contenders[i : i + 2]) for i in range(0, len(contenders), 2)]
    return [each if coin.random() < 0.5 else each[::-1] for each in neighbours]


def survivors(
    mode: Inference, contenders: Sequence[int], played: Sequence[TableMatch]
) -> list[int]:
    """Who is left after a round; with equal wins, whoever stands first among the contenders."""
    # Whoever had a bye stands first, so that nobody has two while others have none.
    winners = [match["winner"] for match in sorted(played, key=lambda m: len(m["tables"]))]
    return [max(contenders, key=winners.count)] if mode == "exact" else winners


def seeded_order(entrants: Iterable[int], seed: str) -> list[int]:
    """Tables in an order that depends on the seed alone."""
    order = sorted(entrants)
    pairs.seeded(seed, "shuffle").shuffle(order)
    return order


def decide(options: SC2, choices: Sequence[PreferenceReply], account: Account, how: str) -> Verdict:
    """Combine the preferences of all orders into the verdict.

    Args:
        options: Say which orders were asked, and how they are combined.
        choices: What the calls said.
        account: Of the row.
        how: How the table was found, for the rationale.
    """
    answers = {
        choice["order"]: pairs.OrderAnswer(choice["preference"], probability=choice["probability"])
        for choice in choices
    }
    verdict = pairs.order_verdict(options, answers, account, how)
    if (score := verdict["score"]) is None:
        return verdict
    agreeing = [c for c in choices if c["preference"] == verdict["preference"]]
    words = " ".join(pairs.first_reason(agreeing, "comparison").split())
    words = words if len(words) <= 300 else words[:299] + "…"
    scores = {"A": score, "B": 1 - score}
    return {**verdict, "scores": scores, "rationale": f"{verdict['rationale']} {words}".strip()}


def search_sentence(
    table: ComparisonTable | None, sampled: int, mode: Inference, bracket: Sequence[TableMatch]
) -> str:
    """Sentence that says which table decided, and after how many comparisons."""
    if table is None:
        return "There is no table: the texts were compared directly."
    name = f"Table {table['number']} of {sampled}"
    if not bracket:
        return f"{name}, drawn at random." if mode == "random" else f"{name}."
    calls = sum(match["asked"] for match in bracket)
    coins = sum(match["decided_by"] == "coin" for match in bracket)
    by_coin = f", {coins} settled by a coin" if coins else ""
    return f"{name} won: {calls} comparison{'s' * (calls != 1)}{by_coin}."
