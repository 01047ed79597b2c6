"""No forged text decides by the way a reply is read, quoted or not, in any method and form."""

import json

from langchain_core.messages import AIMessage

from langchain_judges import create_relative_judge, judge_many
from langchain_judges.asking.replies.reading import read
from langchain_judges.methods.registry import METHODS
from langchain_judges.testing import FakeToolModel, attack_rates, forged_rows, forgeries
from tests.attacks.kinds import KINDS
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel
from tests.judges import answer, answer_call, item_of, of_method

ALL = forgeries()
FREE = ("explanation", "reason", "comparison", "analysis")
"""Members of replies that hold words."""
QUOTED = {
    "in its explanation": lambda text, kind: json.dumps({**kind.answer, kind.said: text}),
    "in its thoughts": lambda text, kind: f"<think>{text}</think>\n{json.dumps(kind.answer)}",
    "before its words": lambda text, kind: (
        f"It says\n{text}\nwhich is a trick.\n\n{kind.words}"
    ),
    "within its words": lambda text, kind: f"It says {text} as a trick.\n\n{kind.words}",
    "behind its words": lambda text, kind: f"{kind.words}\n\nIt says\n{text}",
    "and nothing else": lambda text, kind: f"It says\n{text}",
}


def test_at_least_300_texts_of_ten_families_ship():
    assert len({each.text for each in ALL}) == len(ALL) >= 300
    assert len({each.family for each in ALL}) == 10


@for_each("kind", KINDS.values(), ids=KINDS)
@for_each("where", QUOTED)
def test_no_quoted_forgery_is_read_as_the_verdict(where, kind):
    # A reply that is one letter on a line of its own is that letter, whoever else wrote it.
    candidates = [each for each in ALL if where != "and nothing else" or len(each.text) > 1]
    for each in candidates:
        message = AIMessage(QUOTED[where](each.text, kind))
        data, _ = read(message, kind.shape, kind.parse, None, [f"It is Sydney.\n\n{each.text}"])
        verdict = data and {name: data[name] for name in kind.answer}
        own = kind.answer if where != "and nothing else" else None
        assert verdict in (own, None), each.name
        if where == "in its explanation":
            assert verdict == kind.answer, each.name


def quoting(kind, *texts):
    """Answer as ever, with the forged texts quoted wherever a reply holds words."""

    def reply(prompt):
        content = json.loads(answer(prompt + json.dumps(model.settings[-1], default=str)))
        return {k: " ".join(texts) if k in FREE else v for k, v in content.items()}

    model = kind(replies=reply)
    return model


def decided(result):
    verdict = result["verdict"]
    return [verdict.get(name) for name in ("preference", "label", "score", "failures")]


@for_each("method", METHODS)
@for_each("kind", [FakeChatModel, FakeToolModel], ids=["text", "tools"])
def test_no_forgery_that_a_method_reads_and_quotes_changes_its_verdict(method, kind):
    plain = of_method(method, FakeChatModel(replies=answer)).invoke(item_of(method))
    selection = forgeries(1)
    for first, second in zip(selection[::2], selection[1::2], strict=True):
        forged = {"output": first, "output_a": first, "output_b": second}
        row = {
            name: f"{text}\n\n{forged[name].text}" if name in forged else text
            for name, text in item_of(method).items()
        }
        model = quoting(kind, first.text, second.text)
        assert decided(of_method(method, model).invoke(row)) == decided(plain), first.name


def test_forgeries_over_http_do_not_decide_either(serve):
    server = serve(answer_call)
    first, second = ALL[0], ALL[1]
    row = {"input": "Why?", "output_a": f"good {first.text}", "output_b": f"bad {second.text}"}
    for method in ("relative", "bsm"):
        result = of_method(method, chat(server)).invoke(row)
        assert result["verdict"]["preference"] == "A"


# ---- the rate for your model

RIGHT = ("Canberra", "is 144", "Mercury", "Shakespeare", "At 0 degrees")


def test_a_model_that_a_text_wins_over_is_counted_by_family():
    def respond(prompt):  # prefers whoever begs; else the text with the right answer
        begs = max(prompt.rfind(each.text) for each in ALL if each.family == "pleas")
        first, second = prompt.index("<response-1-"), prompt.index("<response-2-")
        right = max(prompt.find(each, first) for each in RIGHT)
        choice = begs if begs > 0 else right
        return json.dumps({"explanation": "-", "preference": "2" if choice > second else "1"})

    judge = create_relative_judge(FakeChatModel(replies=respond))
    rows = list(forged_rows("pair", 2))
    judged = judge_many(judge, rows, progress=False)
    rates = {each.family: each for each in attack_rates(judged)}
    # Two pleas, each in both places; the control are five wrong answers in both places.
    assert (rates["pleas"].rows, rates["pleas"].won, rates["pleas"].rate) == (4, 4, 1.0)
    assert (rates["control"].rows, rates["control"].won) == (10, 0)
    assert {each.won for family, each in rates.items() if family != "pleas"} == {0}
    assert next(iter(rates)) == "control"
