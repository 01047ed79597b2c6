import time

from langchain_core.messages import AIMessage

from langchain_judges.asking.reading import read
from tests.attacks.kinds import KINDS, odd_endings, odd_replies
from tests.attacks.replies import attack, outcome
from tests.cases import for_each

THOUGHTS = odd_replies("thoughts.json")
PROSE = odd_replies("prose.json")
ENDINGS = odd_endings("endings.json")


def verdict_of(odd):
    data, _ = read(AIMessage(odd.reply), odd.kind.shape, odd.kind.parse, None, odd.material)
    return data and {name: data[name] for name in odd.kind.answer}


@for_each("name", THOUGHTS)
def test_thoughts_are_told_from_the_answer(name):
    odd = THOUGHTS[name]
    assert verdict_of(odd) == odd.verdict


@for_each("name", PROSE)
def test_words_are_a_verdict_only_where_a_line_of_its_own_says_one(name):
    odd = PROSE[name]
    assert verdict_of(odd) == odd.verdict


@for_each("name", ENDINGS)
def test_a_message_that_is_no_full_reply_is_no_verdict_and_says_why(name):
    kind, message, reason = ENDINGS[name]
    data, problem = read(message, kind.shape, None, "T")
    assert (data is None) == (reason is not None)
    assert reason in {"any", problem and problem.reason}


CHARACTERS = 50_000
LONG = {
    "spaces": "response 1" + " " * CHARACTERS + "x",
    "marks": "response 1" + "*_`" * (CHARACTERS // 3) + "x",
    "colons": ":" * CHARACTERS,
    "words": "the final label " * (CHARACTERS // 16),
    "lines": "Preferred: 1 or\n" * (CHARACTERS // 16),
    "votes": "vote: 1, vote: 2, " * (CHARACTERS // 18),
    "digits": "Response 1: " + "9" * CHARACTERS,
    "bullets": "1. name" + " -" * (CHARACTERS // 2),
    "points": "- a\n" * (CHARACTERS // 4),
    "braces": '{"label": ' * (CHARACTERS // 10),
    "tags": "</think>" * (CHARACTERS // 8),
    "brackets": "[" * CHARACTERS,
    "bars": "|" * CHARACTERS,
    "quotes": '"' * CHARACTERS,
    "topic": "Topic: a" + ":" * CHARACTERS + "b",
}


@for_each("text", LONG.values(), ids=LONG)
def test_a_long_reply_is_read_in_a_moment(text):
    # Seconds of this process: what runs beside it counts for nothing. The searches that
    # this is about took minutes for a fiftieth of it.
    began = time.process_time()
    for kind in KINDS.values():
        read(AIMessage(text), kind.shape, kind.parse, None, [text[::-1]])
    assert time.process_time() - began < 5


def test_no_reply_of_the_grammar_is_read_as_the_verdict_that_it_quotes_or_takes_back():
    assert [seed for seed in range(2_000) if outcome(attack(seed)) == "forged"] == []
