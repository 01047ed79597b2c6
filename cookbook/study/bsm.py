"""Branch-Solve-Merge (Saha et al. 2023, section 4): tables 1 to 11 with any models.

Rows: `mtbench_human200` in the data folder (one majority label a pair, first turns), or a file
`votes.jsonl` there: people's votes on both turns, as `lmsys/mt_bench_human_judgments` has them
(`conversation_a`, `winner`, `judge`, `turn`; experts' alone), or rows with `human_votes`,
`turn`, `category` and `systems`. All arms ask as the paper does (`preset="paper"`). Figures:

- Ag, agreement: every person's vote is matched with the verdict, a tie with a tie; a pair that
  was not judged matches nothing. Table 9 takes the plurality of a pair's votes, once.
- PB, position bias: pairs whose two orders disagree, into or out of a tie too.
- LB, length bias: of the votes for the shorter answer (characters of the judged turn alone),
  those where the verdict is not that answer.
- Likeness of plans (section 4.3): the mean Jaccard index of their criteria's names, within a
  category and between categories.

Table 2 keeps the pairs with an answer by the judge (`--set self=NAME`) and divides by their
number; the paper divides PB by all 300 pairs. Tables 7, 10 and 11 take 100 drawn pairs. Table 6
is of stories: `AP`, the share of texts with every concept, and `MC`, the mean share of missing
ones; `win`, `tie` and `loss` against zero-shot, by the model in both orders; and the shares of
texts that lack something by the step that lost it. Only table 4 shows a reference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import combinations
from statistics import fmean
from typing import Any

from cookbook.study.runner import Arm, Bench, Cell, Row, Rows, Table, first_groups
from langchain_judges.errors import InputError
from langchain_judges.metrics import length_bias, majority_agreement, mean, rate, vote_agreement
from langchain_judges.rows.texts import readable
from langchain_judges.writing.coverage import missing
from langchain_judges.writing.evaluation import create_story_judge, evaluate_writing


def _arm(name: str, method: str, **options: Any) -> tuple[str, Arm]:
    return name, Arm(name, method, {"preset": "paper", **options})


ARMS = dict(
    [
        _arm("relative", "relative"),
        _arm("absolute", "absolute"),
        _arm("plan & solve", "plan_solve"),
        _arm("self-consistency", "relative_sc"),
        _arm("BSM", "bsm"),
        _arm("BSM + self-consistency", "bsm", samples=5),
        _arm("BSM 1-10", "bsm", scale=(1, 10)),
        *(_arm(f"BSM {n} branches", "bsm", max_criteria=n) for n in (2, 3, 4)),
    ]
)
"""A judge for each line of the tables, by its name."""


def votes_of(row: Row) -> list[Any]:
    """People's votes on a pair."""
    return list(row.get("human_votes") or [row["label"]])


CATEGORIES = [
    "writing",
    "roleplay",
    "reasoning",
    "math",
    "coding",
    "extraction",
    "stem",
    "humanities",
]
"""Ten questions of MT-Bench each, numbered from 81 on."""


def read_pairs(bench: Bench) -> list[dict[str, Any]]:
    """The pairs of MT-Bench."""
    path = bench.data / "votes.jsonl" if bench.data and not bench.rows else None
    if path is not None and path.exists():
        records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return voted(records) if records and "conversation_a" in records[0] else records
    return [{"turn": 1, **row} for row in bench.load("mtbench_human200")]


def voted(records: Sequence[Row]) -> list[dict[str, Any]]:
    """A row for each question, pair of models and turn, with the experts' votes.

    A is the model that comes first by name. "tie (inconsistent)" is a tie; votes of the authors
    and of models are left out.
    """
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in records:
        if not str(record["judge"]).startswith("expert"):
            continue
        sides = sorted("ab", key=lambda side: str(record[f"model_{side}"]))
        systems = [str(record[f"model_{side}"]) for side in sides]
        key = (record["question_id"], *systems, record["turn"])
        row = rows.setdefault(key, _pair_of_turn(record, sides, systems))
        chosen = str(record["winner"]).removeprefix("model_")
        vote = "AB"[sides.index(chosen)] if chosen in sides else "tie"
        row["human_votes"].append(vote)
    return list(rows.values())


