# What the package exports: `lazy.exports` and type checkers read it.
from langchain_judges.memory.recall import Recall as Recall
from langchain_judges.memory.recall import Recalled as Recalled
