"""Images, audio and files in what is judged: sent where they stand, or refused by name."""

import itertools
import json
from base64 import b64decode, b64encode
from io import BytesIO
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage
from PIL import Image

from langchain_judges import as_evaluator, create_rubric_judge, judge_many
from langchain_judges.errors import InputError
from langchain_judges.methods.registry import METHODS
from langchain_judges.rows.media import mark_of
from langchain_judges.testing import reply
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel
from tests.judges import answer, of_method


def test_an_example_with_an_image_is_left_out_with_a_note():
    model = FakeChatModel(replies=lambda _: {"explanation": "e", "label": "1"})
    lessons = [{"input": "draw", "output": "a cat", "label": 0}]
    lessons += [{"input": "draw", "output": says([IN_PNG]), "label": 0}]
    lessons += [{"input": says([IN_PNG]), "output": f"{mark_of(AT)}", "label": 0}]
    judge = create_rubric_judge(model, rubric="Is it kind?", memory=lessons)
    verdict = judge.invoke({"input": "draw a dog", "output": "here"})["verdict"]
    assert len(verdict["recalled"]) == 1
    assert "[image" not in model.prompts[0]
    assert "2 of 3" in verdict["failures"][0]["detail"]


def says(content):
    return [{"role": "assistant", "content": content}]


def image(name):
    return {"type": "image", "url": f"https://example.org/{name}.png"}


CAT, DOG = image("cat"), image("dog")
OPENAI = {"type": "image_url", "image_url": {"url": "https://example.org/bird.png"}}
AUDIO = {"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"}
FILE = {"type": "file", "base64": "AAAA", "mime_type": "application/pdf"}


def text_and(block, text="It is good."):
    return [{"type": "text", "text": text}, block]


def case_of(method, block):
    """A row that a method judges, with a block in the (first) judged text."""
    if METHODS[method].takes == "item":
        output = [AIMessage(text_and(block))]
        return {"input": "What is it?", "output": output, "expected": "A cat."}
    return {
        "input": "What is it?",
        "output_a": [AIMessage(text_and(block))],
        "output_b": [AIMessage(text_and(DOG))],
    }


def places(messages, block):
    """The tag in which a block stands, for each time that it was sent."""
    results = []
    for message in messages:
        opened = ""
        for part in message.content if isinstance(message.content, list) else []:
            if part == block:
                results.append(opened.rsplit("\n<", 1)[-1].split("-")[0].strip("<"))
            opened += part.get("text", "")
    return results


BLOCKS = {"standard": CAT, "openai": OPENAI, "audio": AUDIO, "pdf": FILE}


@for_each("block", BLOCKS.values(), ids=BLOCKS)
def test_a_block_is_sent_inside_the_fence_of_its_text(block):
    model = FakeChatModel(replies=answer)
    verdict = of_method("allure", model).invoke(case_of("allure", block))["verdict"]
    assert (verdict["label"], places(model.messages[0], block)) == (1, ["response"])
    before, at, after = cast("Any", model.messages[0][-1].content)[:3]
    assert before["text"].endswith(f"It is good.\n{mark_of(block)}")
    assert at == block
    assert after["text"].startswith("\n</response-")


