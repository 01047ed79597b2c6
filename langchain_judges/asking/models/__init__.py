"""From what a user names to a chat model that is ready to be asked."""

from langchain_judges.asking.models.clients import is_openai_kin
from langchain_judges.asking.models.identity import model_identity, model_name
from langchain_judges.asking.models.names import (
    ModelSpec,
    model_of_spec,
    own_address,
    resolve_model,
)

__all__ = [
    "ModelSpec",
    "is_openai_kin",
    "model_identity",
    "model_name",
    "model_of_spec",
    "own_address",
    "resolve_model",
]
