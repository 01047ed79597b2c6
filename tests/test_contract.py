"""Adding a method as docs/architecture.md says, and `check_method` on wrong ones."""

import asyncio
import inspect
import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from langchain_core.prompts import ChatPromptTemplate
from pydantic import BaseModel, Field
from typer.testing import CliRunner

from langchain_judges import Failure, as_evaluator, judge_many, load_judge
from langchain_judges.asking.question import Account, Booking
from langchain_judges.cli import app
from langchain_judges.errors import OptionError
from langchain_judges.memory.shown import block
from langchain_judges.methods import (
    COMPARES,
    MATERIAL,
    JudgeOptions,
    gather,
    order_verdict,
    pair_of,
    pair_prompt,
)
from langchain_judges.methods.items import (
    ItemState,
    ItemSteps,
    item_of,
    label_verdict,
    prompt_variables,
)
from langchain_judges.methods.pairs import examples_in
from langchain_judges.methods.registry import BUILDERS, METHODS, register
from langchain_judges.testing import check_method, contract
from langchain_judges.testing.schema_replies import fitting_reply
from tests.cases import for_each
from tests.fakes import FakeChatModel

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
PAIR = {"input": "Why is the sky blue?", "output_a": "Rayleigh.", "output_b": "It is."}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    code, duel, check = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert "check_method(MeritsOptions, MeritsSteps.build)" in check
    folder = tmp_path_factory.mktemp("page")
    (folder / "merits.py").write_text(f"{code}\n\n{duel}")
    sys.path.insert(0, str(folder))
    merits = import_module("merits")
    merits.build = merits.MeritsSteps.build  # type: ignore[attr-defined]  # as in the package
    yield merits
    sys.path.remove(str(folder))
    del METHODS["merits"], BUILDERS["merits"], sys.modules["merits"]
    del METHODS["duel"], BUILDERS["duel"]


@pytest.mark.whole
async def test_a_method_is_checked_where_a_loop_runs_as_in_a_notebook():
    check_method(METHODS["llm_score"], BUILDERS["llm_score"])


def likes_the_blue(prompt: str) -> str:
    first = prompt.index("Rayleigh") < prompt.index("It is.")
    merits = {"merit_1": "the first", "merit_2": "the second"}
    return json.dumps({**merits, "preference": "1" if first else "2"})


def test_it_can_be_named_compared_and_plugged_in(page):
    model = FakeChatModel(replies=likes_the_blue)
    judge = load_judge("merits", model, preset="one_order")
    [row] = judge_many(judge, [PAIR], progress=False)
    assert row["verdict"]["preference"] == "A"
    score: Any = as_evaluator(judge)(
        inputs={"input": PAIR["input"]},
        outputs={"output": PAIR["output_a"]},
        reference_outputs={"output": PAIR["output_b"]},
    )
    assert score["score"] == 1.0


@pytest.mark.whole
@for_each("name", ["Merits", "Duel"])
def test_both_keep_the_contract(page, name):
    check_method(getattr(page, f"{name}Options"), getattr(page, f"{name}Steps").build)


def test_the_page_takes_twelve_names_at_most(page):
    names = set(re.findall(r"methods\.([A-Za-z_]+)", Path(page.__file__).read_text()))
    assert len(names) <= 12, sorted(names)


def test_a_method_that_announces_too_few_calls_breaks_it(page, monkeypatch):
    monkeypatch.setattr(page.MeritsOptions, "calls", lambda self: 1)
    refused(page, "2 calls are made, and 1 announced", options=True)


def test_a_method_that_shows_nothing_of_what_it_recalled_breaks_it(page, monkeypatch):
    ballot = page.MeritsSteps.ballot

    def blind(self, pair, order, account):
        return ballot(self, {**pair, "shown": []}, order, account)

    monkeypatch.setattr(page.MeritsSteps, "ballot", blind)
    refused(page, "1 recalled, in 0 prompts")


def test_a_prompt_without_a_place_for_what_was_recalled_shows_it_before_the_row(page):
    prompt = ChatPromptTemplate.from_messages([("human", "{request} {response_1} {response_2}")])
    model = FakeChatModel(replies=likes_the_blue)
    known = {"input": "Why?", "output_a": "So.", "output_b": "No.", "label": "B"}
    options: Any = {"memory": [known], "prompts": {"compare": prompt}, "orders": "none"}
    page.create_merits_judge(model, **options).invoke(PAIR)
    [sent] = model.prompts
    system, asked, *_ = sent.split("\n---\n")
    assert "Right: response 2 is better." in system
    assert asked.startswith(PAIR["input"])


