"""Start the command line: `python -m langchain_judges.cli`."""

from langchain_judges.cli import run

if __name__ == "__main__":
    run()
