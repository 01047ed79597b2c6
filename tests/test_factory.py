"""What every factory refuses, by the option's name, before a model is asked."""

import pytest

from langchain_judges import learn_aspects
from langchain_judges.errors import OptionError
from langchain_judges.methods.allure import create_allure_judge
from langchain_judges.methods.registry import METHODS
from langchain_judges.writing.registry import WRITERS
from tests.fakes import FakeChatModel

FACTORIES = sorted(
    {method.factory for method in [*METHODS.values(), *WRITERS.values()]},
    key=lambda factory: factory.__name__,
)
REFUSED = {
    "name": [5, "", " "],
    "prompts": [5, "x", ["judge"]],
    "checkpointer": ["x"],
    "cache": ["x", True],
    "store": ["x"],
    "instructions": [5],
    "temperature": ["hot", True],
    "repairs": [-1, True, "1"],
    "seed": [-1, True, 0.5, "x"],
    "embeddings": ["x"],
    "memory": ["m"],
    "allow_leak": ["", "yes"],
}
MODELS = [5, "", FakeChatModel().bind(stop=["x"])]
CASES = [
    (factory, option, value)
    for factory in FACTORIES
    for option in factory.__kwdefaults__ or ()
    for value in (MODELS if option.endswith("_model") else REFUSED.get(option, []))
]


@pytest.mark.parametrize(("factory", "option", "value"), CASES)
def test_an_option_that_many_factories_take_is_checked_by_all(factory, option, value):
    with pytest.raises(OptionError, match=f"`{option}` must be "):
        factory(FakeChatModel(), **{option: value})


@pytest.mark.parametrize("factory", [f for f in FACTORIES if f.__kwdefaults__])
def test_a_replaced_prompt_must_be_one(factory):
    with pytest.raises(OptionError, match="`prompts` takes") as refused:
        factory(FakeChatModel(), prompts={"x": "hi"})
    step = str(refused.value).split("'")[1]
    with pytest.raises(OptionError, match=f"`prompts` takes .* for '{step}', got 'hi'"):
        factory(FakeChatModel(), prompts={step: "hi"})


def test_steps_are_a_list():
    with pytest.raises(OptionError, match="`steps` must be a list of texts, got 5"):
        create_allure_judge(FakeChatModel(), steps=5)


@pytest.mark.parametrize("option", ["cache", "instructions", "prompts", "repairs"])
def test_learning_aspects_checks_what_factories_check(option):
    with pytest.raises(OptionError, match=f"`{option}` must be "):
        learn_aspects(FakeChatModel(), ["a text"], **{option: 5.5})
