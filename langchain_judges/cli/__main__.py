"""Start the command line: `python -m langchain_judges.cli`."""

from langchain_judges.cli import run

run()
