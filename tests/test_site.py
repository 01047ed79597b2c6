"""The site: its pages, figures and reference are up to date, and read well in a browser."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.chromium import Chromium, needed
from website.first_verdict import first_verdict
from website.hooks import LINK, outside

ROOT = Path(__file__).parents[1]
CONFIG = (ROOT / "mkdocs.yml").read_text()
HIDDEN = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def pages_of(entries):
    for entry in entries:
        target = entry if isinstance(entry, str) else next(iter(entry.values()))
        yield from [target] if isinstance(target, str) else pages_of(target)


def test_every_page_is_in_the_navigation():
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert sorted(pages_of(yaml.safe_load(CONFIG)["nav"])) == sorted(there)


def test_the_readme_shows_the_recorded_verdict_as_it_is():
    assert f"```\n{first_verdict()}```\n" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("link", "page", "shown"),
    [
        ("[how](../SECURITY.md#a)", "rag.md", "[how]({}/blob/main/SECURITY.md#a)"),
        ("[trust](../trust.md)", "sub/rag.md", "[trust](../trust.md)"),
    ],
)
def test_a_link_that_leaves_the_docs_leads_into_the_repository(link, page, shown):
    there = "https://example.org/me/judges"
    assert outside(LINK.fullmatch(link), page, there) == shown.format(there)


def test_without_an_address_such_a_link_is_its_text():
    assert outside(LINK.fullmatch("[how](../SECURITY.md)"), "trust.md", "") == "how"


def test_no_page_names_an_address_of_the_repository_that_does_not_exist():
    files = ["README.md", "pyproject.toml", "mkdocs.yml", "CITATION.cff", "CONTRIBUTING.md"]
    paths = [*(ROOT / name for name in files), *(ROOT / "docs").rglob("*.md")]
    assert not [
        path.name for path in paths if "/langchain-judges/langchain" in path.read_text()
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.mark.figures
def test_llms_txt_names_every_page_with_what_it_is(site):
    text = (site / "llms.txt").read_text()
    assert text.startswith("# langchain-judges\n\n> ")
    assert text.count("\n- [") == len(list((ROOT / "docs").rglob("*.md")))


@pytest.mark.figures
def test_the_reference_shows_a_factory_with_its_options(site):
    assert "max_criteria" in (site / "reference.html").read_text()


@needed
@pytest.mark.figures
def test_a_page_fits_the_screen_and_asks_no_other_server(site, tmp_path):
    with Chromium(tmp_path) as browser:
        for width in (400, 1400):
            colours = set()
            for dark in (False, True):
                browser.open(site / "bsm.html", width, dark=dark)
                # The scheme of an earlier visit is remembered.
                browser.ask("localStorage.clear()")
                browser.open(site / "bsm.html", width, dark=dark)
                assert browser.ask(HIDDEN) == 0
                assert all(url.startswith(("file:", "data:")) for url in browser.requested())
                colours.add(browser.ask(BACKGROUND))
            assert len(colours) == 2
