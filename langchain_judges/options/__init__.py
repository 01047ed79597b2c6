"""Options, each declared once: as a field of a model, with its default, bounds and meaning.

From the declaration come a factory's signature and docstring, the check of every value with a
message that names option, rule and value, the plain JSON that traces and specs carry, what a
command line or a preset may set, and what a client of a server may set.
"""

from langchain_judges.options.clients import check_client, client_schema, settable
from langchain_judges.options.declare import (
    Count,
    Group,
    NotSerialisable,
    Options,
    Owner,
    Rule,
    Scale,
    Share,
    check_value,
    described,
    refusal,
    rule_of,
    unknown_option,
)
from langchain_judges.options.signatures import factory, type_of, with_options

__all__ = [
    "Count",
    "Group",
    "NotSerialisable",
    "Options",
    "Owner",
    "Rule",
    "Scale",
    "Share",
    "check_client",
    "check_value",
    "client_schema",
    "described",
    "factory",
    "refusal",
    "rule_of",
    "settable",
    "type_of",
    "unknown_option",
    "with_options",
]
