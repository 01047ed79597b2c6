"""The evaluations of the DRPE paper, rebuilt from their data with any model.

    python cookbook/protocol_drpe.py --model openai:gpt-5-mini --data ../data -o study
    python cookbook/protocol_drpe.py --model local --data ../data --only cnn2022 --limit 10

`--data` is a folder with the folders `goyal_news2022` and `summeval16`.

Studies: `cnn2022` and `bbc2022` (Goyal et al. 2022: the summaries people named best and
worst; human value 1 or 0) and `summeval` (two best and two worst of 16 systems; human value
the mean rating). Every summary is scored against a reference; CNN and BBC have none, so
`--reference-model` writes one for each article, once, and the run keeps it.

It prints |Pearson| with a bootstrap interval clustered by article, Kendall's tau, Williams'
test against the single-prompt judge, what each method cost, |Pearson| over the number of
generated roles, and over the five wordings. All methods share one cache of replies, so that
they judge by the same panels; run it again to resume after a stop.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any

import typer
from langchain_core.prompts import ChatPromptTemplate
from protocols import (
    BaseUrl,
    Concurrency,
    Data,
    Limit,
    Model,
    Out,
    Replies,
    Seed,
    in_flight,
    inside,
    named,
    program,
    sharing,
    whole_lines,
)
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from langchain_judges import judge_many, load_judge, resolve_model
from langchain_judges.asking.ask import Question, ask
from langchain_judges.asking.channel import Channel
from langchain_judges.asking.steps import run
from langchain_judges.cli.common import table_console
from langchain_judges.datasets import load
from langchain_judges.datasets.summaries import NEWS_RULES
from langchain_judges.errors import needs
from langchain_judges.methods.drpe.roles import SETS as ROLES
from langchain_judges.methods.drpe.roles import SUBJECTIVE
from langchain_judges.metrics import bootstrap, pearson, williams_test
from langchain_judges.writing.overlap import OVERLAPS, overlap

STUDIES = ("cnn2022", "bbc2022", "summeval")
_SETS = {
    "cnn2022": "goyal_news2022",
    "bbc2022": "goyal_news2022",
    "summeval": "summeval16",
}
"""The set of each study, as its folder is called."""
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
RIVAL = "llm_score"
SWEPT = {"drpe": "summary", "no_static": [], "manual": "manual"}
"""Static roles of the panels whose number of generated roles is varied; of the manual panel the
roles with a point of view are, beside the three static ones, and nothing is generated."""
SIZES = (0, 2, 4, 6)
PAIRED = {"drpe_v1"}
"""Compare the best with the worst text directly; the others score each against B."""

_REFERENCE = ChatPromptTemplate.from_messages(
    [("human", "Summarize this article in two or three sentences.\n\n{article}")]
)


class _Summary(BaseModel):
    summary: str


@dataclass
class Study:
    """Rows of one study, and what people said of each."""

    name: str
    candidates: list[dict[str, Any]]
    """One row for each summary: A the summary, B the reference."""
    pairs: list[dict[str, Any]] = field(default_factory=list)
    """The best against the worst of each article, by whom people liked more."""
    tokens_of_references: int = 0

    def human(self) -> dict[str, float]:
        """Return the human value of each summary."""
        return {row["id"]: float(row["label"]) for row in self.candidates}


@dataclass(frozen=True)
class Settings:
    """What every study is run with."""

    data: Path | None
    rule: str
    methods: tuple[str, ...]
    limit: int | None
    sweeps: bool
    seed: int
    concurrency: int
    max_calls: int | None
    resamples: int


def main(  # noqa: PLR0913 - one parameter for each option
    model: Model,
    base_url: BaseUrl = None,
    data: Data = None,
    out: Out = Path("drpe-study"),
    limit: Limit = None,
    only: Annotated[str, typer.Option(help="Studies, with commas between.")] = "",
    methods: Annotated[str, typer.Option(help="Methods, with commas between.")] = "",
    reference_model: Annotated[
        str | None, typer.Option(help="Writes references; default the model.")
    ] = None,
    rule: Annotated[str, typer.Option(help="Which articles of CNN and BBC.")] = "unique",
    sweeps: Annotated[bool, typer.Option(help="Vary sizes and wordings too.")] = True,
    resamples: Annotated[int, typer.Option(min=1, help="Of each interval.")] = 2000,
    seed: Seed = 0,
    concurrency: Concurrency = None,
    max_calls: Annotated[int | None, typer.Option(help="Most calls of each method.")] = None,
) -> dict[str, Any]:
    """Run the studies of the DRPE paper; the same command resumes where it stopped."""
    studies = named(only, STUDIES, "--only") or STUDIES
    (chosen,) = named(rule, NEWS_RULES, "--rule")
    settings = Settings(
        data,
        chosen,
        tuple(named(methods, (*METHODS, *OVERLAPS), "--methods")) or METHODS,
        limit,
        sweeps,
        seed,
        in_flight(model, concurrency),
        max_calls,
        resamples,
    )
    for name in studies:
        inside(data, _SETS[name])
    console = table_console()
    chat = resolve_model(model, base_url=base_url)
    writer = resolve_model(reference_model) if reference_model else chat
    replies = Replies(out / "replies.jsonl")
    chat = sharing(chat, replies)
    found: dict[str, Any] = {"model": model, "rule": settings.rule, "studies": {}}
    out.mkdir(parents=True, exist_ok=True)
    if set(studies) - {"summeval"}:
        _print_rules(console, inside(data, "goyal_news2022"))
    for name in studies:
        study = _study(name, settings, writer, out)
        found["studies"][name] = _one_study(study, chat, settings, out / name, console)
    (out / "results.json").write_text(json.dumps(found, indent=1))
    console.print(replies.sentence())
    console.print(f"Every figure is in {out / 'results.json'}.")
    return found


def _print_rules(console: Console, news: Path) -> None:
    """Print how many articles each reading of "at least two of three votes" keeps."""
    for rule in NEWS_RULES:
        kept = [
            len(list(load("goyal_news2022", news, dataset=name, rule=rule)))
            for name in ("cnn2022", "bbc2022")
        ]
        console.print(f"rule {rule!r} keeps {kept[0]} CNN and {kept[1]} BBC articles")


def _study(name: str, options: Settings, writer: Any, out: Path) -> Study:
    folder = inside(options.data, _SETS[name])
    if name == "summeval":
        rows = load("summeval16", folder, form="candidates", select="extremes")
        candidates = list(_first(rows, options.limit))
        return Study(name, candidates, _best_and_worst(candidates))
    chosen: dict[str, Any] = {"dataset": name, "rule": options.rule, "form": "candidates"}
    rows = load("goyal_news2022", folder, **chosen)
    candidates = list(_first(rows, options.limit))
    written = _references(candidates, writer, out / f"references-{name}.jsonl")
    for row in candidates:
        row["output_b"] = written[row["group"]]["reference"]
    tokens = sum(each["tokens"] for each in written.values())
    return Study(name, candidates, _best_and_worst(candidates), tokens)


def _first(rows: Any, limit: int | None) -> Iterator[dict[str, Any]]:
    """Return the rows of the first so many articles."""
    groups: set[str] = set()
    for row in rows:
        groups.add(row["group"])
        if limit is not None and len(groups) > limit:
            return
        yield dict(row)


def _best_and_worst(candidates: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Pair the best with the worst, the second best with the second worst, and so on."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in candidates:
        groups.setdefault(row["group"], []).append(row)
    pairs = []
    for group, rows in groups.items():
        ranked = sorted(rows, key=lambda row: -row["label"])
        for better, worse in zip(ranked, reversed(ranked), strict=True):
            if better["label"] <= worse["label"]:
                break
            pairs.append(
                {
                    "id": f"{better['id']}|{worse['id']}",
                    "input": better["input"],
                    "output_a": better["output_a"],
                    "output_b": worse["output_a"],
                    "group": group,
                    "label": "A",
                }
            )
    return pairs


def _references(
    rows: Sequence[Mapping[str, Any]], writer: Any, path: Path
) -> dict[str, dict[str, Any]]:
    """Return a reference for each article; what an earlier run wrote is not paid again."""
    known = {row["group"]: row for row in map(json.loads, whole_lines(path))}
    question = Question("protocol", "reference", Channel(writer), _REFERENCE, _Summary, "1")
    with path.open("a") as file:
        for row in rows:
            if row["group"] in known:
                continue
            reply = run(ask(question, {"article": row["input"]}, unit=row["group"]))
            if reply.data is None:
                raise SystemExit(f"No reference for {row['group']}: {reply.failures}")
            usage = reply.usage
            known[row["group"]] = {
                "group": row["group"],
                "reference": reply.data["summary"],
                "tokens": usage["input_tokens"] + usage["output_tokens"],
                "calls": usage["calls"],
            }
            file.write(json.dumps(known[row["group"]]) + "\n")
            file.flush()
    return known


def _one_study(
    study: Study, model: Any, options: Settings, out: Path, console: Console
) -> dict[str, Any]:
    out.mkdir(parents=True, exist_ok=True)
    scored: dict[str, dict[str, float | None]] = {}
    cost: dict[str, dict[str, int]] = {}
    for name in options.methods:
        if name in OVERLAPS:
            texts = [row["output_a"] for row in study.candidates]
            refs = [[row["output_b"]] for row in study.candidates]
            values = overlap(name, texts, refs)
            ids = [row["id"] for row in study.candidates]
            scored[name] = dict(zip(ids, values, strict=True))
            continue
        judge = _judge(name, model, options.seed)
        scored[name], cost[name] = _run(judge, study, name in PAIRED, options, out / name)
    human = study.human()
    groups = {row["id"]: row["group"] for row in study.candidates}
    table = {
        name: _figures(scores, human, groups, scored.get(RIVAL), options)
        for name, scores in scored.items()
    }
    _print_table(console, study, table, cost)
    result: dict[str, Any] = {
        "articles": len(set(groups.values())),
        "summaries": len(human),
        "tokens_of_references": study.tokens_of_references,
        "methods": table,
        "cost": cost,
    }
    if options.sweeps:
        result["sizes"] = _sizes(study, model, options, out, console)
        result["wordings"] = _wordings(study, model, options, out, console)
    return result


def _judge(name: str, model: Any, seed: int) -> Any:
    if name == RIVAL:
        return load_judge(RIVAL, model)
    return load_judge("drpe", model, preset=name, seed=seed)


def _run(
    judge: Any, study: Study, paired: bool, options: Settings, path: Path
) -> tuple[dict[str, float | None], dict[str, int]]:
    """Judge every row and return each summary's score, and the cost."""
    rows = study.pairs if paired else study.candidates
    shown = [{key: row[key] for key in row if key != "human"} for row in rows]
    scores: dict[str, float | None] = {}
    cost = {"calls": 0, "tokens": 0}
    with judge_many(
        judge,
        shown,
        out=f"{path}.jsonl",
        max_concurrency=options.concurrency,
        max_calls=options.max_calls,
        progress=sys.stderr.isatty(),
    ) as results:
        for row in results:
            if paired:
                better, worse = row["id"].split("|")
                scores[better], scores[worse] = _sums(row)
            else:
                scores[row["id"]] = _score(row)
            usage = row["verdict"]["usage"]
            cost["calls"] += usage["calls"]
            cost["tokens"] += usage["input_tokens"] + usage["output_tokens"]
    return scores, cost


