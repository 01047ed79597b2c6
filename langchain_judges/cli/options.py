"""Options that several commands take, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from annotated_types import Ge

from langchain_judges.options import Options
from langchain_judges.runs.options import RunOptions


def flag(
    name: str, *flags: str, of: type[Options] = RunOptions, metavar: str | None = None
) -> Any:
    """Return the flag of an option declared elsewhere: its meaning and its lowest value.

    Args:
        name: The option.
        *flags: How it is called on a shell, if not by its own name.
        of: The class that declares it.
        metavar: What its value is called in the help.
    """
    field = of.model_fields[name]
    low = next((mark.ge for mark in _marks(field.annotation) if isinstance(mark, Ge)), None)
    text = " ".join((field.description or "").split()).replace("`", "")
    return typer.Option(*flags, min=low, help=text, metavar=metavar)  # type: ignore[arg-type]


_MODEL = typer.Option(
    help="local, local:/path.gguf or a name such as openai:gpt-5-mini; for a jury several, "
    "separated by commas."
)


def _marks(annotation: Any) -> list[Any]:
    """Return what is noted beside a type or any part of it."""
    own = list(getattr(annotation, "__metadata__", ()))
    return own + [mark for part in get_args(annotation) for mark in _marks(part)]


Model = Annotated[str, _MODEL]
OptionalModel = Annotated[str | None, _MODEL]
Method = Annotated[
    str, typer.Option(help="The judging method; langchain-judges methods lists them.")
]
Preset = Annotated[
    str | None,
    typer.Option(help="A preset of the method; langchain-judges methods METHOD lists them."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="An option of the method: NAME=VALUE, with VALUE as JSON, such as "
        'criteria=\'["Accuracy", "Tone"]\'. langchain-judges methods METHOD lists them.',
    ),
]
PairRows = Annotated[
    Path,
    typer.Argument(
        help="JSONL, CSV, TSV or Parquet file with input, output_a, output_b; or a public "
        "data set, by its name or folder."
    ),
]
MethodSettings = Annotated[
    list[str] | None,
    typer.Option("--set", help="An option of one method: METHOD.NAME=VALUE, VALUE as JSON."),
]
Shots = Annotated[
    int, typer.Option(min=0, help="Worked examples for every method that shows some.")
]
Aspects = Annotated[
    str | None, typer.Option(help="Aspects to compare by, separated by commas.")
]
Spec = Annotated[
    Path | None,
    typer.Option(help="A judge as JSON: method, model, options; in place of these."),
]
ModelSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--model-set",
        metavar="NAME=VALUE",
        help="A setting of the model: NAME=VALUE, such as reasoning_effort=low; repeat it for "
        "several.",
    ),
]
Memory = Annotated[Path | None, typer.Option(help="Folder of a memory of audited mistakes.")]
BaseUrl = Annotated[str | None, typer.Option(help="Address of an OpenAI-compatible server.")]
ShardOf = Annotated[str | None, flag("shard", "--shard", metavar="NUMBER/OF")]
Batch = Annotated[
    bool,
    typer.Option(
        "--batch",
        help="Ask by jobs of the provider's batch API, at half price, within a day. Needs "
        "--out; the jobs are remembered beside it.",
    ),
]
LiveAfter = Annotated[
    float | None,
    typer.Option(
        "--live-after",
        metavar="HOURS",
        help="Cancel a batch job that takes longer, and ask what it left by ordinary calls, at "
        "their full price.",
    ),
]
Prices = Annotated[Path | None, flag("prices", "--prices")]
DryRunPrices = Annotated[
    Path | None,
    typer.Option(
        "--prices", help="Prices of tokens for --dry-run: a JSON file, or genai-prices."
    ),
]
MaxCost = Annotated[float | None, flag("max_cost", "--max-cost")]
RequestsAMinute = Annotated[
    float | None, typer.Option("--rpm", min=0.001, help="Most requests a minute.")
]
TokensAMinute = Annotated[
    float | None, typer.Option("--tpm", min=0.001, help="Most tokens a minute.")
]
OpenRows = Annotated[int | None, flag("open_rows", "--open-rows")]
OpenMegabytes = Annotated[float, flag("open_mb", "--open-mb")]
WithTexts = Annotated[bool, flag("with_texts", "--with-texts")]
Concurrency = Annotated[int | None, flag("max_concurrency", "--concurrency")]
Timeout = Annotated[
    float, typer.Option(min=0.1, help="Seconds to wait for one reply; not for local.")
]
MaxCalls = Annotated[int | None, flag("max_calls")]
MaxTokens = Annotated[int | None, flag("max_tokens")]
Limit = Annotated[int | None, typer.Option(min=1, help="Take the first rows only.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="FIELD=COLUMN",
        help="A column of the table: FIELD=COLUMN, such as label=winner; repeat it "
        "for several. Other columns keep their names.",
    ),
]
Results = Annotated[Path | None, flag("out", "--out", "-o")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check the rows, count calls and tokens, and stop.")
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave bad rows out instead of stopping.")
]
KeepFailed = Annotated[bool, flag("keep_failed", "--keep-failed")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything failed.")]

SECONDS = 120.0
"""How long a command waits for one reply by default."""