def test_a_memory_that_no_step_shows_breaks_it(page, monkeypatch):
    monkeypatch.setattr(page.MeritsOptions, "examples_in", ())
    refused(page, "no step of the judge shows what its memory recalls")


def test_a_step_without_its_prompt_says_which_there_are(page, monkeypatch):
    async def ballot(self, pair, order, account):
        return await self.ask("comparison", page.Merits, {}, account)

    monkeypatch.setattr(page.MeritsSteps, "ballot", ballot)
    with pytest.raises(OptionError, match="'comparison' is unknown"):
        page.create_merits_judge(FakeChatModel(replies=fitting_reply)).invoke(PAIR)


AGAIN = """
    async def merge(self, state, account):
        said = (state["ballots"] or [{"reason": ""}])[0]["reason"]
        material = {**self.prompt_variables(state, "AB"), "said": said}
        await self.ask("again", Merits, material, account)
"""
SHOWN = {
    "    examples_in": ('    templates["again"] = methods.pair_prompt("{said}")\n    examples_in'),
    "return len(self.order_list)": "return len(self.order_list) + 1",
    "    async def merge(self, state, account):": AGAIN,
}
SLIPS = {
    "is of the preferred text": {'f"merit_{slot}"': 'f"merit_{3 - int(slot)}"'},
    "4 calls are announced, and 2 are made": {
        "return len(self.order_list)": "return 2 * len(self.order_list)"
    },
    "a reply about them stands in a fence": SHOWN,
}


@pytest.mark.whole
@for_each("message", SLIPS)
def test_a_method_like_the_page_s_but_for_a_slip_breaks_it(page, message):
    slip = changed(page, SLIPS[message])
    options = "announced" in message
    refused(page, message, slip["MeritsOptions"], slip["MeritsSteps"].build, options=options)


def changed(page, changes):
    """The names of the page's module, with some of its words replaced."""
    source = re.sub(r"^create_.*$", "", Path(page.__file__).read_text(), flags=re.MULTILINE)
    for before, after in changes.items():
        assert before in source
        source = source.replace(before, after)
    names: dict[str, Any] = {"__name__": page.__name__}
    exec(source, names)
    return names


BUGS = {
    r"the prompt 'compare' shows \['tone'\], which the variables": {"Name the": "In {tone}, name"},
    r"the phase 'compare' must return .* of its `state`, not \['ballots'\]": {
        "    ballots: list[Ballot]\n": ""
    },
    r"the phase 'merge' must be an `async def`": {"async def merge": "def merge"},
    r"the last phase, 'merge', must return": {'{"verdict": verdict}': "{}"},
    r"the phase 'merge' must return .*, not None": {'return {"verdict": verdict}': "return"},
    r"the template 'compare' must be a ChatPromptTemplate: 'Name": {
        'methods.pair_prompt(\n            "Name': '(\n            "Name'
    },
    r"MeritsSteps needs a `state`": {"    state = MeritsState\n": ""},
    r"MeritsOptions needs `calls`": {"    def calls": "    def called"},
    r"`account.fail` takes a list of .* got 'lost'": {
        "reasons = {": 'account.fail(["lost"])\n        reasons = {'
    },
}


@for_each("message", BUGS)
def test_a_bug_of_the_author_says_where_it_is_and_what_to_do(page, message):
    """It is a bug and no fault of the row: a run ends with it."""
    names = changed(page, BUGS[message])
    model = FakeChatModel(replies=likes_the_blue)
    with pytest.raises((TypeError, LookupError, NotImplementedError), match=message):
        names["MeritsSteps"].build(names["MeritsOptions"](), model).invoke(PAIR)


def test_a_module_that_is_run_again_replaces_its_method(page):
    names = changed(page, {})
    register(names["MeritsOptions"], names["MeritsSteps"].build)
    assert METHODS["merits"] is names["MeritsOptions"] is not page.MeritsOptions
    register(page.MeritsOptions, page.build)


