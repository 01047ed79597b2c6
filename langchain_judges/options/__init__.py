"""Options, each declared once: as a field of a model, with its default, bounds and meaning.

From the declaration come a factory's signature and docstring, the check of every value with a
message that names option, rule and value, the plain JSON that traces and specs carry, what a
command line or a preset may set, and what a client of a server may set.
"""

from langchain_judges.options.clients import (
    check_client as check_client,
)
from langchain_judges.options.clients import (
    client_schema as client_schema,
)
from langchain_judges.options.clients import (
    settable as settable,
)
from langchain_judges.options.declare import (
    Count as Count,
)
from langchain_judges.options.declare import (
    Group as Group,
)
from langchain_judges.options.declare import (
    NotSerialisable as NotSerialisable,
)
from langchain_judges.options.declare import (
    Options as Options,
)
from langchain_judges.options.declare import (
    Owner as Owner,
)
from langchain_judges.options.declare import (
    Rule as Rule,
)
from langchain_judges.options.declare import (
    Scale as Scale,
)
from langchain_judges.options.declare import (
    Share as Share,
)
from langchain_judges.options.declare import (
    check_value as check_value,
)
from langchain_judges.options.declare import (
    described as described,
)
from langchain_judges.options.declare import (
    refusal as refusal,
)
from langchain_judges.options.declare import (
    rule_of as rule_of,
)
from langchain_judges.options.declare import (
    unknown_option as unknown_option,
)
from langchain_judges.options.signatures import (
    factory as factory,
)
from langchain_judges.options.signatures import (
    type_of as type_of,
)
from langchain_judges.options.signatures import (
    with_options as with_options,
)
