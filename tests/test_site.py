"""The site: its pages, figures and reference are up to date, and read well in a browser."""

import fcntl
import html
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from tests.chromium import Chromium, needed

ROOT = Path(__file__).parents[1]
CONFIG = (ROOT / "mkdocs.yml").read_text()
PACKAGES = re.findall(r"^::: (\S+)", (ROOT / "docs/reference.md").read_text(), re.MULTILINE)
HIDDEN = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
BROKEN = """[...document.querySelectorAll('.md-typeset td:first-child code')]
    .filter(code => /^\\w+$/.test(code.innerText) && code.getClientRects().length > 1)
    .map(code => code.innerText).join()"""
WIDE = """[...document.querySelectorAll('.md-typeset__scrollwrap')]
    .filter(wrap => wrap.scrollWidth > wrap.clientWidth + 1)
    .map(wrap => wrap.innerText.slice(0, 60)).join()"""


def pages_of(entries):
    for entry in entries:
        target = entry if isinstance(entry, str) else next(iter(entry.values()))
        yield from [target] if isinstance(target, str) else pages_of(target)


def test_every_page_is_in_the_navigation():
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    there |= {f"notebooks/{path.stem}.md" for path in (ROOT / "cookbook").glob("*.ipynb")}
    assert sorted(pages_of(yaml.safe_load(CONFIG)["nav"])) == sorted(there)


@pytest.mark.parametrize(
    ("link", "page", "shown"),
    [
        ("[how](../SECURITY.md#a)", "sc2.md", "[how]({}/blob/main/SECURITY.md#a)"),
        ("[trust](../trust.md)", "sub/sc2.md", "[trust](../trust.md)"),
    ],
)
def test_a_link_that_leaves_the_docs_leads_into_the_repository_or_is_text(link, page, shown):
    from website.hooks import LINK, outside

    there = "https://example.org/me/judges"
    assert outside(LINK.fullmatch(link), page, there) == shown.format(there)
    if "{}" in shown:
        assert outside(LINK.fullmatch(link), page, "") == "how"


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site, built once for all workers: whoever comes second waits for it."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder, done = shared / "site", shared / "site-is-built"
    with (shared / "site-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            build(folder)
            done.touch()
    return folder


def build(folder):
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr


@pytest.mark.figures
def test_the_reference_shows_every_public_name(site):
    text = (site / "reference.html").read_text()
    for package in PACKAGES:
        missing = [name for name in import_module(package).__all__ if name not in text]
        assert missing == [], package
    plain = html.unescape(re.sub(r"<[^>]+>|\s", "", text))
    assert "create_bsm_judge(model,*,criteria=None," in plain
    assert "Themostcriteriainaplan" in plain
    assert "Themostrevisionsinonerun" in plain  # of a class, whose `__init__` says it
    # No attribute is described by the class of its value.
    of_values = ["".join(kind.__doc__.split()) for kind in (str, int, float, bool, tuple, dict)]
    assert [each for each in of_values if each[:30] in plain] == []
    assert text.count("Name of the graph in traces") == 1  # what every judge takes, once
    assert "<blockquote>" not in text  # an example is code


@needed
@pytest.mark.figures
def test_pages_fit_the_screen_and_ask_no_other_server(site, tmp_path):
    with Chromium(tmp_path) as browser:
        for page in sorted(site.glob("*.html")):
            browser.open(page, 1300)
            for width in (1300, 390):
                browser.resize(width)
                assert browser.ask(HIDDEN) == 0, (page.name, width)
                assert browser.ask(BROKEN) == "", (page.name, width)
                assert "\\|" not in str(browser.ask("document.body.innerText")), page.name
                assert browser.ask(WIDE) == "", (page.name, width)
            if page.name != "404.html":  # its addresses begin at the root of a server
                assert browser.complaints() == [], page.name
                assert all(url.startswith(("file:", "data:")) for url in browser.requested())