def test_results_are_stored_under_the_revision_of_a_method(page, monkeypatch):
    before = page.create_merits_judge(FakeChatModel(replies=[])).config["metadata"]
    monkeypatch.setattr(page.MeritsOptions, "revision", 2)
    after = page.create_merits_judge(FakeChatModel(replies=[])).config["metadata"]
    assert after["options"] == {**before["options"], "revision": 2}


def test_a_tie_has_the_reason_of_neither_text_and_a_lack_is_told(page):
    options, reasons = page.MeritsOptions(), {"A": "It is short.", "B": "It is long."}
    tie: Any = order_verdict(options, {"AB": "A", "BA": "B"}, Account(), reasons)
    assert "A (A first)" in tie["rationale"]
    assert order_verdict(options, {"AB": "B", "BA": "B"}, Account(), reasons)["rationale"].endswith(
        "It is long."
    )
    lacking = order_verdict(options, {}, Account(), lack="1 of 3 critics")
    assert lacking["rationale"].startswith("Not judged: 1 of 3")


def test_a_step_shows_one_text_alone_and_no_remembered_pair(page, monkeypatch):
    alone = pair_prompt("List your objections.", alone=True)
    monkeypatch.setattr(page.MeritsOptions, "templates", {"compare": alone})
    monkeypatch.setattr(page.MeritsOptions, "examples_in", ())
    model = FakeChatModel(replies=fitting_reply)
    steps: Any = page.create_merits_judge(model, instructions="Be kind.")
    variables = page.MeritsSteps.prompt_variables
    monkeypatch.setattr(
        page.MeritsSteps, "prompt_variables", lambda *given: variables(*given[:2], "B")
    )
    steps.invoke({**PAIR, "reference": "Small air scatters blue."})
    [prompt] = set(model.prompts)
    words = ("Rayleigh", "It is.", "hold it against", "Be kind.")
    assert [word in prompt for word in words] == [False, True, True, True]


FEW_BRANCHES = "return 4\n\n    def branches(self):\n        return 1"
BRANCHES = "return 4\n\n    def branches(self):\n        return 12"
DUEL_SLIPS = {
    "remarks on the texts stand in the order of the texts": {
        "(said[side] for side in order)": '(said[side] for side in "AB")'
    },
    "a reply about them stands in a fence": {"to-1-{fence_3}": "to-1"},
    "no prompt shows remarks on the other text alone": {
        "if reply.data else None": 'if reply.data else "None."'
    },
    "no exception: KeyError: 'ballot'": {'state["ballots"]}': 'state["ballot"]}'},
    "6 calls are announced, and 4 are made": {
        "return 2 + len(self.order_list)": "return 3 * len(self.order_list)"
    },
    "12 `branches` are announced, and 4 are made": {"return 2 + len(self.order_list)": BRANCHES},
    "1 `branches` are announced, and 4 are made, 2 at once": {
        "return 2 + len(self.order_list)": FEW_BRANCHES
    },
    "`tone` changes what is asked or decided": {
        '    method = "duel"': '    tone: methods.OrderRule = "strict"\n    method = "duel"'
    },
    r"the state are plain JSON \(updates\)": {
        "strict=True))}": 'strict=True)), "odd": {1}}',
        "    objections: dict[str, str | None]": "    objections: dict\n    odd: set",
    },
    "no question is asked twice": {"(pair, side)\n": '(pair, "A")\n'},
}


@pytest.mark.whole
@for_each("message", DUEL_SLIPS)
def test_a_method_of_two_steps_with_a_slip_breaks_it(page, message):
    slip = changed(page, DUEL_SLIPS[message])
    options = "announced" in message or "`tone`" in message
    refused(page, message, slip["DuelOptions"], slip["DuelSteps"].build, options=options)


LEFT_OUT = Failure(step="compare", unit="a view", reason="missing", detail="left out")
VIEWS = ("a cook", "a poet", "a judge")


