"""The experiments of ALLURE's paper through the whole command, on a judge that can learn."""

import base64
import gzip
import json
import re
import signal
import struct
from typing import Any

import protocol_allure
import pytest
from allure_sweep import run as module
from allure_sweep.averages import averaged, metrics_of
from allure_sweep.page import write_report
from allure_sweep.plan import Plan, plan_sweep
from allure_sweep.plots import PLOTS
from langchain_core.embeddings import DeterministicFakeEmbedding
from protocols import program
from typer.testing import CliRunner

from langchain_judges.datasets import load
from langchain_judges.errors import InputError, JudgeError, OptionError
from langchain_judges.memory.failure_memory import FailureMemory
from langchain_judges.memory.recall import all_
from langchain_judges.metrics import balanced_accuracy, cohen_kappa, precision
from langchain_judges.testing import FakeModelServer, reply, with_logprobs
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.model_server import refusal
from tests.planners import planning
from tests.processes import held, rows_in, start, wait_until

LEARNT = '{"label": "0"}'


def _words(tag, text):
    fenced = re.search(rf"<{tag}-(\w+)>\n(.*?)\n</{tag}-\1>", text, re.DOTALL)
    return re.findall(r"\w+", fenced[2].casefold()) if fenced else []


def fooled(prompt):
    """Look for the expected words alone, until two cases like that were called wrong."""
    earlier, _, item_text = prompt.rpartition("\n---\n")
    response, expected = _words("response", item_text), _words("expected-answer", item_text)
    warned = earlier.count(LEARNT) >= 2
    right = response[1:] == expected if warned else set(expected) <= set(response)
    return json.dumps({"label": str(int(right))})


def behave(call):
    return reply(fooled("\n---\n".join(str(m["content"]) for m in call.body["messages"])))


def written(path, rows):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in rows).encode()))