def _pair_of_turn(record: Row, sides: Sequence[str], systems: list[str]) -> dict[str, Any]:
    number, turn = record["question_id"], record["turn"]
    by_side = [record[f"conversation_{side}"][: 2 * turn] for side in sides]
    texts: dict[str, Any] = {
        "input": [dict(each) for each in by_side[0] if each["role"] == "user"],
        "output_a": [dict(each) for each in by_side[0] if each["role"] == "assistant"],
        "output_b": [dict(each) for each in by_side[1] if each["role"] == "assistant"],
    }
    if turn == 1:
        texts = {field: messages[0]["content"] for field, messages in texts.items()}
    return {
        "id": ":".join(map(str, (number, *systems, turn))),
        **texts,
        "group": str(number),
        "category": CATEGORIES[(number - 81) // 10],
        "turn": turn,
        "systems": systems,
        "human_votes": [],
    }


def of_category(
    category: str, bench: Bench, *, drawn: int | None = None, own: bool = False
) -> Rows:
    """A category's pairs, the first of them or a number that a seed draws.

    None shows a reference.
    """
    rows = [row for row in read_pairs(bench) if row["category"] == category or bench.rows]
    rows = [{name: row[name] for name in row if name != "reference"} for row in rows]
    if own:
        if "self" not in bench.extra:
            raise InputError("table 2 needs `--set self=NAME`, the judge among the systems")
        rows = [row for row in rows if bench.extra["self"] in row["systems"]]
    if drawn is not None:
        lots = sorted(rows, key=lambda row: _lot(bench.seed, row))[:drawn]
        ids = {row["id"] for row in lots}
        rows = [row for row in rows if row["id"] in ids]
    return first_groups(rows, bench.limit)


def _lot(seed: int, row: Row) -> bytes:
    return sha256(f"{seed}|{row['id']}".encode()).digest()


def with_references(category: str, bench: Bench) -> Rows:
    """Pairs with GPT-4's reference answers, which FastChat publishes, or with their own.

    A pair of the second turn gets the answers to both.
    """
    if bench.rows:
        return first_groups(read_pairs(bench), bench.limit)
    references = {
        int(question["group"]): question["references"]
        for question in bench.load("fastchat_mtbench")
        if question.get("references")
    }
    rows = []
    for row in of_category(category, bench):
        own = references.get(int(row["group"]))
        rows.append({**row, "reference": _reference(own[: row["turn"]])} if own else dict(row))
    return rows


def _reference(answers: Sequence[str]) -> str:
    if len(answers) == 1:
        return answers[0]
    return "\n\n".join(f"[Turn {turn}]\n{text}" for turn, text in enumerate(answers, 1))


def figures(
    arm: str, rows: Rows, results: Mapping[str, Rows], *, majority: bool = False
) -> dict[str, Cell]:
    """Ag, PB and LB, over all turns and for each where there are two."""
    own = results[arm]
    turns = sorted({row["turn"] for row in rows})
    parts: dict[str, list[int]] = {"": list(range(len(rows)))}
    if len(turns) > 1:
        for turn in turns:
            parts[f", turn {turn}"] = [n for n, row in enumerate(rows) if row["turn"] == turn]
    columns: dict[str, Cell] = {}
    for suffix, places in parts.items():
        chosen, verdicts = [rows[n] for n in places], [own[n] for n in places]
        columns |= {
            f"{name}{suffix}": cell for name, cell in _figures(chosen, verdicts, majority).items()
        }
    return columns


def _figures(rows: Sequence[Row], results: Sequence[Row], majority: bool) -> dict[str, Cell]:
    votes = [votes_of(row) for row in rows]
    questions = [row.get("group", row["id"]) for row in rows]
    agree = majority_agreement if majority else vote_agreement
    lengths = [[len(judged_turn(row[f"output_{side}"])) for row in rows] for side in "ab"]
    valid = [each["verdict"] for each in results if each["verdict"]["preference"]]
    return {
        "Ag": Cell.of(agree(results, votes, groups=questions)),
        "PB": Cell.of(rate(verdict["flipped"] for verdict in valid)),
        "LB": Cell.of(length_bias(results, votes, *lengths)),
    }


def judged_turn(text: Any) -> str:
    """The last answer of a conversation, which is the one that is judged."""
    return readable(text if isinstance(text, str) else text[-1:])


def likeness(arm: str, rows: Rows, results: Mapping[str, Rows]) -> dict[str, Cell]:
    """Likeness of plans, as columns."""
    plans = plan_likeness(rows, results[arm])
    return {name: Cell(value, len(rows)) for name, value in plans.items()}


def plan_likeness(rows: Rows, results: Rows) -> dict[str, float | None]:
    """Likeness of the plans of two questions: Jaccard, within and between categories.

    Likeness is of the names of the criteria; a question counts once (section 4.3).
    """
    plans: dict[Any, tuple[str, set[str]]] = {}
    for row, result in zip(rows, results, strict=True):
        names = {each["name"].casefold() for each in result.get("criteria") or []}
        if names:
            key = row["category"], row.get("group"), row["turn"]
            plans.setdefault(key, (row["category"], names))
    indices: dict[str, list[float]] = {"within": [], "between": []}
    for (one, mine), (other, theirs) in combinations(plans.values(), 2):
        index = len(mine & theirs) / len(mine | theirs)
        indices["within" if one == other else "between"].append(index)
    return {name: fmean(each) if each else None for name, each in indices.items()}


def _pairs(title: str, categories: Sequence[str], arms: Sequence[str], **how: Any) -> Table:
    majority = how.pop("majority", False)
    read = how.pop("read", of_category)
    return Table(
        title,
        {name: partial(read, name, **how) for name in categories},
        lambda bench, part: [ARMS[name] for name in arms],
        partial(figures, majority=majority),
        needs=frozenset({"self"} if how.get("own") else ()),
    )


# Stories (table 6).

STORIES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "zero-shot": ("single_prompt", {"preset": "zero_shot", "wording": "paper"}),
    "plan & solve": ("single_prompt", {"preset": "plan_solve", "wording": "paper"}),
    "self-consistency": ("single_prompt", {"preset": "self_consistency", "wording": "paper"}),
    "BSM": ("branch", {"preset": "paper"}),
}