def of_views(page, quorum=2, told=(LEFT_OUT,), views=VIEWS):
    """The options and the builder of a method that asks for a ballot in several views."""

    class ViewsOptions(page.MeritsOptions):  # type: ignore[name-defined,misc]  # as above
        """Asks in three views, and counts those that are heard in each order."""

        templates: ClassVar[Any] = {"compare": pair_prompt("As {view}: which is better?")}
        few: ClassVar[Any] = {"orders": "none"}

        def calls(self):
            return len(views) * len(self.order_list)

    class ViewsSteps(page.MeritsSteps):  # type: ignore[name-defined,misc]  # as above
        def prompt_variables(self, pair, order):
            return {**super().prompt_variables(pair, order), "view": pair["view"]}

        async def compare(self, state, account):
            said = [self.heard({**state, "view": each}, account.part()) for each in views]
            heard = [each for each in await gather(said) if each]
            heard = heard if len(heard) >= quorum else []
            return {"ballots": [ballot for each in heard for ballot in each]}

        async def heard(self, state, account):
            ballots = []
            for order in self.options.order_list:
                ballots.append(await self.ballot(state, order, account))
                if not ballots[-1]:
                    return account.fail(told)
            return ballots

        async def merge(self, state, account):
            points = {}
            for order in self.options.order_list if state["ballots"] else ():
                won = [b["preference"] for b in state["ballots"] if b["order"] == order]
                points[order] = {text: won.count(text) + won.count("tie") / 2 for text in "AB"}
            reasons = {b["preference"]: b["reason"] for b in state["ballots"]}
            return {"verdict": order_verdict(self.options, points, account, reasons)}

    return ViewsOptions, ViewsSteps.build


@pytest.mark.whole
def test_a_method_of_several_votes_needs_half_of_them_tells_the_rest_and_asks_each_once(page):
    check_method(*of_views(page))
    slips: dict[str, Any] = {
        "2 of 6 replies of a step decide nothing, as all others are lost": {"quorum": 1},
        "what is not asked because of a lost reply is left out with a failure": {"told": ()},
        "no question is asked twice": {"views": (*VIEWS, VIEWS[0])},
    }
    for message, slip in slips.items():
        refused(page, message, *of_views(page, **slip))


def test_a_step_outside_of_examples_in_shows_no_remembered_pair(page):
    known = {"input": "Why?", "output_a": "So.", "output_b": "No.", "label": "B"}
    model = FakeChatModel(replies=fitting_reply)
    page.create_duel_judge(model, memory=[known]).invoke(PAIR)
    shows = [("So." in each, "Objections:" in each) for each in model.prompts]
    assert sorted(shows) == [(False, False)] * 2 + [(True, True)] * 2


class Scored(BaseModel):
    """The reply: a label."""

    label: Literal["0", "1"]


BOTH = ChatPromptTemplate([("human", "<x-{fence}>\n{task} {response}\n</x-{fence}>")])


class OneTextOptions(JudgeOptions):
    """Create a judge that looks at one text twice."""

    method, takes, summary = "one_text", "item", "One text, looked at twice."
    templates: ClassVar[Any] = {"look": BOTH, "label": BOTH}
    examples_in = ("label",)

    def calls(self):
        return 2


class OneTextSteps(ItemSteps):
    state = ItemState

    def phases(self):
        return [self.label]

    async def label(self, state, account):
        lessons = {"shared": block(examples_in(state))}
        material = {**prompt_variables(item_of(state)), **lessons}
        await self.ask("look", Scored, material, account)
        reply = await self.ask("label", Scored, material, account)
        label = int(reply.data["label"])
        return {"verdict": label_verdict(account, "It is so.", label, label)}


def test_a_judge_of_one_text_shows_what_was_recalled_where_it_says_so_alone():
    known = {"input": "Why?", "output": "So.", "label": 0}
    model = FakeChatModel(replies=fitting_reply)
    judge = OneTextSteps.build(OneTextOptions(memory=[known]), model)
    judge.invoke({"input": "When?", "output": "Now.", "expected": "Now."})
    assert ["So." in each for each in model.prompts] == [False, True]


def test_a_name_is_given_once(page, monkeypatch):
    class Other(page.MeritsOptions):  # type: ignore[name-defined,misc]  # a module made of the page
        """Another method."""

    with pytest.raises(OptionError, match="'merits' already"):
        register(Other, page.build)
    monkeypatch.setattr(Other, "method", "jury")
    with pytest.raises(OptionError, match="'jury' already"):
        register(Other, page.build)


PROMISES = [
    name
    for name, each in inspect.getmembers(contract._Contract, inspect.isfunction)
    if not name.startswith("_") and [*inspect.signature(each).parameters] == ["self"]
]


