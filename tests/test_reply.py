import re

from langchain_core.messages import AIMessage

from langchain_judges.asking.reading import json_schema, read
from langchain_judges.methods.replies import scores_shape
from tests.cases import for_each

SCORES = scores_shape((1, 5), explain_first=False)
GOOD = '{"score_1": 4, "score_2": 2, "explanation": "clear"}'
VALUE = {"score_1": 4, "score_2": 2, "explanation": "clear"}


def reading(text):
    return read(AIMessage(text), SCORES, None, None)


@for_each(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Here you are: {GOOD}",
        f"Sure! Here is the JSON:\n```json\n{GOOD}\n```",
        GOOD.replace("4", "4.0"),
        f'<think>{{"score_1": 1, "score_2": 1, "explanation": ""}}</think>{GOOD}',
    ],
)
def test_a_usable_reply_is_read_in_whatever_wrapping(text):
    value, problem = reading(text)
    assert problem is None
    assert value == VALUE


@for_each(
    ("text", "reason", "detail"),
    [
        ("", "empty", "empty"),
        ("I like the first.", "unparsable", "I like the first"),
        ('{"score_1": 4', "unparsable", "not the JSON object"),
        ('{"score_1": 4}', "unparsable", "score_2: Field required"),
        (GOOD.replace("4", "9"), "invalid_label", "score_1: .* less than or equal to 5"),
        (GOOD.replace("4", "3.5"), "invalid_label", "score_1"),
        (GOOD + GOOD.replace("4", "5"), "unparsable", "more stands behind"),
        (GOOD.replace("4", "true"), "unparsable", "not true or false"),
        (
            GOOD.replace("{", '{"score_1": 5, '),
            "unparsable",
            "given twice",
        ),
        ("[" * 100_000, "unparsable", "not the JSON"),
    ],
)
def test_an_unusable_reply_is_told_apart_from_a_score(text, reason, detail):
    value, problem = reading(text)
    assert value is None
    assert problem.reason == reason
    assert re.search(detail, problem.detail)


def test_the_schema_is_flat_closed_and_in_the_order_of_the_paper():
    schema = json_schema(SCORES)
    assert list(schema["properties"]) == ["score_1", "score_2", "explanation"]
    assert schema["required"] == ["score_1", "score_2", "explanation"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["score_1"] == {"type": "integer", "minimum": 1, "maximum": 5}
