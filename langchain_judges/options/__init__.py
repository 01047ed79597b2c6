"""Options, each declared once: as a field of a model, with its default, bounds and meaning.

From the declaration come a factory's signature and docstring, the check of every value with a
message that names option, rule and value, the plain JSON that traces and specs carry, what a
command line or a preset may set, and what a client of a server may set.
"""

from langchain_judges.options.clients import check_client, for_clients
from langchain_judges.options.declare import (
    Options,
    described,
    group,
    refusal,
    rule_of,
    unknown_option,
)
from langchain_judges.options.marks import (
    ClientMost,
    ForClient,
    NotSerialisable,
    Owner,
    Rule,
    Scale,
)
from langchain_judges.options.signatures import factory, type_of, with_options

__all__ = [
    "ClientMost",
    "ForClient",
    "NotSerialisable",
    "Options",
    "Owner",
    "Rule",
    "Scale",
    "check_client",
    "described",
    "factory",
    "for_clients",
    "group",
    "refusal",
    "rule_of",
    "type_of",
    "unknown_option",
    "with_options",
]
