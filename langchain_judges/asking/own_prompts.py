"""Prompts of a caller's own: read, checked against those of a method, and filled in fences."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

import yaml
from langchain_core import messages as chat
from langchain_core.prompts import (
    BasePromptTemplate,
    ChatPromptTemplate,
    HumanMessagePromptTemplate,
    MessagesPlaceholder,
    StringPromptTemplate,
)
from langchain_core.prompts.message import BaseMessagePromptTemplate
from langchain_core.runnables import Runnable

from langchain_judges.asking.reading import ASK_ERRORS, REPLY_NAMES
from langchain_judges.asking.reply_log import key_of
from langchain_judges.errors import InputError, LackingError, OptionError
from langchain_judges.rows import checks, data
from langchain_judges.rows.fences import MATERIAL_RULE, fence
from langchain_judges.verdict import Item, Row

# Under a name that prompts of other packages, or of the other methods, have: our variables.
_FIELDS: Mapping[str, str] = REPLY_NAMES["fields"]
OUR_NAMES: Mapping[str, Sequence[str]] = REPLY_NAMES["variables"]
Prompts = Mapping[str, ChatPromptTemplate]
# Says which text a reply calls 1: both orders are asked, so that letters of a caller's are no help.
_SLOTS = "Response 1 is the text shown first, response 2 the text shown second."
# Variables that have no fence yet.
_BARE = {"task", "request", "response", "response_1", "response_2"}
# Stands for the prompt that judges, where a caller's one prompt names no step.
ONLY = "*"
# A prompt, and not the path of a file of prompts.
_TEXT = re.compile(r"[{}\n]")
# What stands between braces, and names no variable.
_NO_NAME = re.compile(r"[\"'\n]|^\s*$")
# Braces that are written twice, and those around a variable.
_PAIRED = re.compile(r"\{\{|\}\}|\{[^\W\d][^{}\"'\n]*\}")
# A variable of a mustache template that is put in as HTML.
_AS_HTML = re.compile(r"(?<!\{)\{\{\s*([^{}#^/!>&=\s][^{}]*?)\s*\}\}(?!\})")
# Texts that no template shows alike, unless it shows all of them.
_SHORT, _LONG = "\ue000", '<Ab> & "c"\n  d\'s ' * 1000 + "."
# What names that differ on purpose differ by: a plural, a number, a side.
_STEM = re.compile(r"s?(_?\d+|_[a-z])?$")
# Fields that a prompt of any step may name, beside the variables of its method.
_ROW_FIELDS = {*OUR_NAMES, *Row.__annotations__, *Item.__annotations__}
# Names of columns that hold a task or a right answer, and never what is judged.
_BESIDE = {*checks.NAMES["input"], *checks.NAMES["expected"]}.difference(checks.NAMES["output"])
# Of the fields, what only steps that judge are shown: a plan is made from the request alone.
_JUDGED = {"output", "output_a", "output_b", "outputs"}
_PROMPT_KEYS = {"system", "prompt"}


def in_fence(name: str, text: str) -> str:
    """A text between tags that no text of the prompt can close."""
    token, end = fence(text), "\n" if "\n" in text else ""
    return f"<{name}-{token}>{end}{text}{end}</{name}-{token}>"


def as_text(value: Any) -> str:
    """A value of a row as a text, messages as OpenAI's."""
    return value if isinstance(value, str) else data.as_json(_as_openai(value))


def _as_openai(value: Any) -> Any:
    if isinstance(value, chat.BaseMessage):
        return chat.convert_to_openai_messages(value)
    if isinstance(value, Mapping):
        return {key: _as_openai(part) for key, part in value.items()}
    return [_as_openai(part) for part in value] if isinstance(value, list | tuple) else value


class FencedPrompt(ChatPromptTemplate):
    """A prompt of a caller's own, whose texts are put in fences.

    The names of other packages and of fields of the row are filled.
    """


# Templates of messages that hold nothing else: others may have a schema or ways of their own.
_PLAIN = (ChatPromptTemplate, FencedPrompt)


