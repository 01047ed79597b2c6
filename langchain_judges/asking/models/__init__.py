"""From what a user names to a chat model that is ready to be asked."""

from langchain_judges.asking.models.clients import is_openai_compatible
from langchain_judges.asking.models.names import (
    ModelSpec,
    model_identity,
    model_name,
    model_of_spec,
    own_address,
    resolve_model,
)

__all__ = [
    "ModelSpec",
    "is_openai_compatible",
    "model_identity",
    "model_name",
    "model_of_spec",
    "own_address",
    "resolve_model",
]
