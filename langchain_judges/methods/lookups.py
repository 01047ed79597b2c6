"""A judge that looks things up: the tools that it may call before it judges, and their results.

The phase `consult` asks which calls could change the verdict, makes them, and asks again,
within limits. It is done once a row, with A shown first, and every later prompt shows what was
found: a flip of the orders then measures position, and not the tools.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache, wraps
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from annotated_types import Ge, Gt
from pydantic import AfterValidator, BaseModel, Field, create_model
from typing_extensions import TypedDict

from langchain_judges.asking import failures, reading, send
from langchain_judges.asking.ask import ask
from langchain_judges.asking.effects import Effect, Update, check_stop, emit_each, gather
from langchain_judges.asking.question import Account, Question, chat_prompt
from langchain_judges.asking.reply_log import ReplyLog, key_of
from langchain_judges.errors import OptionError
from langchain_judges.escaping import clean
from langchain_judges.methods.declaration import WORDS, JudgeOptions, Phase
from langchain_judges.options import Options, Owner, Rule
from langchain_judges.rows.fences import fence
from langchain_judges.rows.texts import READ, plain, steps_of
from langchain_judges.verdict import Failure

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

_WORDS: Mapping[str, Any] = WORDS["lookups"]
# Asks for calls of tools, round by round.
CONSULT = chat_prompt(_WORDS["system"], _WORDS["consult"])
_CITED = re.compile(r"\[look-up (\d{1,3})\]", re.IGNORECASE)
# Characters of the mark where the middle of a text is cut.
_MARK_ROOM = 40
# Characters of a result that a verdict tells.
_TOLD = 200


class ToolLimits(Options):
    """The limits of looking things up for one row.

    Attributes:
        rounds: How often the judge is asked which calls it wants; each time is a model call.
        calls: Calls of tools.
        characters: Characters of one result that are shown; a longer one loses its middle.
        total: Characters of all results that are shown.
        seconds: Seconds that a tool may take.
    """

    called = "tool_limits"

    rounds: Annotated[int, Ge(1)] = 4
    calls: Annotated[int, Ge(1)] = 8
    characters: Annotated[int, Ge(100)] = 4000
    total: Annotated[int, Ge(100)] = 24_000
    seconds: Annotated[float, Gt(0)] = 20.0


def _loaded(tools: Sequence[object]) -> tuple[BaseTool, ...]:
    """Tools as they are, functions made tools of, and `module:name` imported.

    Raises:
        OptionError: One cannot be imported, or called by a judge, or two share a name.
    """
    # Loaded on use: a judge without tools needs none of it.
    from langchain_core.tools import BaseTool, tool

    try:
        found: list[Any] = [resolve_name(t) if isinstance(t, str) else t for t in tools]
    except (ImportError, AttributeError) as exc:
        raise OptionError(f"one of `tools` cannot be imported: {exc}") from exc
    loaded = tuple(each if isinstance(each, BaseTool) else tool(each) for each in found)
    names = [each.name for each in loaded]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise OptionError(f"two of `tools` are named {twice!r}")
    for each in loaded:
        if lacking := _injected(each):
            raise OptionError(_WORDS["injected"].format(each.name, ", ".join(lacking)))
    return loaded


def _injected(tool: BaseTool) -> list[str]:
    """Arguments of a tool that only an agent gives, such as a `ToolRuntime`."""
    from langchain_core.tools import InjectedToolCallId

    given: Any = tool.tool_call_schema
    taken: Any = tool.get_input_schema()
    if isinstance(given, dict):  # of MCP's tools, which have none
        return []
    if not issubclass(given, BaseModel):
        raise OptionError(f"the `args_schema` of the tool {tool.name!r} must be of pydantic 2")
    own = {name: part for name, part in taken.model_fields.items() if part.is_required()}
    # The id of the call is given.
    ids = {n for n, part in own.items() if InjectedToolCallId in part.metadata}
    return [name for name in own if name not in {*given.model_fields, *ids}]


def _check_tools(tools: object) -> object:
    if not isinstance(tools, list | tuple):
        raise ValueError("no list")
    _loaded(tools)
    return tools


class LookupOptions(JudgeOptions):
    """The options of judges that may look things up.

    Attributes:
        tools: LangChain tools that the judge may call before it judges: `BaseTool`, functions
            with a docstring, or `"module:name"`. Each row then costs at least one more call.
        evidence: `"auto"` offers look-ups in the row itself (`read_step`, `read_file`,
            `search`) where it does not fit into the model's context; `"shown"` shows what fits.
        tool_limits: Limits of look-ups for one row.
    """

    tools: Annotated[
        Any,
        AfterValidator(_check_tools),
        Rule("a list of LangChain tools, functions with a docstring, or 'module:name'"),
        Owner(),
    ] = ()
    evidence: Literal["auto", "shown"] = "auto"
    tool_limits: ToolLimits = ToolLimits()

    @cached_property
    def loaded_tools(self) -> tuple[BaseTool, ...]:
        """The tools, ready to be called."""
        return _loaded(self.tools) if self.tools else ()

    @property
    def lookup_rounds(self) -> int:
        """The most calls of the model for a row that only look things up."""
        return self.tool_limits.rounds if self.tools else 0

    @property
    def rounds_without_room(self) -> int:
        """The most further calls for a row too long for the model's context."""
        return 0 if self.tools or self.evidence == "shown" else self.tool_limits.rounds


