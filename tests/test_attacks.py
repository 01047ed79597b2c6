import pytest
from langchain_core.messages import AIMessage

from langchain_judges.asking.reply import read
from tests.attacks.kinds import odd_replies

THOUGHTS = odd_replies("thoughts.json")


def verdict_of(odd):
    data, _ = read(AIMessage(odd.reply), odd.kind.shape, odd.kind.parse, None, odd.material)
    return data and {name: data[name] for name in odd.kind.answer}


@pytest.mark.parametrize("name", THOUGHTS)
def test_thoughts_are_told_from_the_answer(name):
    odd = THOUGHTS[name]
    assert verdict_of(odd) == odd.verdict
