"""A judge as LangSmith's own online evaluator, which runs on LangSmith's servers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_judges.errors import OptionError
from langchain_judges.integrations.cases import feedback_key
from langchain_judges.integrations.langsmith_runs import CLOSED, waited_for
from langchain_judges.methods.describe import kind_of, unwrapped
from langchain_judges.methods.graph import JudgeGraph
from langchain_judges.rows.lookup import check_words
from langchain_judges.runs.run_state import Judge

if TYPE_CHECKING:
    from langsmith import Client

_CODE = '''\
"""Made by langchain-judges."""
import json

from langchain_judges import as_evaluator, load_judge

EVALUATOR = as_evaluator(load_judge(json.loads({spec!r})), **json.loads({places!r}))


def perform_eval(run, example=None):
    feedback = EVALUATOR(inputs=run.get("inputs"), outputs=run.get("outputs"))
    several = feedback if isinstance(feedback, list) else [feedback]
    # What was not judged has no score.
    return {{each["key"]: each["score"] for each in several if each["score"] is not None}}
'''


def online_code(judge: Judge, **places: str | None) -> str:
    """Return the code of an online evaluator that runs a judge on each run.

    Args:
        judge: A judge of one text, made of a model's name.
        places: `key`, `input`, `output` and `context` as in `as_evaluator`, as texts.

    Raises:
        OptionError: The judge compares pairs, is of another package, or has no plain form.
    """
    check_words(**places)
    if kind_of(judge) != "item":
        raise OptionError("`judge` must label one text; this one compares pairs")
    graph = unwrapped(judge)
    if not isinstance(graph, JudgeGraph):
        raise OptionError("`judge` must be a judge of this package: its code names what it is")
    given = {name: place for name, place in places.items() if place is not None}
    given["key"] = given.get("key") or feedback_key(judge)
    return _CODE.format(spec=json.dumps(graph.spec), places=json.dumps(given))


def create_online_evaluator(  # noqa: PLR0913 - what it is, and where each text stands
    client: Client,
    judge: Judge,
    name: str,
    *,
    secrets: Sequence[str] = (),
    dependencies: Sequence[str] = ("langchain-judges", "langchain-openai"),
    key: str | None = None,
    input: str | None = None,
    output: str | None = None,
    context: str | None = None,
) -> str:
    """Create an advanced code evaluator that runs a judge in LangSmith, and return its id.

    It is attached to a project, with a sampling rate and a filter, in LangSmith: the client
    offers no call for that. Scores are posted under the judge's keys, without comments; a run
    that could not be judged gets no feedback. `watch_project` posts both.

    Args:
        client: LangSmith's client, of a server from version 0.16.
        judge: A judge of one text, made of a model's name.
        name: The name of the evaluator.
        secrets: Names of the workspace's secrets that it may use, such as the key of the model.
            LangSmith puts them into requests to the hosts that each is allowed for; the code
            never sees them.
        dependencies: What is installed for it, as pip takes it.
        key: Name of the feedback, as in `as_evaluator`.
        input: Where the task is, as in `as_evaluator`: a key or a path.
        output: Where the text is.
        context: Where the source is.

    Raises:
        OptionError: The judge cannot be written as code.
        LangsmithError: LangSmith refuses the evaluator.
    """
    check_words(name=name)
    code = online_code(judge, key=key, input=input, output=output, context=context)
    evaluator: Any = {
        "code": code,
        "language": "python",
        "advanced_features_enabled": True,
        "dependencies": "\n".join(dependencies),
        "workspace_secrets_keys": list(secrets),
    }

    answer: Any = waited_for(
        client.evaluators.create(
            name=name, type="code", code_evaluator=evaluator, extra_headers=CLOSED
        )
    )
    return str(answer.evaluator.id)
