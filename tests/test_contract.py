"""The contract that every method keeps."""

from langchain_judges.methods.registry import BUILDERS, METHODS
from langchain_judges.testing import check_method
from tests.cases import for_each


@for_each("method", METHODS)
def test_every_method_keeps_the_contract(method):
    check_method(METHODS[method], BUILDERS[method])
