"""Options, each declared once, and a judge as the plain JSON that builds it elsewhere."""

import inspect
import json
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Le
from pydantic import Field

from langchain_judges import FailureMemory, create_bsm_judge, load_judge
from langchain_judges.errors import OptionError
from langchain_judges.options import Options, Scale, factory
from tests.cases import for_each
from tests.fakes import FakeChatModel


class Kettle(Options):
    """Boil water.

    Attributes:
        degrees: How hot.
        leaf: What is brewed.
        steep: Minutes.
        cups: Fewest and most cups.

    Returns:
        Tea.
    """

    called = "kettle"

    degrees: Annotated[int, Ge(1), Le(100)] = 100
    leaf: Literal["green", "black"] = "green"
    steep: Annotated[float, Ge(0)] | None = None
    cups: Scale = (1, 2)
    milk: bool = Field(default=False, description="Whether with milk.")


brew = factory(Kettle, lambda kettle, water: (water, kettle.degrees), "brew", "water")


@for_each(
    ("option", "value", "rule"),
    [
        ("degrees", True, "a whole number of at least 1 and at most 100, got True"),
        ("degrees", "9", "a whole number of at least 1 and at most 100, got '9'"),
        ("leaf", "red", "one of 'green', 'black', got 'red'"),
        ("steep", -1, "a number of at least 0 or None, got -1"),
        ("cups", (2, 1), r"two whole numbers \(low, high\), got \(2, 1\)"),
    ],
)
def test_a_message_names_option_rule_and_value(option, value, rule):
    with pytest.raises(OptionError, match=f"^`{option}` must be {rule}$"):
        Kettle(**{option: value})


def test_a_factory_shows_every_option_to_help_and_editors():
    signature = inspect.signature(brew)
    assert [*signature.parameters][:3] == ["water", "degrees", "leaf"]
    assert signature.parameters["leaf"].annotation == "Literal['green', 'black']"
    assert "    steep: Minutes." in brew.__doc__
    assert "    milk: Whether with milk." in brew.__doc__
    assert Kettle.model_json_schema()["properties"]["milk"]["description"] == "Whether with milk."
    assert brew.__doc__.index("Args:") < brew.__doc__.index("Returns:")
    make: Any = brew
    assert make("rain", degrees=80) == make(water="rain", degrees=80) == ("rain", 80)
    with pytest.raises(TypeError, match="too many positional arguments"):
        make("rain", 80)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def test_a_spec_holds_what_differs_from_the_defaults():
    judge = create_bsm_judge("openai:gpt-5-mini", criteria=["Tone: is it kind"], scale=(1, 10))
    assert judge.spec == {
        "method": "bsm",
        "model": "openai:gpt-5-mini",
        "options": {"criteria": [{"name": "Tone", "description": "is it kind"}], "scale": [1, 10]},
    }


@for_each(
    ("model", "options", "message"),
    [
        (FakeChatModel(), {}, r"the model is an object \(FakeChatModel\)"),
        ("openai:x", {"memory": FailureMemory()}, "`memory` holds a live object"),
    ],
)
def test_what_cannot_be_sent_is_said_in_a_sentence(model, options, message):
    with pytest.raises(OptionError, match=message):
        _ = create_bsm_judge(model, **options).spec


@for_each("spec", [{}, {"method": "bsm"}, {"method": "bsm", "model": "x", "k": 1}])
def test_a_spec_is_checked(spec):
    with pytest.raises(OptionError, match="a spec is"):
        load_judge(spec)


def test_a_spec_describes_its_model(monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "a-secret")
    model = {"name": "openai:m", "base_url": "http://127.0.0.1:9/v1", "timeout": 9.0}
    model |= {"api_key_env": "JUDGE_KEY", "settings": {"reasoning_effort": "low"}}
    spec = {"method": "relative", "model": model, "options": {}}
    judge = load_judge(json.loads(json.dumps(spec)))
    assert judge.spec == spec
    own = judge.config["metadata"]["model"]["judge"]
    assert (own["name"], own["reasoning_effort"]) == ("m", "low")
    assert "a-secret" not in json.dumps(judge.spec)


@for_each("model", [{}, {"name": "openai:x", "api_key": "a value"}])
def test_the_model_of_a_spec_is_checked(model):
    with pytest.raises(OptionError, match="`model` of a spec"):
        load_judge({"method": "relative", "model": model})