class _Result(TypedDict):
    """The outcome of one tool call.

    Attributes:
        status: `ok`, `error`, or `timeout`.
        characters: Of the whole result.
        text: The part of it that the judge was shown; in a verdict its beginning.
    """

    status: str
    characters: int
    text: str


class Lookup(_Result):
    """One call of a tool, and its result."""

    tool: str
    arguments: dict[str, Any]


class LookupState(TypedDict, total=False):
    """The state of a judge that may look things up.

    Attributes:
        whole: The texts of the row in full, where the prompts show parts of them.
    """

    lookups: list[Lookup]
    whole: dict[str, Any] | None


@lru_cache(maxsize=64)
def _wanted_of(names: tuple[str, ...], most: int) -> type[BaseModel]:
    """Shape of the calls that a model wants; it names the tools for models that obey a schema."""
    name = Annotated[str, Field(json_schema_extra={"enum": [*names]})]
    arguments = Annotated[str, Field(description="One JSON object, written as text.")]
    request = create_model("ToolRequest", tool=(name, ...), arguments=(arguments, ...))
    calls = Annotated[list[request], Field(json_schema_extra={"maxItems": most})]  # type: ignore[valid-type]  # made here
    return create_model("Wanted", calls=(calls, ...))


class _Call(NamedTuple):
    tool: str
    arguments: dict[str, Any]

    @property
    def key(self) -> str:
        return key_of("tool", self.tool, self.arguments)


def told(lookups: Sequence[Lookup]) -> list[Lookup]:
    """Look-ups as a verdict lists them, with the beginning of each result."""
    return [{**each, "text": clean(each["text"][:_TOLD])} for each in lookups]


def findings(lookups: Sequence[Lookup]) -> str:
    """The results of look-ups, each in a fence of its own; empty without any."""
    lines = []
    for number, each in enumerate(lookups, 1):
        arguments = json.dumps(each["arguments"], ensure_ascii=False)
        status = ", ".join(filter(None, (each["status"], _part_of(each))))
        tag = f"finding-{fence(arguments, each['text'])}"
        head = f"Look-up {number}: {each['tool']}({arguments}): {status}"
        lines.append(f"<{tag}>\n{head}\n{each['text']}\n</{tag}>")
    return str(_WORDS["evidence"]).format(findings="\n".join(lines)) if lines else ""


