# What the package exports: `lazy.exports` and type checkers read it.
from langchain_judges.methods.sc2.learn import alearn_aspects as alearn_aspects
from langchain_judges.methods.sc2.options import AspectSet as AspectSet
from langchain_judges.methods.sc2.options import load_aspects as load_aspects
from langchain_judges.methods.sc2.tally import render_table as render_table
