# What the package exports: `lazy.exports` and type checkers read it.
from langchain_judges.writing.evaluation import create_story_judge as create_story_judge
from langchain_judges.writing.evaluation import evaluate_writing as evaluate_writing
from langchain_judges.writing.writers import WRITERS as WRITERS
from langchain_judges.writing.writers import (
    create_single_prompt_writer as create_single_prompt_writer,
)
from langchain_judges.writing.writers import load_writer as load_writer
