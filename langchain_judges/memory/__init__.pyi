# What the package exports: `lazy.exports` and type checkers read it.
from langchain_judges.memory.recall import Recall as Recall
from langchain_judges.memory.recall import Recalled as Recalled
from langchain_judges.memory.recall import all_ as all_
from langchain_judges.memory.recall import knn as knn
from langchain_judges.memory.recall import near as near
from langchain_judges.memory.recall import none as none
from langchain_judges.memory.recall import uniform as uniform
