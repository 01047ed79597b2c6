"""What the package says of itself is the same everywhere, and its links lead to files."""

import re
import tomllib
from pathlib import Path

import yaml

import langchain_judges

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_one():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert langchain_judges.__version__ == PROJECT["version"] == citation["version"]


def test_the_citation_names_the_papers_of_the_readme():
    papers = set(
        re.findall(r"\((https://arxiv\.org/abs/[\d.]+)\)", (ROOT / "README.md").read_text())
    )
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {paper["url"] for paper in citation["references"]} == papers


def test_workflows_and_templates_are_yaml_and_may_only_read():
    files = [*(ROOT / ".github").rglob("*.yml")]
    assert len(files) >= 5
    for file in files:
        data = yaml.safe_load(file.read_text())
        if file.parent.name == "workflows":
            assert data["permissions"] == {"contents": "read"}


def test_pages_at_the_top_lead_to_files_that_are_there():
    for name in ("SECURITY.md", "AGENTS.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\((?!https://)([^)#]+)", (ROOT / name).read_text()):
            assert (ROOT / target).exists(), target
