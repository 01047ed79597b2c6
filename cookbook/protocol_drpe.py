"""The evaluations of the DRPE paper, rebuilt from their data with any model.

    python cookbook/protocol_drpe.py --model openai:gpt-5-mini --data ../data -o study
    python cookbook/protocol_drpe.py --model local --data ../data --only cnn2022 --limit 10

`--data` is a folder with the folders `goyal_news2022` and `summeval16`.

Studies: `cnn2022` and `bbc2022` (Goyal et al. 2022: the summaries people named best and
worst; human value 1 or 0) and `summeval` (two best and two worst of 16 systems; human value
the mean rating). Every summary is scored against a reference; CNN and BBC have none, so
`--reference-model` writes one for each article, once, and the run keeps it: three to four
sentences for CNN, one for BBC.

It prints for each study |Pearson| and Kendall's tau with bootstrap intervals clustered by
article, Williams' test and a paired bootstrap of tau against the judge without roles, and what
each method costs alone; then one table of |Pearson|, methods by sets, with their mean (Tables 1
and 2). `drpe_v1` adds Table 1 of the first version: best against worst, for it and, where they
are among `--methods`, `manual` and `llm_score`, tested among themselves. `--wordings 5` gives
mean and deviation over five wordings of the question; `--sweeps` varies the number of roles.
All methods share one cache of replies, so that they judge by the same panels; run it again to
resume after a stop.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import protocols
import typer
from drpe_rows import SETS, Study, read_study
from drpe_tables import (
    RIVAL,
    SIZES,
    Figures,
    Scores,
    draw_sizes,
    figures,
    print_main_table,
    print_study,
    spread,
)
from protocols import Replies, in_flight, inside, named, program, sharing
from rich.console import Console

from langchain_judges import judge_many, load_judge, resolve_model
from langchain_judges.cli.messages import table_console
from langchain_judges.datasets import load
from langchain_judges.datasets.summaries import NEWS_RULES
from langchain_judges.errors import MissingExtraError
from langchain_judges.methods.drpe.roles import SETS as ROLES
from langchain_judges.methods.drpe.roles import SUBJECTIVE
from langchain_judges.methods.tasks import TASKS
from langchain_judges.writing.overlap import OVERLAPS, overlap

METHODS = (
    "drpe",
    "no_batch",
    "no_clustering",
    "no_dynamic",
    "no_static",
    "manual",
    "drpe_v1",
    "llm_score",
)
SWEPT = {"drpe": "summary", "no_static": [], "manual": "manual"}
"""Static roles of the panels whose number of generated roles is varied; of the manual panel the
roles with a point of view are, beside the three static ones, and nothing is generated."""
PAIRED = ("drpe_v1", "manual", RIVAL)
"""Compare the best with the worst text directly, as the first version does; the first of them
in this way alone, the others score each text against B too."""

QUESTIONS = (
    TASKS["summary"]["question"],
    "Which of the two tells the most important points of the text better?",
    "Of the two, which one is the better account of what matters most in the text?",
    "The most important points of the text: which of the two sums them up better?",
    "Which of the two would you choose as the summary of the main points of the text?",
)
"""What every judge is asked, in five wordings."""


@dataclass(frozen=True)
class Settings:
    """What every study is run with."""

    data: Path | None
    rule: str
    methods: tuple[str, ...]
    limit: int | None
    sweeps: bool
    wordings: int
    seed: int
    concurrency: int
    max_calls: int | None
    resamples: int


def main(  # noqa: PLR0913 - one parameter for each option
    model: protocols.Model,
    base_url: protocols.BaseUrl = None,
    data: protocols.Data = None,
    out: protocols.Out = Path("drpe-study"),
    limit: protocols.Limit = None,
    only: Annotated[str, typer.Option(help="Studies, with commas between.")] = "",
    methods: Annotated[str, typer.Option(help="Methods, with commas between.")] = "",
    reference_model: Annotated[
        str | None, typer.Option(help="Writes references; default the model.")
    ] = None,
    rule: Annotated[str, typer.Option(help="Which articles of CNN and BBC.")] = "unique",
    sweeps: Annotated[bool, typer.Option(help="Vary the number of roles too.")] = True,
    wordings: Annotated[
        int, typer.Option(min=1, max=5, help="Of the question; mean and deviation.")
    ] = 1,
    resamples: Annotated[int, typer.Option(min=1, help="Of each interval.")] = 2000,
    seed: protocols.Seed = 0,
    concurrency: protocols.Concurrency = None,
    max_calls: Annotated[int | None, typer.Option(help="Most calls of each method.")] = None,
) -> dict[str, Any]:
    """Run the studies of the DRPE paper; the same command resumes where it stopped."""
    studies = named(only, SETS, "--only") or list(SETS)
    (news_rule,) = named(rule, NEWS_RULES, "--rule")
    settings = Settings(
        data,
        news_rule,
        tuple(named(methods, (*OVERLAPS, *METHODS), "--methods")) or (*OVERLAPS, *METHODS),
        limit,
        sweeps,
        wordings,
        seed,
        in_flight(model, concurrency),
        max_calls,
        resamples,
    )
    for name in studies:
        inside(data, SETS[name])
    console = table_console()
    chat = resolve_model(model, base_url=base_url)
    writer = resolve_model(reference_model) if reference_model else chat
    replies = Replies(out / "replies.jsonl")
    chat = sharing(chat, replies)
    result: dict[str, Any] = {"model": model, "rule": settings.rule, "studies": {}}
    out.mkdir(parents=True, exist_ok=True)
    if set(studies) - {"summeval"}:
        _print_rules(console, inside(data, "goyal_news2022"))
    for name in studies:
        folder = inside(data, SETS[name])
        study = read_study(name, folder, settings.rule, limit, seed, writer, out)
        result["studies"][name] = _one_study(study, chat, settings, out / name, console)
    result["table"] = print_main_table(console, result["studies"])
    (out / "results.json").write_text(json.dumps(result, indent=1))
    console.print(replies.sentence())
    console.print(f"Every figure is in {out / 'results.json'}.")
    return result


def _print_rules(console: Console, news: Path) -> None:
    """Print how many articles each reading of "at least two of three votes" keeps."""
    for rule in NEWS_RULES:
        counts = [
            len(list(load("goyal_news2022", news, dataset=name, rule=rule)))
            for name in ("cnn2022", "bbc2022")
        ]
        console.print(f"rule {rule!r} keeps {counts[0]} CNN and {counts[1]} BBC articles")


def _one_study(
    study: Study, model: Any, options: Settings, out: Path, console: Console
) -> dict[str, Any]:
    out.mkdir(parents=True, exist_ok=True)
    tables = {"methods": _against_reference(study, model, options, out)}
    if PAIRED[0] in options.methods:
        tables["pairs"] = _best_against_worst(study, model, options, out)
    for which, table in tables.items():
        if table:
            against = "a reference" if which == "methods" else "each other, best against worst"
            title = f"{study.name}: {len(study.candidates)} summaries against {against}"
            print_study(console, title, table)
    if study.tokens_of_references:
        console.print(f"The references took {study.tokens_of_references:,} tokens more.")
    result: dict[str, Any] = {
        "articles": len(set(study.groups().values())),
        "summaries": len(study.candidates),
        "tokens_of_references": study.tokens_of_references,
        **tables,
    }
    if options.sweeps:
        result["sizes"] = _sizes(study, model, options, out)
        draw_sizes(console, study.name, result["sizes"], out / "sizes.png")
    return result


def _against_reference(
    study: Study, model: Any, options: Settings, out: Path
) -> dict[str, Figures]:
    """Return the figures of each method that scores a summary against a reference."""
    runs: dict[str, list[Arm]] = {}
    absent: dict[str, Figures] = {}
    for name in options.methods:
        if name in OVERLAPS:
            try:
                runs[name] = [Arm(_overlaps(name, study))]
            except MissingExtraError as exc:
                absent[name] = {"pearson": None, "why": str(exc)}
        elif name != PAIRED[0]:
            runs[name] = [
                _run(_judge(name, model, options.seed, variant), study, False, options, file)
                for variant, file in _files(out, name, options.wordings)
            ]
    return absent | _all_figures(study, runs, options)


def _best_against_worst(
    study: Study, model: Any, options: Settings, out: Path
) -> dict[str, Figures]:
    """Return the figures of the methods that compare the best with the worst summary."""
    runs = {
        name: [
            _run(_judge(name, model, options.seed, variant), study, True, options, file)
            for variant, file in _files(out, f"pairs-{name}", options.wordings)
        ]
        for name in PAIRED
        if name in options.methods
    }
    return _all_figures(study, runs, options)


def _files(out: Path, name: str, wordings: int) -> list[tuple[int, Path]]:
    """Return the results file of each wording."""
    names = [f"{name}-wording-{n}" if n else name for n in range(wordings)]
    return list(enumerate(out / f"{each}.jsonl" for each in names))


def _all_figures(
    study: Study, runs: Mapping[str, Sequence[Arm]], options: Settings
) -> dict[str, Figures]:
    """Return what is printed of each method: of its first wording, and the mean of all."""
    human, groups = study.human(), study.groups()
    rival = runs[RIVAL][0].scores if RIVAL in runs else None
    table: dict[str, Figures] = {}
    for name, arms in runs.items():
        own, other = arms[0].scores, rival if name != RIVAL else None
        settings = {"resamples": options.resamples, "seed": options.seed}
        table[name] = figures(own, human, groups, other, **settings)
        table[name] |= {"calls": arms[0].calls, "tokens": arms[0].tokens}
        if len(arms) > 1:
            table[name]["wordings"] = spread([arm.scores for arm in arms], human)
    return table


@dataclass
class Arm:
    """One run of a method: the score of each summary, and its cost."""

    scores: Scores
    calls: int = 0
    tokens: int = 0


def _overlaps(name: str, study: Study) -> Scores:
    texts = [row["output_a"] for row in study.candidates]
    values = overlap(name, texts, [[row["output_b"]] for row in study.candidates])
    return dict(zip((row["id"] for row in study.candidates), values, strict=True))


def _judge(name: str, model: Any, seed: int, variant: int) -> Any:
    task = {**TASKS["summary"], "question": QUESTIONS[variant]}
    if name == RIVAL:
        return load_judge(RIVAL, model, task=task)
    return load_judge("drpe", model, preset=name, task=task, seed=seed)


def _run(judge: Any, study: Study, paired: bool, options: Settings, path: Path) -> Arm:
    """Judge every row and return each summary's score, and the cost."""
    rows = study.pairs if paired else study.candidates
    inputs = [{key: row[key] for key in row if key != "human"} for row in rows]
    arm = Arm({})
    with judge_many(
        judge,
        inputs,
        out=path,
        max_concurrency=options.concurrency,
        max_calls=options.max_calls,
        progress=sys.stderr.isatty(),
    ) as results:
        for row in results:
            if paired:
                arm.scores |= zip(row["systems"], _sums(row), strict=True)
            else:
                # None too where candidate and reference are the same text.
                arm.scores[row["id"]] = row.get("score_norm", row.get(RIVAL))
            usage = row["verdict"]["usage"]
            arm.calls += usage["calls"]
            arm.tokens += usage["input_tokens"] + usage["output_tokens"]
    return arm


def _sums(row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return both texts' sums over the valid votes."""
    sums, votes = row["verdict"]["scores"], row.get("votes")
    valid = 1 if votes is None else sum(vote["preference"] is not None for vote in votes)
    if not sums or not valid:
        return None, None
    return sums["A"] / valid, sums["B"] / valid


def _sizes(
    study: Study, model: Any, options: Settings, out: Path
) -> dict[str, list[float | None]]:
    """Return |Pearson| of each panel over its number of generated roles."""
    values: dict[str, list[float | None]] = {}
    for name, static in SWEPT.items():
        values[name] = []
        for size in SIZES:
            if not static and not size:
                values[name].append(None)  # a panel of nobody
                continue
            panel = {"static": static, "dynamic": size}
            if name == "manual":
                panel = {"static": [*ROLES["summary"], *SUBJECTIVE[:size]], "dynamic": 0}
            judge = load_judge("drpe", model, panel=panel, seed=options.seed)
            arm = _run(judge, study, False, options, out / f"size-{name}-{size}.jsonl")
            values[name] += spread([arm.scores], study.human())["values"]
    return values


if __name__ == "__main__":
    program(main)()
