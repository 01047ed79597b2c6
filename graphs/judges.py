"""Entry points of a LangGraph server: one line a graph."""

from langchain_judges.integrations import serve

allure = serve("allure")
audit = serve("audit")
bsm = serve("bsm")
cascade = serve("cascade")
drpe = serve("drpe")
jury = serve("jury")
relative = serve("relative")
rubric = serve("rubric")
sc2 = serve("sc2")
write = serve("write")