def _part_of(lookup: Lookup) -> str:
    """Sentence on how much of a cut result is shown; empty for a whole one."""
    shown, whole = len(lookup["text"]), lookup["characters"]
    return f"{shown:,} of {whole:,} characters shown" if shown < whole else ""


def consulted(
    question: Question,
    options: LookupOptions,
    material: Callable[[Any], Mapping[str, Any]],
    cut: Callable[[Mapping[str, Any]], Sequence[Failure]],
    phases: Sequence[Phase],
) -> list[Phase]:
    """The phases of a judge after one that looks things up; the verdict lists the look-ups.

    Where only a row without room may be looked into, the first phase does so: no other row has
    a node more.

    Args:
        question: By `CONSULT`; its shape names the tools of a row.
        options: Its tools and limits.
        material: From the state to `material` and `judgment` of the prompt.
        cut: From a row to what says that it is shown in part.
        phases: Without looking things up.
    """

    async def consult(state: Mapping[str, Any], account: Account) -> Update:
        tools = {each.name: each for each in options.loaded_tools}
        whole = state.get("whole") if options.evidence == "auto" else None
        if whole:
            tools |= {each.name: each for each in row_tools(whole, options.tool_limits.characters)}
        lookups = await _gathered(question, tools, options.tool_limits, material(state), account)
        if whole and not lookups:
            account.fail(cut(whole))
        return {"lookups": lookups}

    first, *others = (_telling(each, options) for each in phases)

    @wraps(first)
    async def looking(state: Mapping[str, Any], account: Account) -> Update:
        if not state.get("whole"):
            return await first(state, account)
        found = await consult(state, account)
        return {**found, **await first({**state, **found}, account)}

    return [consult, first, *others] if options.tools else [looking, *others]


def _telling(phase: Phase, options: LookupOptions) -> Phase:
    @wraps(phase)
    async def telling(state: Mapping[str, Any], account: Account) -> Update:
        update = await phase(state, account)
        lookups = told(state.get("lookups") or [])
        if not (lookups or options.tools) or not update.get("verdict"):
            return update
        verdict = {**update["verdict"], "lookups": lookups}
        if lookups:
            verdict["rationale"] = f"{verdict['rationale']} {_deciding(verdict, lookups)}"
        return {**update, "verdict": verdict}

    return telling


def _deciding(verdict: Mapping[str, Any], lookups: Sequence[Lookup]) -> str:
    """The look-ups that the judge's reason names; if it names none, all, by tool."""
    numbers = sorted({int(each) for each in _CITED.findall(verdict["rationale"])})
    named = [(n, lookups[n - 1]) for n in numbers if 0 < n <= len(lookups)]
    cited = [f"{n} {each['tool']}({json.dumps(each['arguments'])})" for n, each in named]
    if cited:
        return f"Look-ups that decided: {'; '.join(cited)}."
    return f"Looked up: {', '.join(dict.fromkeys(each['tool'] for each in lookups))}."


async def _gathered(
    question: Question,
    tools: Mapping[str, BaseTool],
    limits: ToolLimits,
    material: Mapping[str, Any],
    account: Account,
) -> list[Lookup]:
    """The findings of the calls that a model wants, asked round by round."""
    # Loaded on use: a judge without tools needs none of it.
    from langchain_core.utils.function_calling import convert_to_openai_tool

    shape = _wanted_of((*tools,), limits.calls)
    forms = [convert_to_openai_tool(each) for each in tools.values()]
    question = replace(question, tools=forms, reply_schema=shape)
    described = "\n".join(map(_tool_line, tools.values()))
    lookups: list[Lookup] = []
    for number in range(1, limits.rounds + 1 if tools else 1):
        left = limits.calls - len(lookups)
        shown = {"tools": described, "findings": findings(lookups), "left": left}
        reply = await ask(question, {**material, **shown}, account, unit=f"round {number}")
        calls = _wanted(reply.data or {}, lookups)[:left]
        asked = [_looked_up(question.log, tools, c, limits, account.part()) for c in calls]
        room = limits.total - sum(len(each["text"]) for each in lookups)
        found = _within_room(room, await gather(asked))
        for each in found:
            if each["status"] == "ok" and (part := _part_of(each)):
                problem = reading.Problem("input_cut", f"the tool: {part}")
                account.fail([problem.failure("consult", each["tool"])])
        emit_each("lookup", "consult", told(found))
        lookups += found
        if not calls or len(lookups) >= limits.calls:
            break
    return lookups


