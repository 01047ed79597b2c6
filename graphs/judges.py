"""Entry points of a LangGraph server: one line a graph."""

from langchain_judges.integrations import serve

absolute = serve("absolute")
allure = serve("allure")
audit = serve("audit")
bsm = serve("bsm")
cascade = serve("cascade")
cot = serve("cot")
cot_sc = serve("cot_sc")
direct = serve("direct")
drpe = serve("drpe")
jury = serve("jury")
llm_score = serve("llm_score")
plan_solve = serve("plan_solve")
relative = serve("relative")
relative_sc = serve("relative_sc")
rubric = serve("rubric")
sc2 = serve("sc2")
write = serve("write")
