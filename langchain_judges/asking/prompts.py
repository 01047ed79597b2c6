"""Prompts as every method has them: a system message and a human one."""

from __future__ import annotations

from langchain_core.prompts import ChatPromptTemplate


def chat_prompt(system: str, *human: str) -> ChatPromptTemplate:
    """Return a prompt of two messages.

    Args:
        system: The template of the system message.
        *human: The template of the human one, in parts that are joined as they are.
    """
    return ChatPromptTemplate.from_messages([("system", system), ("human", "".join(human))])