def placeholders(prompt: ChatPromptTemplate) -> set[str]:
    """Names of the variables of a prompt that are whole messages."""
    own = {m.variable_name for m in prompt.messages if isinstance(m, MessagesPlaceholder)}
    parts = (part for part in prompt.messages if isinstance(part, ChatPromptTemplate))
    return own.union(*map(placeholders, parts))


def with_fences(prompt: ChatPromptTemplate, given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the variables of a prompt; of a caller's each text in a fence of its own.

    Args:
        prompt: The prompt that is filled.
        given: The variables of the method's own prompt, and further fields of the row as
            `of_row`.
    """
    values = dict(given)
    if not isinstance(prompt, FencedPrompt):
        return values
    own = given.get("of_row") or {}
    for name in {*prompt.input_variables} - placeholders(prompt):
        ours = {each: given.get(each) for each in OUR_NAMES.get(name, (name,))}
        parts = {each: text for each, text in ours.items() if text not in (None, [])}
        # What a method shows under a name, in its order, no column of that name replaces.
        if name in own and not any(parts.values()):
            value = own[name]
            is_number = isinstance(value, bool | int | float)
            values[name] = value if is_number else in_fence(name, as_text(value))
            continue
        tags = {each: each if each[-1:].isdigit() else name for each in parts}
        if parts:
            values[name] = "\n".join(
                in_fence(tags[each], str(text)) if each in _BARE else str(text)
                for each, text in parts.items()
            )
        if "shared" in parts:  # shown here, and not behind the system's message
            values |= {name: values[name].strip(), "shared": ""}
    return values


def read_prompts(value: Any) -> Any:
    """Prompts by step, those of a file as plain data.

    Args:
        value: A path, the prompts, or the one that judges.

    Raises:
        OptionError: The file cannot be read.
    """
    is_text = isinstance(value, str) and _TEXT.search(value)
    if is_text or isinstance(value, Runnable):
        value = {ONLY: value}
    if isinstance(value, str | PathLike):
        try:
            text = Path(value).read_text(encoding="utf-8")
            value = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - all as text, no objects
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
            hint = "" if Path(value).suffix else "; a prompt shows variables, as in {outputs}"
            raise OptionError(f"`prompts`: {value!s} cannot be read: {exc}{hint}") from exc
    if isinstance(value, Mapping):
        for step, prompt in value.items():
            own_prompt(str(step), prompt)
    return value


def unescaped(template: Any) -> Any:
    """A prompt whose mustache variables are put in as they are: its reader is no browser."""

    def change(part: Any) -> dict[str, Any]:
        text: Any = getattr(part, "template", None)
        is_html = isinstance(text, str) and part.template_format == "mustache"
        return {"template": _AS_HTML.sub(r"{{{\1}}}", text)} if is_html else {}

    return _changed(template, change)


def _fixed(template: Any, say: Callable[[Any], object]) -> Any:
    """A prompt that is filled by what is said of each function that would fill it."""

    def change(part: Any) -> dict[str, Any]:
        filled = getattr(part, "partial_variables", {}).items()
        return {"partial_variables": {n: say(v) if callable(v) else v for n, v in filled}}

    return _changed(template, change)


def _changed(template: Any, change: Callable[[Any], dict[str, Any]]) -> Any:
    """A prompt with other fields in each template that it is made of."""
    if isinstance(template, list):
        return [_changed(part, change) for part in template]
    if not isinstance(template, BasePromptTemplate | BaseMessagePromptTemplate):
        return template
    fields = {name: _changed(held, change) for name, held in vars(template).items()}
    return template.model_copy(update={**fields, **change(template)})


def own_prompt(step: str, prompt: object) -> ChatPromptTemplate:
    """The prompt of a step: a template, or one made of what a file says.

    Raises:
        OptionError: It is neither, or holds what is not asked by, such as a schema.
    """
    prompt = unescaped(prompt)
    which = "`prompts`: the prompt" + ("" if step == ONLY else f" of {step!r}")
    is_plain = type(prompt) in _PLAIN or isinstance(prompt, StringPromptTemplate)
    if isinstance(prompt, Runnable) and (not is_plain or getattr(prompt, "output_parser", None)):
        raise OptionError(ASK_ERRORS["beside"].format(which=which, kind=type(prompt).__name__))
    kind: type[ChatPromptTemplate] = ChatPromptTemplate
    messages: list[Any]
    if isinstance(prompt, ChatPromptTemplate):
        return template_of(which, [], own=prompt)
    if isinstance(prompt, StringPromptTemplate):
        kind, messages = FencedPrompt, [HumanMessagePromptTemplate(prompt=prompt)]
    elif isinstance(prompt, str) and prompt.strip():
        kind, messages = FencedPrompt, [("human", prompt)]
    elif isinstance(prompt, Mapping) and "prompt" in prompt and not set(prompt) - _PROMPT_KEYS:
        parts = ("system", prompt.get("system")), ("human", prompt["prompt"])
        messages = [(role, str(text)) for role, text in parts if text or role == "human"]
    else:
        raise OptionError(ASK_ERRORS["no_prompt"].format(prompt=prompt, step=step))
    return template_of(which, messages, kind)


def template_of(
    which: str,
    messages: Sequence[Any],
    kind: type[ChatPromptTemplate] = ChatPromptTemplate,
    own: ChatPromptTemplate | None = None,
) -> ChatPromptTemplate:
    """A template that can be filled.

    Args:
        which: What it is called in an error.
        messages: Its messages; texts with their role are f-strings.
        kind: Its class.
        own: Itself, where it is made already.

    Raises:
        OptionError: A brace stands alone, or around what is no name.
    """
    try:
        template = own or kind.from_messages(messages)
        _filled(template, dict.fromkeys(template.input_variables, _SHORT))
        if odd := [name for name in template.input_variables if _NO_NAME.search(name)]:
            raise ValueError(f"{odd[0]!r} is no name")
    except (ValueError, LookupError) as exc:
        why = _lone_brace(messages) or exc
        raise OptionError(ASK_ERRORS["lone_brace"].format(which=which, why=why)) from exc
    return template


def _lone_brace(messages: Sequence[Any]) -> str:
    """Which brace of messages is no variable's; empty if all are."""
    for text in (each[1] for each in messages if isinstance(each, tuple)):
        single = _PAIRED.sub(lambda pair: " " * len(pair[0]), text)
        if brace := re.search("[{}]", single):
            around = text[max(0, brace.start() - 20) : brace.end() + 20]
            return f"the {brace[0]} in {around!r} is no variable's"
    return ""


def prompt_set(
    originals: Prompts,
    replaced: Mapping[str, Any] | BasePromptTemplate[Any] | str | PathLike[str] | None,
    only: str = "",
    filled: Collection[str] = (),
) -> tuple[dict[str, ChatPromptTemplate], str]:
    """A method's prompts, some replaced by the caller's, and a hash of them all.

    Args:
        originals: The method's own.
        replaced: The caller's.
        only: The step of one prompt that names none.
        filled: Options that are set.

    Raises:
        OptionError: A name is unknown, or a replacement asks for a variable that the step
            does not fill, or leaves one out that it needs.
        TypeError: A prompt of the method is not a template.
    """
    for step, template in originals.items():
        if not isinstance(template, ChatPromptTemplate):
            raise TypeError(f"the template {step!r} must be a ChatPromptTemplate: {template!r}")
    prompts = dict(originals)
    for given, own in (read_prompts(replaced) or {}).items():
        step = only or given if given == ONLY else given
        if step not in originals:
            got = "one prompt for no step" if step == ONLY else repr(step)
            raise OptionError(f"`prompts` takes {sorted(originals)!r}, got {got}")
        prompt = own_prompt(step, own)
        # What the method's own shows as messages, and this one as a text.
        written = placeholders(originals[step]) - placeholders(prompt)
        known = set(originals[step].input_variables) - written
        extra = {*prompt.input_variables} - known
        _check_spelling(step, extra - _ROW_FIELDS, known | _ROW_FIELDS)
        is_fenced = isinstance(prompt, FencedPrompt)
        is_copy = not is_fenced and bool({"fence", "fence_1"} & {*prompt.input_variables})
        astray = {n for n in extra if is_copy or (n in _JUDGED and not known & {*OUR_NAMES[n]})}
        if astray:
            names = {"allowed": sorted(known), "got": sorted(astray)}
            raise OptionError(ASK_ERRORS["unknown_name"].format(step=step, **names))
        # Messages that nothing here makes: a row fills its names with texts.
        for name in sorted(placeholders(prompt) - placeholders(originals[step])):
            is_filled = prompt.partial_variables.get(name)
            if not is_filled and name in {*prompt.input_variables, *known, *_ROW_FIELDS}:
                raise OptionError(ASK_ERRORS["as_messages"].format(step=step, name=name))
        if is_fenced or extra:
            prompt = _as_fenced(prompt, known, originals[step])
        _check_whole(step, prompt)
        _check_places(step, prompt, known)
        _check_shown(step, prompt, known | written, filled)
        prompts[step] = prompt
    return prompts, key_of({step: _texts(prompt) for step, prompt in prompts.items()})[:12]


def _check_shown(
    step: str, prompt: ChatPromptTemplate, ours: set[str], filled: Collection[str]
) -> None:
    """Check that a caller's prompt leaves out nothing that is said nowhere else.

    Raises:
        OptionError: It shows not what is judged, one text of a pair, not what other steps made,
            or not what an option says.
    """
    own = {*prompt.input_variables, *placeholders(prompt)}
    lost = ours.difference(own, *(OUR_NAMES.get(name, ()) for name in own))
    # What was retrieved may be judged, and the text may be a field of a name that we do not know.
    others = own - ours - _ROW_FIELDS - _BESIDE - placeholders(prompt)
    is_unseen = not others and not any("source" in OUR_NAMES.get(n, (n,)) for n in own)
    for option, said in REPLY_NAMES["needed"].items():
        names = [next((n for n in each.split(" or ") if n in ours), "") for each in said]
        dropped = [name for name in names if name in lost]
        if dropped and option in {"always", "unseen" if is_unseen else "", f"of {step}", *filled}:
            aliases = (other for other, parts in OUR_NAMES.items() if dropped[0] in parts)
            shown = " or ".join(f"{{{each}}}" for each in {dropped[0]: 0, **dict.fromkeys(aliases)})
            or_not = f", or `{option}` be left out" if option in filled else ""
            raise OptionError(f"the prompt {step!r} must show {shown}, as ours does{or_not}")


def printed_messages(prompt: ChatPromptTemplate) -> list[str]:
    """The messages of a prompt; as data, where LangChain cannot print one, such as examples."""
    try:
        return [message.pretty_repr() for message in prompt.messages]
    except NotImplementedError:
        return [*map(repr, prompt.messages)]


def _filled(prompt: ChatPromptTemplate, values: Mapping[str, str]) -> str:
    """The text of a prompt, with messages of these texts where it has whole messages."""
    names = placeholders(prompt) & values.keys()  # the others are optional, or filled already
    whole = {name: [chat.HumanMessage(values[name])] for name in names}
    return "\n".join(each.text for each in prompt.format_messages(**{**values, **whole}))


def _check_whole(step: str, prompt: ChatPromptTemplate) -> None:
    """Check that a prompt shows whatever fills it as it is: it may not cut or count it.

    Raises:
        OptionError: It shows a part of a text, or another form of it.
    """
    others = dict.fromkeys(sorted(prompt.input_variables), _SHORT)
    prompt = _fixed(prompt, lambda function: function())  # such as the time: one for all fills
    for name in others:
        shown = _filled(prompt, {**others, name: _LONG})
        if _LONG not in shown or shown.replace(_LONG, _SHORT) != _filled(prompt, others):
            raise OptionError(ASK_ERRORS["changed"].format(step=step, name=name))


def _check_places(step: str, prompt: ChatPromptTemplate, known: set[str]) -> None:
    """Check that no text to judge stands as its name, and that what a reply calls 1 is first.

    Raises:
        OptionError: One does, or what is called 2 is.
    """
    text = _filled(prompt, {name: fence() + name + fence() for name in prompt.input_variables})
    places = re.findall(f"{fence()}(.+?){fence()}", text)
    # By which name each variable of ours is shown first.
    shown = {part: name for name in places[::-1] for part in OUR_NAMES.get(name, (name,))}
    judged = known & {"response", "response_1", "response_2"} or known & {"task", "request"}
    for name in re.findall(r"(?<!\w){\s*(\w+)\s*}", text):
        if judged.difference(shown).intersection(OUR_NAMES.get(name, (name,))):
            raise OptionError(ASK_ERRORS["as_it_stands"].format(step=step, name=name))
    for one in sorted(name for name in known if name.endswith("_1") and "fence" not in name):
        first, second = (shown.get(one[:-1] + n) for n in "12")
        if first and second and places.index(second) < places.index(first):
            refusal = ASK_ERRORS["second_first"]
            raise OptionError(refusal.format(step=step, first=first, second=second))


def check_fields(prompts: Prompts, originals: Prompts, row: Mapping[str, Any]) -> None:
    """Check that a row has what a caller's prompts show.

    In a copy of ours, whose tags end in our fences, a part of the row may be nothing.

    Raises:
        LackingError: It has not.
        InputError: It has a rubric, which they do not show.
    """
    for step, prompt in prompts.items():
        own = {*prompt.input_variables} - placeholders(prompt)
        ours = {*originals[step].input_variables}
        if row.get("rubric") and "criteria" in ours - own:
            raise InputError(f"the row has a `rubric`: the prompt {step!r} needs {{criteria}}")
        for name in sorted(own - ours if any("fence" in each for each in own) else own):
            parts = OUR_NAMES.get(name, (name,))
            values = [row[_FIELDS[part]] for part in parts if _FIELDS.get(part) in row]
            if not values and not {*parts} & {*ours, "shared"}:
                values = [(row["variables"] or {}).get(name)]
            if values and all(map(data.is_nothing, values)):
                raise LackingError(f"the prompt {step!r} shows {{{name}}}, which the row lacks")


def _check_spelling(step: str, names: set[str], known: set[str]) -> None:
    """Check that no name is a mistyped one of those that are known.

    Raises:
        OptionError: One is.
    """
    stems = {each: _STEM.sub("", each) for each in sorted(known)}
    for name in sorted(names):
        stem = _STEM.sub("", name)
        near = get_close_matches(stem, stems.values(), n=1, cutoff=0.88)
        near = near or [each for each in stems.values() if sorted(each) == sorted(stem)]
        if near and stem not in stems.values():
            alike = [each for each, its in stems.items() if its == near[0]]
            meant = get_close_matches(name, alike, 1, 0)[0]
            raise OptionError(ASK_ERRORS["misspelt"].format(step=step, name=name, near=meant))


def _as_fenced(
    prompt: ChatPromptTemplate, known: set[str], original: ChatPromptTemplate
) -> ChatPromptTemplate:
    """A caller's prompt, to which the labels and the rule that texts are data are added."""
    messages: list[Any] = list(prompt.messages)
    first = [type(each.messages[0]).__name__ for each in (prompt, original)]
    if "System" not in first[0] and "System" in first[1]:  # an example follows what has one
        messages.insert(0, chat.SystemMessage(MATERIAL_RULE))
    if "labels" in known - {*prompt.input_variables}:
        messages.append(HumanMessagePromptTemplate.from_template("The labels: {labels}. {ask}"))
    if {"response_1", "response_2"} <= known and _SLOTS not in "".join(printed_messages(prompt)):
        messages.append(chat.HumanMessage(_SLOTS))
    return FencedPrompt.from_messages(messages).partial(**prompt.partial_variables)


def _texts(prompt: ChatPromptTemplate) -> list[str]:
    """Messages of a prompt, what they already contain, and how replies are read."""
    named = _fixed(prompt, lambda it: (it.__module__, getattr(it, "__qualname__", type(it))))
    filled = sorted(named.partial_variables.items())
    return [*printed_messages(named), *(f"{name}={value}" for name, value in filled)]
