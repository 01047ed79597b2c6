"""What factories refuse before a model is asked, where no class of options says it alone."""

from typing import Any, cast

import pytest

from langchain_judges import create_allure_judge, create_bsm_judge, learn_aspects
from langchain_judges.errors import OptionError
from langchain_judges.methods.bsm import prompts as texts
from tests.cases import for_each
from tests.fakes import FakeChatModel


def test_a_replaced_prompt_must_belong_to_a_step():
    with pytest.raises(OptionError, match=r"`prompts` takes \['branch', .*'solve'\], got 'x'"):
        create_bsm_judge(FakeChatModel(), prompts={"x": texts.BRANCH})


def test_steps_are_a_list():
    with pytest.raises(OptionError, match=r"`steps` must be .*, got 5"):
        create_allure_judge(FakeChatModel(), steps=cast("Any", 5))


@for_each("option", ["cache", "instructions", "prompts", "repairs"])
def test_learning_aspects_checks_what_factories_check(option):
    with pytest.raises(OptionError, match=f"`{option}` must be "):
        learn_aspects(FakeChatModel(), ["a text"], **cast("Any", {option: 5.5}))
