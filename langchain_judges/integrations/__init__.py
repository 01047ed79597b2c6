"""Judges inside LangSmith, agents, langchain-classic and a LangGraph server."""