def records(items):
    """Return items in the form of CogEval's file."""
    for number, item in enumerate(items):
        yield {
            "path": item["id"],
            "graph": f"map{number % 4 // 2}",
            "domain": item["group"],
            "condition": ["1stepPath", "<b>detour</b>"][number // 2 % 2],
            "model": f"model-{number % 3}",
            "conversation": [{"role": "user", "content": item["input"]}],
            "response": item["output"],
            "parsed": item["output"],
            "expected": [item["expected"]],
        }


class Sweeping:
    """Runs the command on hand-made planning items."""

    def __init__(self, server, folder, items=20):
        self.server, self.data, self.out = server, folder / "cogeval", folder / "out"
        self.done: Any = None
        written(self.data / "sample.jsonl.gz", records(planning(items)))

    def __call__(self, *more, **options):
        settings = {"preset": "e1", "data": self.data, "sizes": "0,1,4", "draws": 2}
        arguments = ["--model", "fake", "--base-url", self.server.url, *map(str, more)]
        for name, value in {**settings, "out": self.out, **options}.items():
            arguments += [f"--{name}", str(value)]
        return CliRunner().invoke(
            program(protocol_allure.main), arguments, catch_exceptions=False
        )


@pytest.fixture(autouse=True)
def small_embeddings(monkeypatch):
    monkeypatch.setattr(
        module, "default_embeddings", lambda: DeterministicFakeEmbedding(size=8)
    )


@pytest.fixture
def no_plots(monkeypatch):
    """Leave out the plots, which take longer than the sweep."""
    monkeypatch.setattr("allure_sweep.page.PLOTS", ())


@pytest.fixture
def sweeping(serve, tmp_path, no_plots):
    """Return a sweep of 20 items, of which nothing was run yet; its page has no plots."""
    return Sweeping(serve(behave), tmp_path, items=10)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Return a whole sweep with its report, and what the command printed."""
    with FakeModelServer(behave) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "default_embeddings", lambda: DeterministicFakeEmbedding(size=8))
        sweep = Sweeping(server, tmp_path_factory.mktemp("swept"))
        sweep.done = sweep()
        assert sweep.done.exit_code == 0, sweep.done.output
        yield sweep


def results_of(out):
    return json.loads((out / "results.json").read_text())


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def held_out_rows(out, run):
    ids = json.loads((out / "split.json").read_text())["held_out"]
    by_id = {row["id"]: row for row in lines(out / "runs" / f"{run}.jsonl")}
    return [by_id[each] for each in ids]


def check_figures(out):
    """Compute figures anew from the rows alone, without the sweep's own functions."""
    results = results_of(out)
    for name, run in results["runs"].items():
        rows = held_out_rows(out, name)
        predictions, truth = [r["verdict"]["label"] for r in rows], [r["label"] for r in rows]
        figures = run["metrics"]
        right = [a == b for a, b in zip(predictions, truth, strict=True)]
        assert figures["accuracy"]["value"] == pytest.approx(sum(right) / len(right))
        assert run["errors"] == len(right) - sum(right)
        assert run["errors"] == sum(e["errors"] for e in run["errors_by_problem"].values())
        for metric, compute in (
            ("balanced_accuracy", balanced_accuracy), ("precision", precision),
        ):  # fmt: skip
            value = compute(predictions, truth)
            figure = figures[metric]["value"]
            assert figure == pytest.approx(float(value)) if figure is not None else value.reason
        recall_counts = [len(r["verdict"]["recalled"]) for r in rows]
        assert run["shown"] == pytest.approx(sum(recall_counts) / len(recall_counts))
    for each in results["sizes"]:
        single = [results["runs"][run]["metrics"]["accuracy"]["value"] for run in each["runs"]]
        mean = each["metrics"]["accuracy"]
        assert mean["value"] == pytest.approx(sum(single) / len(single))
        assert mean["low"] <= mean["value"] <= mean["high"]
    whole = [r["verdict"]["label"] for r in held_out_rows(out, "all")]
    for each in results["ablation"][1:]:
        predictions = [r["verdict"]["label"] for r in held_out_rows(out, each["run"])]
        kappa = cohen_kappa(predictions, whole)
        assert each["kappa"]["value"] == (None if kappa != kappa else pytest.approx(kappa))
    return results


def check_report(out):
    page = (out / "report.html").read_text()
    for plot in PLOTS:
        picture = (out / f"{plot.name}.png").read_bytes()
        width, height = struct.unpack(">II", picture[16:24])
        assert picture.startswith(b"\x89PNG")
        assert min(width, height) > 200
        assert base64.b64encode(picture).decode() in page
        assert f'<h2 id="{plot.name}">' in page
    return page


@pytest.mark.figures
def test_a_sweep_shows_what_remembering_brings(swept):
    results = check_figures(swept.out)
    page = check_report(swept.out)
    # Of each group one answer is right and one has the right rooms in a wrong order.
    accuracy = [each["metrics"]["accuracy"]["value"] for each in results["sizes"]]
    assert [each["size"] for each in results["sizes"]] == [0, 1, 4, "all"]
    assert accuracy == [0.5, 0.5, 1.0, 1.0]
    assert results["items"] == {"train": 28, "held_out": 12}
    assert results["examples"]["count"] == 14
    assert results["majority"] == 0.5
    assert results["runs"]["all"]["shown"] == 14
    assert [each["name"] for each in results["instructions"]] == [
        "bare", "criteria", "steps", "examples",
    ]  # fmt: skip
    assert [each["audited"] for each in results["learning_curve"]] == [0, 10, 19, 28]
    assert len(results["turned"]["items"]) == 6
    assert all(item["nearest"]["group"] for item in results["turned"]["items"])
    assert "auc" not in results["runs"]["all"]["metrics"]
    assert results["map"]["seeds"] == [0, 1, 2]
    assert "<b>detour</b>" not in page
    assert "&lt;b&gt;detour&lt;/b&gt;" in page
    assert "Leaks were allowed" not in page


@pytest.mark.figures
def test_leaving_out_the_only_mode_brings_the_errors_back(swept):
    results = results_of(swept.out)
    full, without = results["ablation"]
    assert (full["errors"], full["left_out"]) == (0, None)
    assert (without["errors"], without["left_out"]) == (6, "keywords")
    assert (without["false_positives"], without["false_negatives"]) == (6, 0)
    assert without["labels_changed"] == 6
    assert without["change_percent"] is None
    assert results["kappa"]["runs"] == ["none", "all", "without-keywords"]
    assert results["kappa"]["matrix"][1][1] == pytest.approx(1.0)


@pytest.mark.figures
def test_the_same_command_asks_nothing_again(swept, no_plots):
    first, calls = results_of(swept.out), len(swept.server.calls)
    again = swept()
    assert again.exit_code == 0, again.output
    assert len(swept.server.calls) == calls
    assert results_of(swept.out) == first


def test_a_spent_budget_stops_and_the_next_command_goes_on(sweeping):
    # 20 items once, and 6 of them in bare, criteria, 2 sizes × 2 draws, all, 1 mode, 2 points.
    # Two draws of one example would be the same one in seven times, and then cost nothing.
    limits = {"max-calls": 30, "sizes": "0,3,4"}
    codes = [sweeping(**limits).exit_code for _ in range(3)]
    assert codes == [3, 3, 0]
    results = check_figures(sweeping.out)
    # Without the only mode no example is left: that run asks nothing that `none` did not ask.
    assert len(sweeping.server.calls) == 20 + 6 * (len(results["runs"]) - 2) == 20 + 6 * 9


@pytest.mark.system
def test_ctrl_c_is_code_130_and_the_same_command_goes_on(sweeping):
    server, file = sweeping.server, sweeping.out / "runs" / "none.jsonl"
    server.replies, event = held(behave, lambda call: call.number >= 3)
    running = start(protocol_allure.__file__, "--preset", "e1", "--concurrency", 1,
                    "--model", "fake", "--base-url", server.url,
                    "--data", sweeping.data, "-o", sweeping.out)  # fmt: skip
    wait_until(lambda: rows_in(file) == 3)
    running.send_signal(signal.SIGINT)
    event.set()
    _, stderr = running.communicate()
    assert running.returncode == 130, stderr
    assert "resumes where it stopped" in stderr
    calls, result = len(server.calls), len(lines(file))
    assert 3 <= result < 20
    server.replies = behave
    assert sweeping(sizes="0,3,4").exit_code == 0
    assert len(server.calls) - calls == 20 - result + 6 * 9


def test_the_dry_run_counts_calls_by_the_closed_form(sweeping):
    result = sweeping("--dry-run")
    assert result.exit_code == 0
    # N + H (s r + f + p + 2) = 20 + 6 (2 * 2 + 6 + 3 + 2)
    assert "At most 110 calls" in result.stderr
    assert not sweeping.server.calls
    assert not sweeping.out.exists()


@pytest.mark.figures
def test_the_papers_own_setting_must_be_said_and_says_so(sweeping):
    result = sweeping("--allow-leak", sizes="0,3", draws=1)
    assert result.exit_code == 0, result.output
    results = check_figures(sweeping.out)
    assert "Leaks are allowed" in result.stderr
    assert "Leaks were allowed" in (sweeping.out / "report.html").read_text()
    assert "Leaks were allowed" in " ".join(result.stdout.split())
    assert results["leak_allowed"] is True
    assert results["items"] == {"train": 20, "held_out": 20}
    assert results["runs"]["all"]["leaked"] == 20
    # Of the ten mistakes each map has five, and an item sees those of its own map alone.
    assert results["runs"]["all"]["shown"] == 5


@pytest.mark.figures
def test_groups_held_out_share_nothing_with_those_of_the_examples(swept):
    split = json.loads((swept.out / "split.json").read_text())
    maps = [{re.sub(r"\D", "", each) for each in split[part]} for part in split]
    assert not maps[0] & maps[1]
    sources = {each["source"] for each in lines(swept.out / "memory.jsonl")}
    assert sources <= set(split["train"])
    results = results_of(swept.out)
    assert {run["leaked"] for run in results["runs"].values()} == {0}


def labelled(*items):
    return [{**item, "problem": "p", "systems": ["s"]} for item in items]


@pytest.mark.figures
def test_keyed_by_the_map_an_item_sees_examples_of_its_own_map_alone(sweeping):
    assert sweeping("--by-map", sizes="0,2", draws=1).exit_code == 0
    results = check_figures(sweeping.out)
    examples = {each["id"]: each for each in lines(sweeping.out / "memory.jsonl")}
    items = {item["id"]: item for item in load("cogeval", sweeping.data)}
    display = [
        (items[row["id"]], examples[each])
        for row in held_out_rows(sweeping.out, "all")
        for each in row["verdict"]["recalled"]
    ]
    assert {item["family"] == example["family"] for item, example in display} == {True}
    assert {item["expected"] == example["expected"] for item, example in display} == {False}
    # Of the ten mistakes of ten groups those of seven are remembered, by turns of two maps.
    assert results["runs"]["all"]["shown"] < results["examples"]["count"] == 7
    assert "own family alone" in (sweeping.out / "report.html").read_text()


def test_a_plan_with_a_shared_group_is_refused_unless_it_says_so():
    right, wrong = labelled(*planning(1))
    with pytest.raises(InputError, match="held out, but its group 'house 0'"):
        Plan("e1", (right,), (wrong,))
    assert Plan("e1", (right,), (wrong,), allow_leak=True).allow_leak


def test_a_judge_that_was_shown_its_own_group_stops_the_sweep():
    memory = FailureMemory(embeddings=DeterministicFakeEmbedding(size=8))
    right, wrong = planning(1)
    mistake = {name: wrong[name] for name in ("family", "input", "output", "expected", "group")}
    example = {**mistake, "wrong": 1, "corrected": 0, "source": wrong["id"]}
    (own,) = memory.remember([example])
    # The guard of the memory keeps it back ...
    assert memory.recall(right, all_()) == []
    # ... and a judge that got it all the same is not believed.
    rows = [{"id": right["id"], "verdict": {"recalled": [own]}}]
    with pytest.raises(JudgeError, match="an example of its own group"):
        module._refuse_leaks(rows, [right], memory)


@pytest.mark.figures
def test_a_judge_without_mistakes_has_a_report_too(tmp_path):
    def always_right(prompt):
        question = prompt.rpartition("\n---\n")[2]
        same = _words("response", question)[1:] == _words("expected-answer", question)
        return json.dumps({"label": str(int(same))})

    items = labelled(*planning(6))
    plan = plan_sweep("e1", items=items, sizes=[0, 2], seeds=1)
    model = FakeChatModel(replies=always_right)
    embeddings = DeterministicFakeEmbedding(size=8)
    results = module.run_sweep(plan, model, tmp_path, embeddings=embeddings, progress=False)
    write_report(results, tmp_path)
    check_report(tmp_path)
    assert list(results["runs"]) == ["none", "bare", "criteria"]
    assert results["sizes_left_out"] == [2]
    assert results["turned"] == {"worsened": 0, "items": []}


@pytest.mark.figures
def test_summaries_are_labelled_by_the_experts_consistency(sweeping, tmp_path):
    data = tmp_path / "summeval16"
    articles, summaries = [], []
    for number in range(8):
        articles.append({"id": f"a{number}", "text": f"Fact {number}.", "reference": "Fact."})
        for place, system in enumerate(("M11", "M17", "M20", "M23", "M1")):
            consistency = 2.3333 if place == number % 3 else 2.6667
            means = dict.fromkeys(("coherence", "fluency", "relevance"), 3.0)
            summaries.append(
                {
                    "id": f"a{number}",
                    "model_id": system,
                    "summary": f"Summary {number} of {system}",
                    "expert_mean": {**means, "consistency": consistency},
                }
            )
    written(data / "articles.jsonl.gz", articles)
    written(data / "summaries.jsonl.gz", summaries)
    result = sweeping(preset="e2", data=data, sizes="0,2", draws=1)
    assert result.exit_code == 0, result.output
    results = check_figures(sweeping.out)
    assert results["problems"] == "system"
    assert list(results["runs"]["none"]["by_system"]) == ["M11", "M17", "M20", "M23"]
    rows = lines(sweeping.out / "runs" / "none.jsonl")
    # Eight articles, one inconsistent summary each.
    assert (len(rows), sum(row["label"] == 0 for row in rows)) == (32, 8)


def row(label, score=None, source="logprobs"):
    return {"verdict": {"label": label, "score": score, "confidence_source": source}}


def test_there_is_an_auc_only_where_there_are_probabilities():
    truth = [1, 1, 0, 0]
    rows = [row(1, 0.9), row(0, 0.4), row(1, 0.6), row(0, 0.1)]
    result = metrics_of(rows, truth)
    # Of the four pairs of a 1 and a 0 three are in order; half the labels are right.
    assert result["auc"]["value"] == 0.75
    assert result["balanced_accuracy"]["value"] == 0.5
    assert (result["d_prime"]["value"], result["criterion"]["value"]) == (0.0, 0.0)
    hard = [*rows[:3], row(0, 0.0, "none")]
    assert "auc" not in metrics_of(hard, truth)
    assert metrics_of([row(None)] * 4, truth) == {}


@pytest.mark.figures
def test_a_model_with_probabilities_gets_an_area_in_every_run(tmp_path, no_plots):
    def sure(prompt):
        label = json.loads(fooled(prompt))["label"]
        # The right rooms in the right order are likelier, whatever it says.
        question = prompt.rpartition("\n---\n")[2]
        in_order = _words("response", question)[1:] == _words("expected-answer", question)
        p = 0.2 if label == "0" else 0.9 if in_order else 0.6
        return with_logprobs(('{"label": "', 1), (label, 0.9, {"1": p, "0": 1 - p}), ('"}', 1))

    plan = plan_sweep("e1", items=labelled(*planning(8)), sizes=[0, 2], seeds=2)
    embeddings = DeterministicFakeEmbedding(size=8)
    model = FakeChatModel(replies=sure)
    results = module.run_sweep(plan, model, tmp_path, embeddings=embeddings, progress=False)
    page = write_report(results, tmp_path).read_text()
    # Without examples every label is 1, yet each right answer scores above each wrong one.
    none = results["runs"]["none"]["metrics"]
    assert (none["auc"]["value"], none["balanced_accuracy"]["value"]) == (1.0, 0.5)
    assert all(run["metrics"]["auc"]["value"] == 1.0 for run in results["runs"].values())
    assert [each["metrics"]["auc"]["low"] for each in results["sizes"]] == [1.0] * 3
    assert "<th>AUC</th>" in page


@pytest.mark.figures
def test_the_interval_over_draws_holds_items_and_draws():
    truth, groups = [1, 0] * 20, [str(n // 2) for n in range(40)]
    perfect = [row(label, float(label)) for label in truth]
    useless = [row(1, 1.0) for _ in truth]
    several = [perfect, useless]
    results = averaged([metrics_of(rows, truth) for rows in several], several, truth, groups)
    assert results["accuracy"]["value"] == 0.75
    assert results["auc"]["value"] == 0.75
    # Every group is alike, so what is left is which of the two runs is drawn.
    assert (results["accuracy"]["low"], results["accuracy"]["high"]) == (0.5, 1.0)


@for_each(
    ("options", "message"),
    [
        ({"sizes": [-1]}, "`sizes` must be whole numbers"),
        ({"seeds": 0}, "`seeds` must be a whole number"),
        ({"limit": 0}, "`limit` must be"),
        ({"preset": "e3"}, "`preset` must be one of"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(options, message):
    with pytest.raises(OptionError, match=message):
        plan_sweep(**{"preset": "e1", "items": labelled(*planning(3)), **options})


def test_options_that_the_sweep_sets_itself_are_refused(sweeping):
    result = sweeping("--set", "recall=all")
    assert result.exit_code == 2
    assert "a sweep sets ['recall'] itself" in result.stderr
    assert sweeping(sizes="four").exit_code == 2


def test_a_run_that_judges_nothing_ends_a_sweep_with_1(sweeping):
    sweeping.server.replies = lambda call: refusal()
    result = sweeping()
    assert result.exit_code == 1
    assert "The run none judged none of its 20 items; 20 by refusal" in result.stderr
    assert not (sweeping.out / "results.json").exists()