def refused(page, message, kind=None, build=None, *, options=False):
    """Expect a slip to be named; once it is, no other promise is tried.

    Of a slip that is none of `options` these are never tried.
    """
    named: list[str] = []

    def until_named(promise):
        def tried(self):
            try:
                return None if named else promise(self)
            except AssertionError as error:
                named.extend(re.findall(message, str(error)))
                raise

        return tried

    with pytest.MonkeyPatch.context() as patch:
        for name in PROMISES:
            patch.setattr(contract._Contract, name, until_named(getattr(contract._Contract, name)))
        if not options:
            patch.setattr(contract._Contract, "options", lambda self: None)
        with pytest.raises(AssertionError, match=message):
            check_method(kind or page.MeritsOptions, build or page.build)


def change_verdict(page, monkeypatch, change):
    """Let the method give other verdicts than it should."""
    merge = page.MeritsSteps.merge

    async def wrong(self, state, account):
        verdict = (await merge(self, state, account))["verdict"]
        return {"verdict": {**verdict, **change(verdict)}}

    monkeypatch.setattr(page.MeritsSteps, "merge", wrong)


def of_label(**by_label):
    """A change of the verdicts with some preferences."""
    return lambda verdict: by_label.get(str(verdict["preference"]), {})


@pytest.mark.whole
@for_each(
    "message, change",
    [
        (r"`score` is above 0.5 for A", lambda v: {"score": 1 - (v["score"] or 0)}),
        (r"higher of `scores`", of_label(A={"scores": {"A": 0.0, "B": 1.0}})),
        (r"`flipped` is then true, not False", lambda _: {"flipped": False}),
        (r"`flipped` is false where both", lambda _: {"flipped": True}),
        (r"`confidence` is from 0 to 1, not 80", lambda _: {"confidence": 80}),
        (r"makes the verdict 'A', not 'tie'", lambda _: {"preference": "tie", "score": 0.5}),
        (r"not a verdict; it became 'tie'", of_label(**{"None": {"preference": "tie"}})),
        (r"is a failure with its reason", lambda _: {"failures": []}),
        (r"`rationale` says what decided", lambda _: {"rationale": " "}),
    ],
)
def test_a_wrong_verdict_is_refused(page, message, change):
    with pytest.MonkeyPatch.context() as monkeypatch:
        change_verdict(page, monkeypatch, change)
        refused(page, message)


@pytest.mark.whole
def test_a_rationale_that_names_slots_is_refused(page):
    field = {"    preference: methods": "    why: str\n    preference: methods"}
    bare = changed(page, field | {'data[f"merit_{slot}"]': 'data["why"]'})
    message = r"calls texts A and B \(`naming_ab`\), not \['response [12]'\]"
    refused(page, message, bare["MeritsOptions"], bare["MeritsSteps"].build)
    turned = 'methods.naming_ab(reply.data["why"], order)'
    named = changed(page, field | {'reply.data[f"merit_{slot}"]': turned})
    check_method(named["MeritsOptions"], named["MeritsSteps"].build)


def test_slots_that_are_not_mapped_back_to_texts_are_refused(page, monkeypatch):
    monkeypatch.setattr(
        page.methods, "preferred_slot", lambda _, slot: {"1": "A", "2": "B"}.get(slot, slot)
    )
    refused(page, "makes the verdict 'A', not 'tie'; slots have to be mapped back to texts")


@pytest.mark.whole
def test_one_reply_that_is_lost_is_told_and_is_no_tie(page, monkeypatch):
    only: list[str] = []

    async def merge(self, state, account, fill="tie"):
        labels = {order: fill for order in self.options.order_list if state["ballots"]}
        labels = {} if only and self.options.orders not in only else labels
        labels |= {each["order"]: each["preference"] for each in state["ballots"]}
        return {"verdict": order_verdict(self.options, labels, account)}

    monkeypatch.setattr(page.MeritsSteps, "merge", merge)
    refused(page, r"counts for nothing: all others say \('A', 1.0\), .* became \('tie', 0.5\)")
    only.append("lenient")
    refused(page, r"counts for nothing: all others say \('A', 1.0\), .* became \('A', 0.75\)")
    only.clear()

    async def silent(self, state, account):
        if state["ballots"]:
            account = Account(bookings=[Booking(usage=account.usage)])
        return await merge(self, state, account, "A")

    monkeypatch.setattr(page.MeritsSteps, "merge", silent)
    refused(page, "one of several replies that is lost is a failure too")