def _tool_line(tool: BaseTool) -> str:
    form: Any = tool.tool_call_schema  # of MCP's tools a JSON schema
    schema = form if isinstance(form, dict) else form.model_json_schema()
    arguments = json.dumps(schema.get("properties") or {}, ensure_ascii=False)
    return f"- {tool.name}: {' '.join(tool.description.split())} Arguments: {arguments}"


def _wanted(data: Mapping[str, Any], lookups: Sequence[Lookup]) -> list[_Call]:
    """The calls of a reply, each once, without those that were answered already."""
    known = {_Call(each["tool"], each["arguments"]).key for each in lookups}
    calls: dict[str, _Call] = {}
    for each in data.get("calls") or []:
        try:
            arguments = json.loads(each["arguments"] or "{}")
        except ValueError:
            arguments = each["arguments"]
        if not isinstance(arguments, dict):
            arguments = {"": arguments}  # no object: the tool says what it lacks
        call = _Call(each["tool"], arguments)
        calls.setdefault(call.key, call)
    return [call for key, call in calls.items() if key not in known]


async def _looked_up(
    log: ReplyLog, tools: Mapping[str, BaseTool], call: _Call, limits: ToolLimits, account: Account
) -> Lookup:
    """Make one call, unless an earlier run of the row has made it."""
    row = account.run.replies if account.run else None
    # A result has no draft: a call that failed is not made again.
    result = await log.reply(
        lambda: call.key, lambda _: _call_tool(tools, call, limits), lambda _: True, row
    )
    if result["status"] != "ok":
        reason: Any = "timeout" if result["status"] == "timeout" else "provider_error"
        problem = reading.Problem(reason, clean(f"the tool: {result['text']}"[:500]))
        account.fail([problem.failure("consult", call.tool)])
    return Lookup(tool=call.tool, arguments=call.arguments, **result)


def _cut_result(status: str, text: str, most: int = 500) -> _Result:
    return {"status": status, "characters": len(text), "text": _middle_cut(text, most)}


async def _call_tool(tools: Mapping[str, BaseTool], call: _Call, limits: ToolLimits) -> _Result:
    check_stop()
    tool = tools.get(call.tool)
    if tool is None:
        known = ", ".join(sorted(tools))
        return _cut_result("error", f"there is no tool {call.tool!r}; there are {known}")
    request = {"name": call.tool, "args": call.arguments, "id": call.key, "type": "tool_call"}
    try:
        message = await send.with_timeout(limits.seconds, _call_of(tool, request))
    except TimeoutError:
        return _cut_result("timeout", f"no result within {limits.seconds:g} seconds")
    except failures.NOT_FAILURES:
        raise
    except Exception as exc:  # noqa: BLE001 - a tool may raise anything, and one call fails
        return _cut_result("error", f"{type(exc).__name__}: {exc}")
    text = plain(getattr(message, "content", message)) or "(nothing)"
    status = "error" if getattr(message, "status", "") == "error" else "ok"
    return _cut_result(status, text, limits.characters)