PNG = "data:image/png;base64,AAAA"
IN_PNG = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
AT = {"type": "image", "url": "https://example.org/a.png"}
# As inspect, the AI SDK, Hugging Face, Gemini, Bedrock, Haystack and OpenAI have it.
FORMS: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"type": "image", "image": PNG, "detail": "auto"}, IN_PNG),
    ({"type": "image", "image": "AAAA", "mediaType": "image/png"}, IN_PNG),
    ({"type": "file", "url": AT["url"], "mediaType": "image/png"}, AT | {"mime_type": "image/png"}),
    (
        {"type": "image", "image": {"bytes": "iVBORw==", "path": None}},
        IN_PNG | {"base64": "iVBORw=="},
    ),
    ({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, IN_PNG),
    ({"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "Ep8E"}, IN_PNG),
    ({"image": {"format": "png", "source": {"bytes": "AAAA"}}}, IN_PNG),
    ({"image": {"base64_image": "AAAA", "mime_type": "image/png"}}, IN_PNG),
    ({"type": "input_image", "image_url": AT["url"]}, AT),
    ({"type": "audio", "audio": "AAAA", "format": "wav"}, AUDIO),
]


@for_each("block, sent", FORMS)
def test_a_medium_in_another_form_is_sent_as_every_provider_takes_it(block, sent):
    model = FakeChatModel(replies=answer)
    of_method("allure", model).invoke(case_of("allure", block))
    [found] = [
        part for part in cast("Any", model.messages[0][-1].content) if part["type"] != "text"
    ]
    assert found == {"type": "image", **sent}


@for_each("form", ["an image", "its bytes"])
def test_an_image_in_a_column_of_hugging_face_is_sent_as_part_of_the_task(form):
    Image.new("RGB", (2, 2)).save(file := BytesIO(), "PNG")
    of_bytes = {"bytes": file.getvalue(), "path": None}
    cell = Image.open(file) if form == "an image" else of_bytes
    model = FakeChatModel(replies=answer)
    row = {"question": "What is it?", "image": cell, "answer": "A cat.", "expected": "A dog."}
    columns = {"input": ["question", "image"]}
    list(judge_many(of_method("allure", model), [row], columns=columns, progress=False))
    [found] = [part for part in cast("Any", model.messages[0][-1].content) if "base64" in part]
    assert found["type"] == "image"
    assert Image.open(BytesIO(b64decode(found["base64"]))).size == (2, 2)


@for_each("held", [{}, {"path": "/tmp/a.png"}, {"image": "attachment://3f2a"}, {"image": "AAAA"}])
def test_an_image_without_its_content_is_refused_before_any_call(held):
    model = FakeChatModel(replies=answer)
    case = case_of("allure", {"type": "image", **held})
    [failure] = of_method("allure", model).invoke(case)["verdict"]["failures"]
    assert "holds no address or known data: the key" in failure["detail"]
    assert model.prompts == []


@for_each("block", [{"type": "file", "name": "a.py"}, {"image": "a cat"}])
def test_data_that_are_only_called_a_file_or_an_image_are_shown_as_data(block):
    model = FakeChatModel(replies=answer)
    of_method("allure", model).invoke(case_of("allure", block))
    assert json.dumps(block) in model.prompts[0]


# What looks like a medium, and is data: it says what to make or where one is.
CALLED: dict[str, Any] = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"name": "draw", "id": "1"}],
}
DRAWN: list[Any] = [{"role": "tool", "tool_call_id": "1", "content": "done"}, AIMessage("There.")]
LIKE_MEDIA = [
    {"type": "image", "prompt": "a red cat"},
    {"type": "audio", "duration": 3},
    {"block": {"type": "video", "alt": "a cat"}},
    {"type": "image", "path": "a.png"},
]
AT_ADDRESS = {"type": "image", "url": "https://example.org/a.png"}


def called_with(data):
    calls = [{**CALLED["tool_calls"][0], "args": data}]
    return [{**CALLED, "tool_calls": calls}, *DRAWN]


