"""Responses as providers return them: read whichever provider it is, also where nothing is said."""

import itertools
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from langchain_judges import as_evaluator, create_rubric_judge
from langchain_judges.errors import InputError
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.work import work_in
from langchain_judges.verdict import NOTES
from tests.cases import for_each
from tests.fakes import FakeChatModel, unfenced
from tests.judges import answer

USED = {"total_tokens": 17, "tier": "standard"}


def said(text, **own):
    return {"role": "assistant", "content": text, **own}


def blocks(text, kind="text"):
    return [{"type": kind, "text": text}] if text else []


def items(text):
    thought = {"type": "reasoning", "id": "r", "summary": []}
    return [thought, {"type": "message", **said(blocks(text, "output_text"))}] if text else []


def openai(text, end):
    choice = {"index": 0, "message": said(text, refusal=None), "finish_reason": end}
    return {"id": "c", "object": "chat.completion", "choices": [choice], "usage": USED}


def responses(text, end):
    why = None if end == "completed" else {"reason": end}
    also = {"instructions": "Be kind to all.", "text": {"format": {"type": "text"}}, "tools": []}
    status = "incomplete" if why else "completed"
    said = {"object": "response", "status": status, "output": items(text)}
    return {"id": "r", **said, "incomplete_details": why, "billing": {"payer": "you"}, **also}


def gemini(text, end, *, parts=True):
    held: Any = {"role": "model"} | ({"parts": [{"text": text}] if text else []} if parts else {})
    candidate = {"content": held, "finishReason": end, "index": 0}
    return {"candidates": [candidate], "modelVersion": "gemini", "usageMetadata": USED}


def converse(text, end):
    message = said([{"text": text}] if text else [])
    return {"output": {"message": message}, "stopReason": end, "metrics": {"ms": 5}, "usage": USED}


# A response that says a text, or none, and that ended in some way.
PROVIDERS: dict[str, Any] = {
    "OpenAI": openai,
    "OpenAI, completions": lambda text, end: {
        "object": "text_completion", "choices": [{"text": text or "", "finish_reason": end}],
    },
    "OpenAI, Responses": responses,
    "Anthropic": lambda text, end: {
        "id": "m", "type": "message", **said(blocks(text)), "stop_reason": end, "usage": USED,
    },
    "Gemini": gemini,
    "Gemini without parts": lambda text, end: gemini(text, end, parts=bool(text)),
    "Gemini without content": lambda text, end: gemini(text, end) if text else {
        "candidates": [{"finishReason": end, "safetyRatings": [{"category": "a b"}]}],
    },
    "Bedrock": converse,
    "Bedrock's Llama": lambda text, end: {
        "generation": text or "", "stop_reason": end, "prompt_token_count": 3,
    },
    "Ollama": lambda text, end: {
        "model": "l", "created_at": "2026-01-01", "message": said(text or ""), "done": True,
        "done_reason": end,
    },
    "Ollama's generate": lambda text, end: {
        "model": "l", "response": text or "", "done": True, "done_reason": end, "context": [1],
    },
    "Cohere": lambda text, end: {
        "id": "c", "message": said(blocks(text)), "finish_reason": end, "usage": USED,
    },
    "LangChain": lambda text, end: {
        "generations": [[{"text": text or "", "generation_info": {"finish_reason": end}}]],
        "llm_output": {"token_usage": USED},
    },
    "LangChain's Responses": lambda text, end: {
        "type": "ai", "content": blocks(text),
        "response_metadata": {"incomplete_details": end and {"reason": end}, "status": "done"},
    },
}  # fmt: skip
# How it says that it ended as any does, and that it was cut; by a filter all alike.
WORDS = {
    "Gemini": ("STOP", "MAX_TOKENS"),
    "Anthropic": ("end_turn", "max_tokens"),
    "Bedrock": ("end_turn", "model_context_window_exceeded"),
    "Cohere": ("COMPLETE", "MAX_TOKENS"),
    "OpenAI, Responses": ("completed", "max_output_tokens"),
    "LangChain's Responses": (None, "max_output_tokens"),
}
CUT = "The last reply was cut at its limit of tokens."
STOPPED = "The last reply was stopped by its provider or refused."


def words_of(provider):
    return WORDS.get(provider) or WORDS.get(provider.partition(" ")[0]) or ("stop", "length")


def on_a_row(judge, outputs):
    return judge.invoke({"input": "Why?", "output": outputs})["verdict"]["failures"]


def on_an_evaluator(judge, outputs):
    return as_evaluator(judge)(inputs={"question": "Why?"}, outputs=outputs)["metadata"]["failures"]


PATHS = {
    "a row": on_a_row,
    "an evaluator": on_an_evaluator,
    "below a key": lambda judge, outputs: on_an_evaluator(judge, {"response": outputs}),
}


def shown(path, response):
    """What a judge is shown as the response, and what it notes."""
    model = FakeChatModel(replies=answer)
    failures = PATHS[path](create_rubric_judge(model, rubric="Is it so?"), response)
    [prompt] = model.prompts
    _, _, text = unfenced(prompt).partition("[response]\n")
    text, _, _ = text.partition("\n\nGive your reason")
    return text.strip(), [each["detail"] for each in failures]