BARE = "{request}{reference}\n\n{response_1}\n\n{response_2}{focus}{instructions}\n\nSay which."
STATIC = BARE.replace("{response_1}", "<one>\n{response_1}\n</one>").replace(
    "{response_2}", "<two>\n{response_2}\n</two>"
)

UNFENCED_TASK = "{request}\n" + MATERIAL.partition("</request-{fence_request}>")[2]


@pytest.mark.whole
@for_each(
    "prompt, message",
    [
        (UNFENCED_TASK, r"in a fence that it cannot close.* it stands bare in"),
        (STATIC.replace("{instructions}", ""), "the caller's `instructions` stand in a prompt"),
        (STATIC.replace("{response_2}", ""), "makes the verdict 'A', not 'tie'"),
        (
            MATERIAL.replace("{request}", ""),
            "`input` stands in prompts whole and unchanged, unless",
        ),
        (MATERIAL.replace("{reference}", ""), "the row's `reference` stands in a prompt"),
    ],
)
def test_a_prompt_that_leaves_out_what_it_must_have_is_refused(page, message, prompt):
    template = ChatPromptTemplate.from_messages([("system", COMPARES), ("human", prompt)])
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(page.MeritsOptions, "templates", {"compare": template})
        refused(page, message)


# Ways to change a text of many lines that keep most of it, or little.
CHANGES = {
    "its beginning": lambda text: text[:60],
    "its end": lambda text: text[-60:],
    "all but its end": lambda text: text[:-1],
    "all but its middle": lambda text: text[: len(text) // 2] + text[len(text) // 2 + 9 :],
    "its first line": lambda text: text.split("\n")[0],
    "its first 8,000 characters": lambda text: text[:8000],
    "small letters": str.lower,
    "one line": lambda text: " ".join(text.split()),
    "no margin": lambda text: re.sub(r"^ +", "", text, flags=re.MULTILINE),
}
WHOLE = "<x-{fence}>\n{task}\n{response}\n</x-{fence}>{expected}{source}\n{instructions}"


class WholeText(OneTextOptions):
    """Create a judge that looks at one text once."""

    templates: ClassVar[Any] = {"label": ChatPromptTemplate([("human", WHOLE)])}

    def calls(self):
        return 1


def with_other(material, text, other):
    is_text = {name: isinstance(each, str) for name, each in material.items()}
    return {n: each.replace(text, other) if is_text[n] else each for n, each in material.items()}


def changed_items(field, change):
    class Changed(OneTextSteps):
        async def label(self, state, account):
            given = {**item_of(state), "instructions": self.options.instructions}
            material = {**prompt_variables(item_of(state)), "instructions": given["instructions"]}
            text = given[field]
            changed = with_other(material, text, change(text))
            reply = await self.ask("label", Scored, changed, account)
            label = int(reply.data["label"])
            return {"verdict": label_verdict(account, "It is so.", label, label)}

    return contract._Contract(WholeText, Changed.build, {})


def changed_pairs(page, field, change, failures=()):
    class Changed(page.MeritsSteps):  # type: ignore[name-defined,misc]  # a module of the page
        def prompt_variables(self, pair, order):
            text = {**pair, "instructions": self.options.instructions}[field] or "none"
            material = super().prompt_variables(pair, order)
            return with_other(material, text, change(text))

        async def merge(self, state, account):
            account.fail([*failures])
            return await super().merge(state, account)

    return contract._Contract(page.MeritsOptions, Changed.build, {})


@pytest.mark.whole
@for_each("change", CHANGES)
def test_a_text_that_is_not_shown_as_it_is_is_refused(page, change):
    said, changed = "stands in prompts whole and unchanged, unless a", CHANGES[change]
    told = [Failure(step="compare", unit="", reason="input_cut", detail="The rest is not shown.")]
    for field in ("input", "output_a", "output_b", "reference", "instructions"):
        with pytest.raises(AssertionError, match=said):
            changed_pairs(page, field, changed).prompts()
        changed_pairs(page, field, changed, told).prompts()
    for field in ("input", "output", "expected", "source", "instructions"):
        with pytest.raises(AssertionError, match=said):
            changed_items(field, changed).prompts()


def test_a_text_that_is_shown_as_it_is_keeps_the_contract(page):
    changed_pairs(page, "input", str).prompts()
    changed_items("input", str).prompts()


def test_a_text_that_is_cut_stands_in_a_fence_too(page, monkeypatch):
    material = page.MeritsSteps.prompt_variables

    def with_part(self, pair, order):
        cut = f"\n\nA begins with {pair['output_a'][:30]}"
        return {**material(self, pair, order), "focus": cut}

    monkeypatch.setattr(page.MeritsSteps, "prompt_variables", with_part)
    refused(page, r"in a fence that it cannot close.* it stands bare in .*A begins with")


class Points(BaseModel):
    """The reply: what one text is worth."""

    score: Annotated[int, Field(ge=1, le=10)]


ONE_TEXT = MATERIAL.partition("\n<response-2-")[0] + "{focus}{instructions}\n\nGive it a score."
ALONE = ChatPromptTemplate.from_messages([("system", COMPARES), ("human", ONE_TEXT)])


@pytest.mark.whole
def test_a_method_may_ask_about_each_text_by_itself(page, monkeypatch):
    class Alone(page.MeritsOptions):  # type: ignore[name-defined,misc]  # a module of the page
        """Scores each text in a call of its own."""

        orders: Literal["none"] = "none"
        presets: ClassVar[Any] = {}
        templates: ClassVar[Any] = {"compare": ALONE}

        def calls(self):
            return 2

    async def compare(self, state, account):
        pair: Any = pair_of(state)
        pairs = {"A": pair, "B": {**pair, "output_a": pair["output_b"]}}
        asked = [
            self.ask(
                "compare",
                Points,
                self.prompt_variables(pairs[side], "AB"),
                account.part(),
                unit=side,
            )
            for side in pairs
        ]
        replies = zip(pairs, await gather(asked), strict=True)
        points = {side: reply.data["score"] for side, reply in replies if reply.data}
        answers: Any = {"AB": points} if len(points) == 2 else {}
        verdict = order_verdict(self.options, answers, account, "By points.")
        return {"ballots": [], "verdict": verdict}

    monkeypatch.setattr(page.MeritsSteps, "compare", compare)
    check_method(Alone, page.build)


@for_each("verdicts", [("A",), ("B",)])
def test_another_verdict_in_an_event_loop_is_refused(page, monkeypatch, verdicts):
    def change(verdict):
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return {}
        in_a_loop = {"rationale": "Asked in a loop."}
        return in_a_loop if verdict["preference"] in verdicts else {}

    change_verdict(page, monkeypatch, change)
    refused(page, "sync and async give the same verdict")


@pytest.mark.whole
def test_options_that_json_or_the_builder_loses_are_refused(page):
    def forgetful(_, model):
        return page.build(page.MeritsOptions(), model)

    refused(page, "a judge has the `orders` that it was given", build=forgetful, options=True)

    class Sets(page.MeritsOptions):  # type: ignore[name-defined,misc]  # a module of the page
        """Has a type that JSON has not.

        Attributes:
            critics: Who judges.
        """

        critics: frozenset[str] = frozenset({"a cook"})

    refused(page, "options can be read from JSON: `critics` must be", kind=Sets, options=True)


def test_a_score_of_one_text_that_is_reversed_is_refused(monkeypatch):
    steps = import_module("langchain_judges.methods.rubric.replies")
    one_verdict = steps.one_verdict

    def reversed_score(*args):
        verdict = one_verdict(*args)
        return {**verdict, "score": verdict["score"] and 1 - verdict["score"]}

    monkeypatch.setattr(steps, "one_verdict", reversed_score)
    refused(None, "the higher `score`", METHODS["rubric"], BUILDERS["rubric"])


def test_the_command_line_takes_a_method_from_a_file(page):
    shown = CliRunner().invoke(app, ["--plugin", page.__file__, "show", "merits"])
    assert page.MeritsOptions.summary[:30] in shown.output
    refusal = CliRunner().invoke(app, ["--plugin", "nowhere.py", "show", "merits"])
    assert (refusal.exit_code, "'nowhere.py' cannot be imported" in refusal.output) == (2, True)


@pytest.mark.whole
def test_a_tuple_of_ones_own_is_an_option_like_any_other(page):
    class Critics(page.MeritsOptions):  # type: ignore[name-defined,misc]  # a module of the page
        """Names its critics.

        Attributes:
            critics: Who judges.
            panels: How many of each.
        """

        critics: tuple[str, str] = ("a cook", "a poet")
        panels: tuple[tuple[str, int], ...] = (("a cook", 2),)

    check_method(Critics, page.build)