PLACES: dict[str, Any] = {
    "arguments": called_with,
    "a result": lambda data: [CALLED, {**DRAWN[0], "content": [data]}, DRAWN[1]],
    "a result alone": lambda data: [CALLED, {**DRAWN[0], "content": data}, DRAWN[1]],
    "an item's result": lambda data: [
        {"type": "function_call", "call_id": "1", "name": "draw", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": [data]},
        DRAWN[1],
    ],
    "a structured response": lambda data: {"messages": DRAWN[1:], "structured_response": data},
    "an answer": lambda data: {"answer": data},
    "the output": lambda data: data,
}


@for_each("place, data", itertools.product(PLACES, LIKE_MEDIA))
def test_data_are_no_media_wherever_they_stand(place, data):
    model = FakeChatModel(replies=answer)
    verdict = create_rubric_judge(model, rubric="Is it good?").invoke(
        {"input": "Draw.", "output": PLACES[place](data)}
    )
    assert json.dumps(data) in model.prompts[0]
    assert verdict["verdict"]["label"] is not None


@for_each("data", [AT_ADDRESS, {"input": AT_ADDRESS}, {**AT_ADDRESS, "size": "12 x 13"}])
def test_an_address_of_an_image_among_arguments_or_other_data_is_not_sent(data):
    model = FakeChatModel(replies=answer, profile={"image_inputs": False})
    works = [called_with(data), PLACES["a result"]({**data, "size": "12 x 13"})]
    for output in works:
        row = {"input": "Draw.", "output": output, "thumbnail": AT_ADDRESS}
        assert (
            create_rubric_judge(model, rubric="Is it good?").invoke(row)["verdict"]["label"]
            is not None
        )
        assert AT_ADDRESS["url"] in model.prompts[-1]


def test_data_of_a_tool_beside_a_document_are_shown_whatever_they_are_called():
    source = {"type": "text", "media_type": "text/plain", "data": "Daily"}
    data = {"type": "remove", "item": "bread"}
    output = PLACES["a result"](data)
    output[1]["content"] += [{"type": "document", "source": source}]
    model = FakeChatModel(replies=answer)
    create_rubric_judge(model, rubric="Is it good?").invoke({"input": "Clean.", "output": output})
    assert f"{json.dumps(data)}\nDaily\n" in model.prompts[0]


# What describes an image, beside its address, as libraries and people write it.
DESCRIBED: list[dict[str, Any]] = [
    {"alt": "A cat"},
    {"altText": "A cat", "caption": "Tom"},
    {"width": 12, "height": 13},
    {"providerOptions": {"openai": {"imageDetail": "low"}}},
    {"created_at": 1, "revised_prompt": "A cat.", "model": "gpt-image-1"},
    {"mimeType": "image/png"},
]


@for_each("more", DESCRIBED)
@for_each("at", [AT_ADDRESS, {"type": "image", "source": {"type": "url", "url": AT["url"]}}])
def test_an_image_by_address_that_a_tool_returned_is_sent_whatever_describes_it(more, at):
    model = FakeChatModel(replies=answer)
    output = PLACES["a result"]({**at, **more})
    create_rubric_judge(model, rubric="Is it good?").invoke({"input": "Draw.", "output": output})
    [sent] = [p for p in cast("Any", model.messages[0][-1].content) if p["type"] != "text"]
    assert (sent["type"], sent["url"]) == ("image", AT["url"])


WHOLE = b64encode(bytes(range(255)) * 4).decode()


@for_each("held", [f"data:image/png;base64,{WHOLE[:99]}", WHOLE])
def test_data_beside_a_task_that_are_not_shown_are_noted_and_a_word_is_not(held):
    judge = create_rubric_judge(FakeChatModel(replies=answer), rubric="Is it good?")
    task, asked = {"question": "What is it?", "photo": held}, {"question": "What is it?"}
    for row in ({"input": task}, {"input": "What is it?", "photo": held}):
        [note] = judge.invoke({**row, "output": "A cat."})["verdict"]["failures"]
        assert note["detail"].endswith("not shown: 'photo'")
    said = as_evaluator(judge)(inputs=task, outputs="A cat.")["comment"]
    assert said.endswith("Note: input is read from 'question'; not shown: 'photo'.")
    row = {"input": {**asked, "photo": f"https://x.org/?key={WHOLE[:500]}"}, "output": "A cat."}
    assert judge.invoke(row)["verdict"]["failures"] == []


# A link to a page, as an MCP server's tool returns one, and one to a document.
PAGE = {"type": "file", "url": "https://example.org/refunds", "mime_type": "text/html"}
PDF = {**PAGE, "mime_type": "application/pdf"}


@for_each("place", ["a result", "source"])
def test_a_link_to_a_page_is_shown_as_its_address_and_not_sent(place):
    model = FakeChatModel(replies=answer, profile={"pdf_inputs": False})
    row: dict[str, Any] = {"input": "When?", "output": "3 days."}
    row |= {"source": [PAGE]} if place == "source" else {"output": PLACES[place](PAGE)}
    create_rubric_judge(model, rubric="Is it good?").invoke(row)
    assert isinstance(model.messages[0][-1].content, str)
    shown = f'"url": "{PAGE["url"]}"'
    assert shown in model.prompts[0]


def test_a_file_that_a_models_class_refuses_before_it_is_sent_is_said_at_once(serve):
    server = serve(lambda call: reply("1"))
    judge = create_rubric_judge(chat(server), rubric="Is it good?")
    verdict = judge.invoke({"input": "When?", "output": PLACES["a result"](PDF)})["verdict"]
    [failure] = verdict["failures"]
    assert failure["reason"] == "provider_error"
    assert failure["detail"].startswith("ValueError: OpenAI Chat Completions does not support")
    assert (verdict["usage"]["by_step"]["evaluate"]["retries"], server.calls) == (1, [])


SHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="}


@for_each("output", [SHOT, [SHOT], [{"type": "input_text", "text": "Seen."}, SHOT]])
def test_an_image_that_a_tool_returned_is_sent(output):
    model = FakeChatModel(replies=answer)
    asked = {"type": "computer_call", "call_id": "1", "action": {"type": "screenshot"}}
    work = [asked, {"type": "computer_call_output", "call_id": "1", "output": output}, DRAWN[1]]
    create_rubric_judge(model, rubric="Is it good?").invoke({"input": "Look.", "output": work})
    [sent] = [p for p in cast("Any", model.messages[0][-1].content) if p["type"] != "text"]
    assert sent == {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}


@for_each("field", ["input", "output"])
def test_a_document_that_is_a_text_is_shown_with_its_title(field):
    source = {"type": "text", "media_type": "text/plain", "data": "Daily"}
    block = {"type": "document", "source": source, "title": "Hours", "context": "of 2026"}
    model = FakeChatModel(replies=answer, profile={"image_inputs": False, "pdf_inputs": False})
    row = {"input": "When?", "output": "At 10.", field: [{"role": "user", "content": [block]}]}
    verdict = create_rubric_judge(model, rubric="Is it good?").invoke(row)["verdict"]
    assert ("\nHours\nof 2026\nDaily\n" in model.prompts[0], verdict["failures"]) == (True, [])


@for_each("method", METHODS)
def test_every_judge_sends_an_image_wherever_its_text_is_shown(method):
    model = FakeChatModel(replies=answer)
    case = {**case_of(method, CAT), "input": text_and(OPENAI, "What is on it?")}
    assert of_method(method, model).invoke(case)["verdict"]["rationale"]
    for block in (CAT, OPENAI):
        mentions = [mark_of(block) in prompt for prompt in model.prompts]
        assert any(mentions)
        assert [bool(places(messages, block)) for messages in model.messages] == mentions


@for_each("method", METHODS)
async def test_a_model_that_takes_no_images_refuses_the_row_before_any_call(method):
    model = FakeChatModel(replies=answer, profile={"image_inputs": False})
    judge, case = of_method(method, model), case_of(method, CAT)
    for verdict in (judge.invoke(case)["verdict"], (await judge.ainvoke(case))["verdict"]):
        assert verdict.get("preference", verdict.get("label")) is None
        [failure] = verdict["failures"]
        assert failure["reason"] == "invalid_input"
        assert "'FakeChatModel' takes no image" in failure["detail"]
    assert model.prompts == []


def test_texts_that_differ_only_in_an_image_are_not_identical():
    model = FakeChatModel(replies=answer)
    judge = of_method("relative", model)
    judge.invoke(case_of("relative", CAT))
    assert len(model.prompts) == 2
    judge.invoke(case_of("relative", DOG))  # the same image on both sides
    assert len(model.prompts) == 2


@for_each("field", ["reference", "expected"])
def test_an_image_as_a_reference_is_refused_by_name(field):
    method = "allure" if field == "expected" else "relative"
    case = {**case_of(method, CAT), field: AIMessage([CAT])}
    with pytest.raises(InputError, match=f"`{field}` must be a text"):
        of_method(method).invoke(case)