def _call_of(tool: BaseTool, request: Any) -> Effect:
    """A tool call; an asynchronous tool, such as MCP's, gets an event loop of its own."""

    def now() -> object:
        if getattr(tool, "func", None) is not None:
            return tool.invoke(request)  # whatever it raises: it is called once
        if not hasattr(tool, "func"):
            with suppress(NotImplementedError):  # so says a class that has `_arun` alone
                return tool.invoke(request)
        return asyncio.run(tool.ainvoke(request))

    return Effect(now, lambda: tool.ainvoke(request))


def _middle_cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = (most - _MARK_ROOM) // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters …]\n{text[-half:]}"


def _within_room(room: int, lookups: Sequence[Lookup]) -> list[Lookup]:
    """The look-ups that fit in the room for everything shown."""
    found: list[Lookup] = []
    for each in lookups:
        text = each["text"][: max(0, room)]
        room -= len(text)
        found.append({**each, "text": text})
    return found


def row_tools(row: Mapping[str, Any], characters: int) -> list[BaseTool]:
    """Look-ups in a row itself: its steps, its files, and a search in all of it.

    They are functions of the row alone: no file of the machine and no network.

    Args:
        row: With its texts in full.
        characters: The most that one look-up returns.
    """
    from langchain_core.tools import StructuredTool

    parts, page = _row_parts(row), characters - 100
    files = {part.name: part.text for part in parts if part.is_file}

    def read_step(number: int, start: int = 0) -> str:
        if not 1 <= number <= len(parts):
            return f"there is no step {number}; there are 1 to {len(parts)}"
        return _page(parts[number - 1].text, start, page)

    def read_file(path: str, start: int = 0) -> str:
        if path not in files:
            return f"there is no file {path!r}; there are {', '.join(files) or 'none'}"
        return _page(files[path], start, page)

    def search(text: str) -> str:
        return _found_in(parts, text, page) or f"{text!r} stands nowhere"

    steps = (f"{n} {part.name} ({len(part.text):,})" for n, part in enumerate(parts, 1))
    said: dict[Any, str] = {
        read_step: "Read a step of the record from a character on. Steps with their length: "
        f"{_middle_cut('; '.join(steps), 1500)}.",
        search: "Find a text in all steps, with what stands around it.",
        read_file: f"Read a file from a character on. Files: {_middle_cut(', '.join(files), 500)}.",
    }
    known: list[Any] = [read_step, search, *([read_file] if files else [])]
    return [StructuredTool.from_function(each, description=said[each]) for each in known]


def _page(text: str, start: int, size: int) -> str:
    start = max(0, min(start, len(text)))
    end = min(len(text), start + size)
    return f"{text[start:end]}\n[characters {start} to {end} of {len(text)}]"


def _found_in(parts: Sequence[_Part], text: str, room: int) -> str:
    """Occurrences of a text, each with its surroundings, within a number of characters."""
    pattern, lines = re.compile(re.escape(text), re.IGNORECASE), list[str]()
    for number, part in enumerate(parts, 1):
        behind = 0  # the last excerpt
        for match in pattern.finditer(part.text) if text.strip() else ():
            at = match.start()
            if at >= behind and room > 0:
                behind = at + 250
                excerpt = part.text[max(0, at - 150) : behind]
                lines.append(f"step {number} ({part.name}), character {at}: …{excerpt}…")
                room -= len(lines[-1])
    return "\n".join(lines)


class _Part(NamedTuple):
    name: str
    text: str
    is_file: bool


def _row_parts(row: Mapping[str, Any]) -> list[_Part]:
    """Every part of a row in full."""
    parts: list[_Part] = []
    for field in READ:
        value = row.get(field)
        if isinstance(value, str) and value:
            parts.append(_Part(field, value, is_file=False))
        elif isinstance(value, Sequence) and not isinstance(value, str):
            messages = [each for each in value if isinstance(each, Mapping) and "role" in each]
            for step in steps_of(messages):
                name = step.mark.partition("file ")[2]
                parts.append(_Part(name or f"{field}, {step.mark}", step.text, is_file=bool(name)))
    return parts
