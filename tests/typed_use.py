"""Calls as type checkers must see them; `make lint` checks this file and nothing runs it.

Each line with an ignore is wrong on purpose: mypy reports an ignore that is not needed.
"""

from langchain_judges import (
    create_bsm_judge,
    create_bsm_writer,
    create_relative_judge,
    create_sc2_judge,
    judge_many,
)
from langchain_judges.testing import FakeChatModel

judge = create_bsm_judge("local", max_criteria=3, merge="model", scale=(1, 10), orders="none")
create_relative_judge("local", shots=2, instructions="Answer in French.")
judge_many(judge, [], records="verdicts.jsonl", max_concurrency=3)

model = FakeChatModel(replies=["A"])
create_relative_judge(model.with_retry())
create_relative_judge(model.bind(stop=["."]).with_fallbacks([model]))
create_bsm_writer(model.with_retry())
create_sc2_judge(model, comparison_model=model.with_retry())

create_bsm_judge(5)  # type: ignore[arg-type]
create_bsm_judge("local", max_criteria="3")  # type: ignore[arg-type]
create_bsm_judge("local", criterion=["Tone"])  # type: ignore[call-arg]
create_bsm_judge("local", merge="vote")  # type: ignore[arg-type]
judge_many(judge, [], max_concurrency="3")  # type: ignore[arg-type]