def read_lists(bench: Bench) -> Rows:
    """A hundred lists of ten concepts, drawn by the seed."""
    return first_groups(bench.load("commongen_hard", seed=bench.seed), bench.limit)


def story_figures(arm: str, rows: Rows, results: Mapping[str, Rows]) -> dict[str, Cell]:
    """The share of texts with every concept, and the mean share that is missing.

    A text that was not written lacks every concept.
    """
    shares = [
        len(missing(row["concepts"], result["text"] or "")) / len(row["concepts"])
        for row, result in zip(rows, results[arm], strict=True)
    ]
    return {"AP": Cell.of(rate(share == 0 for share in shares)), "MC": Cell.of(mean(shares))}


def head_to_head(
    bench: Bench, part: str, rows: Rows, results: Mapping[str, Rows]
) -> dict[str, dict[str, Cell]]:
    """Each arm's stories against zero-shot's, and the shares of all by source of loss.

    A win needs both orders; a task for which one side has no text is left out.
    """
    del part, rows
    first, columns = next(iter(results)), dict[str, dict[str, Cell]]()
    for arm, own in results.items():
        compared = arm != first
        against = {"against": results[first], "judge": create_story_judge(bench.model)}
        measured = evaluate_writing(own, **(against if compared else {}))  # type: ignore[arg-type]
        failing, quality = measured["failing"] or {}, measured["quality"]
        columns[arm] = {
            f"lost in {step}": Cell(share, measured["written"]) for step, share in failing.items()
        }
        if quality:
            n = quality["compared"]
            columns[arm] |= {
                name: Cell(quality[name] / n if n else None, n) for name in ("win", "tie", "loss")
            }
    return columns


def _story_calls(bench: Bench, part: str) -> dict[str, int]:
    """Calls of comparing stories: three arms against the first, in both orders."""
    del part
    return {"comparing stories": 2 * (len(STORIES) - 1) * len(read_lists(bench))}


BOTH = ("relative", "BSM")
TABLES = {
    "1": _pairs(
        "All methods on writing",
        ["writing"],
        ["relative", "absolute", "plan & solve", "self-consistency", "BSM"],
    ),
    "2": _pairs("Self-enhancement: one answer by the judge", ["writing"], BOTH, own=True),
    "3": _pairs("Writing, by model", ["writing"], BOTH),
    "4": _pairs("With references", ["coding", "reasoning", "math"], BOTH, read=with_references),
    "5": _pairs("Other categories", ["roleplay", "extraction", "stem", "humanities"], BOTH),
    "6": Table(
        "Constrained writing",
        {"stories": read_lists},
        lambda bench, part: [Arm(name, *own) for name, own in STORIES.items()],
        story_figures,
        after=head_to_head,
        more=_story_calls,
    ),
    "7": Table(
        "Reasoning without references",
        {"reasoning (no reference)": partial(of_category, "reasoning", drawn=100)},
        lambda bench, part: [ARMS[name] for name in BOTH],
        figures,
    ),
    "8": _pairs("Samples of each branch", ["writing"], ["BSM", "BSM + self-consistency"]),
    "9": _pairs("Majority of the votes on writing", ["writing"], BOTH, majority=True),
    "10": _pairs(
        "Branching factor 2 to 5",
        ["writing"],
        [*(f"BSM {n} branches" for n in (2, 3, 4)), "BSM"],
        drawn=100,
    ),
    "11": _pairs("Scale of the scores", ["writing"], ["BSM", "BSM 1-10"], drawn=100),
    "plans": Table(
        "Likeness of plans (section 4.3)",
        {"all categories": lambda bench: first_groups(read_pairs(bench), bench.limit)},
        lambda bench, part: [ARMS["BSM"]],
        likeness,
    ),
}