@for_each("provider, path", itertools.product(PROVIDERS, PATHS))
def test_a_response_shows_what_it_says_and_how_it_ended_and_is_no_note(provider, path):
    usual, cut = words_of(provider)
    respond = PROVIDERS[provider]
    assert shown(path, respond("It is so.", usual)) == ("It is so.", [])
    for end, told in ((cut, CUT), ("content_filter", STOPPED)):
        for text in ("It is", None):
            steps = [*(["[assistant]", text, ""] if text else []), "[how-it-ended]", told]
            assert shown(path, respond(text, end)) == ("\n".join(steps), []), (end, text)


@for_each("provider", PROVIDERS)
def test_a_reply_that_says_nothing_and_ended_as_any_does_is_an_empty_text(provider):
    usual, _ = words_of(provider)
    with pytest.raises(InputError, match="`output`: the text is empty"):
        work_in(PROVIDERS[provider](None, usual))


@for_each(
    ("response", "told"),
    [
        (
            gemini(None, "MALFORMED_FUNCTION_CALL"),
            "The last reply broke off: malformed_function_call.",
        ),
        (openai("It is", "error"), "The last reply broke off: error."),
        ({**responses(None, "completed"), "status": "queued"}, "The last reply broke off: queued."),
        ({"promptFeedback": {"blockReason": "OTHER"}, "modelVersion": "gemini"}, STOPPED),
        (
            {**responses(None, "completed"), "status": "failed", "error": {"message": "no room"}},
            'It failed: {"message": "no room"}',
        ),
        ({"choices": [{"message": {"role": "assistant"}, "finish_reason": "length"}]}, CUT),
    ],
)
def test_a_response_says_why_there_is_no_reply(response, told):
    assert plain_row({"input": "Why?", "output": response})["output"][-1]["content"] == told


@for_each(
    "value",
    [
        {"choices": [{"text": "a vase", "label": "A"}], "answer": "A"},
        {"output": "It is so.", "object": "a vase"},
        {"candidates": [{"name": "Ann"}, {"name": "Bo"}]},
        {"response": {"city": "Kyiv"}, "done_reason": None, "notes": "He was asked twice."},
    ],
)
def test_data_that_have_words_of_a_response_are_none(value):
    assert plain_row({"input": "Why?", "output": value})[NOTES]


@for_each("place", ["response_metadata", "generation_info", "incomplete_details"])
def test_where_a_message_says_how_it_ended_is_no_key_that_is_not_shown(place):
    name = "reason" if place == "incomplete_details" else "finish_reason"
    said = {"role": "assistant", "content": "It is", place: {name: "max_tokens"}}
    row = plain_row({"input": "Why?", "output": [{"role": "user", "content": "Why?"}, said]})
    assert row["output"][-1]["content"] == CUT
    assert not row.get(NOTES)


def texts(pieces, kind="text"):
    return [{"type": kind, "text": piece} for piece in pieces]


# A reply in pieces, as clients and providers have one.
SPLIT: dict[str, Any] = {
    "LangChain": lambda pieces: [AIMessage(texts(pieces))],
    "LangChain, bare": lambda pieces: [AIMessage(pieces)],
    "content alone": texts,
    "message": lambda pieces: [said(texts(pieces))],
    "Anthropic": lambda pieces: {"type": "message", **said(texts(pieces)), "stop_reason": "end"},
    "Responses": lambda pieces: responses("", "completed")
    | {"output": [{"type": "message", **said(texts(pieces, "output_text"))}]},
    "Gemini": lambda pieces: {
        **gemini("", "STOP"),
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": p} for p in pieces]},
                "finishReason": "STOP",
            }
        ],
    },
    "Converse": lambda pieces: {
        "output": {"message": said([{"text": piece} for piece in pieces])}, "stopReason": "end_turn"
    },
}  # fmt: skip


@for_each("form", SPLIT)
@given(
    st.lists(st.sampled_from(["Revenue ", "rose", " 5 %", "\n\n", "|", "2", "0", ""]), min_size=2)
)
@example(["Revenue ", "rose 5 %", " in 20", "24."])
def test_pieces_of_a_reply_are_the_text_that_its_user_read(form, pieces):
    whole = "".join(pieces)
    if whole.strip():
        assert work_in(SPLIT[form](pieces)) == whole
        # What was read is the same when it is read again.
        row = plain_row({"input": "q", "output": SPLIT[form](pieces)})
        assert plain_row(row)["output"] == row["output"] == whole


def test_texts_of_a_reply_that_do_not_follow_each_other_are_lines():
    thought = {"type": "thinking", "thinking": "Hm."}
    assert work_in([said([thought, *texts(["Yes"]), thought, *texts(["No"])])]) == "Yes\nNo"
    asked = {"role": "user", "content": texts(["Why?", "How?"])}
    assert plain_row({"input": [asked], "output": "So."})["input"][0]["content"] == asked["content"]