def _score(row: Mapping[str, Any]) -> float | None:
    """Return what the protocol correlates: the normalised sum for the candidate."""
    # None too where candidate and reference are the same text: that score has no meaning.
    known: float | None = row.get("score_norm", row.get("llm_score"))
    return known


def _sums(row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    sums = row["verdict"]["scores"]
    valid = sum(vote["preference"] is not None for vote in row.get("votes") or [])
    if not sums or not valid:
        return None, None
    return sums["A"] / valid, sums["B"] / valid


def _figures(
    scores: Mapping[str, float | None],
    human: Mapping[str, float],
    groups: Mapping[str, str],
    rival: Mapping[str, float | None] | None,
    options: Settings,
) -> dict[str, Any]:
    """Return the statistics of one method; what could not be judged is left out, counted."""
    ids = [each for each in human if scores.get(each) is not None]
    x, y = [float(scores[i] or 0.0) for i in ids], [human[i] for i in ids]
    found: dict[str, Any] = {"n": len(ids), "not_judged": len(human) - len(ids)}
    if len(ids) < 3 or len(set(x)) < 2 or len(set(y)) < 2:
        return {**found, "pearson": None, "why": "the scores or the human values are constant"}
    clusters = [groups[i] for i in ids]
    for name in ("pearson", "kendall"):
        drawn = bootstrap(
            name, x, y, groups=clusters, resamples=options.resamples, seed=options.seed
        )
        value = float(drawn)
        found[name] = abs(value)
        if drawn.interval:
            # The papers print absolute values; the interval is turned with the sign.
            low, high = drawn.interval
            found[f"{name}_95"] = [low, high] if value >= 0 else [-high, -low]
    both = [i for i in ids if rival and rival.get(i) is not None]
    if rival is None or rival is scores or len(both) < 4:
        return found
    own, other = [float(scores[i] or 0.0) for i in both], [float(rival[i] or 0.0) for i in both]
    truth = [human[i] for i in both]
    r = [abs(float(pearson(a, b))) for a, b in ((own, truth), (other, truth), (own, other))]
    if all(value == value for value in r):
        found["williams"] = williams_test(r[0], r[1], r[2], len(both))._asdict()
    return found


def _sizes(
    study: Study, model: Any, options: Settings, out: Path, console: Console
) -> dict[str, list[float | None]]:
    """Return |Pearson| of each panel over its number of generated roles, and draw it."""
    found: dict[str, list[float | None]] = {}
    few = replace(options, resamples=2)
    human = study.human()
    groups = {row["id"]: row["group"] for row in study.candidates}
    for name, static in SWEPT.items():
        found[name] = []
        for size in SIZES:
            if not static and not size:
                found[name].append(None)  # a panel of nobody
                continue
            panel = {"static": static, "dynamic": size}
            if name == "manual":
                seated = [*ROLES["summary"], *SUBJECTIVE[:size]]
                panel = {"static": seated, "dynamic": 0}
            judge = load_judge("drpe", model, panel=panel, seed=options.seed)
            scores, _ = _run(judge, study, False, options, out / f"size-{name}-{size}")
            figures = _figures(scores, human, groups, None, few)
            found[name].append(figures["pearson"])
    table = Table("panel", *[f"{size} generated" for size in SIZES], title="|Pearson|")
    for name, values in found.items():
        table.add_row(name, *["-" if value is None else f"{value:.3f}" for value in values])
    console.print(table)
    _draw(study.name, found, out / "sizes.png")
    return found


def _draw(name: str, found: Mapping[str, Sequence[float | None]], path: Path) -> None:
    with needs("trust", "A plot"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for (panel, values), style in zip(found.items(), ("o-", "s--", "^:"), strict=True):
        drawn = [(k, v) for k, v in zip(SIZES, values, strict=True) if v is not None]
        axes.plot([k for k, _ in drawn], [v for _, v in drawn], style, label=panel)
    axes.set(xlabel="generated roles", ylabel="|Pearson| with people", title=name)
    axes.set_xticks(SIZES)
    axes.legend()
    figure.savefig(path, dpi=150)


def _wordings(
    study: Study, model: Any, options: Settings, out: Path, console: Console
) -> dict[str, Any]:
    """Return the mean and standard deviation of |Pearson| over the five wordings."""
    human = study.human()
    groups = {row["id"]: row["group"] for row in study.candidates}
    values: list[float | None] = []
    few = replace(options, resamples=2)
    for variant in range(5):
        judge = load_judge("drpe", model, voting={"variant": variant}, seed=options.seed)
        scores, _ = _run(judge, study, False, options, out / f"wording-{variant}")
        values.append(_figures(scores, human, groups, None, few)["pearson"])
    known = [value for value in values if value is not None]
    spread = stdev(known) if len(known) > 1 else None
    mean = fmean(known) if known else None
    if mean is not None and spread is not None:
        console.print(f"|Pearson| over five wordings: {mean:.3f} ± {spread:.3f}")
    return {"values": values, "mean": mean, "sd": spread}


def _print_table(
    console: Console,
    study: Study,
    figures: Mapping[str, Mapping[str, Any]],
    cost: Mapping[str, Mapping[str, int]],
) -> None:
    table = Table(
        *("method", "n", "not judged", "|Pearson| (95 %)", "tau (95 %)"),
        *(f"p against {RIVAL}", "calls", "tokens"),
        title=f"{study.name}: {len(study.candidates)} summaries",
    )
    for name, row in figures.items():
        if row["pearson"] is None:
            strength, tau = row["why"], "-"
        else:
            strength, tau = (_with_interval(row, name) for name in ("pearson", "kendall"))
        test = row.get("williams")
        paid = cost.get(name, {"calls": 0, "tokens": 0})
        table.add_row(
            name,
            str(row["n"]),
            str(row["not_judged"]),
            strength,
            tau,
            f"{test['p']:.4f}" if test else "-",
            f"{paid['calls']:,}",
            f"{paid['tokens']:,}",
        )
    console.print(table)
    if study.tokens_of_references:
        console.print(f"The references took {study.tokens_of_references:,} tokens more.")
    if "drpe" in cost and cost.get("no_batch", {}).get("tokens"):
        whole, batch = cost["no_batch"]["tokens"], cost["drpe"]["tokens"]
        console.print(
            f"Asking all roles in one call took {batch:,} tokens instead of {whole:,}: "
            f"{1 - batch / whole:.0%} saved."
        )


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    ends = row.get(f"{name}_95")
    return f"{row[name]:.3f}" + (f" ({ends[0]:.3f} to {ends[1]:.3f})" if ends else "")


if __name__ == "__main__":
    program(main)()
