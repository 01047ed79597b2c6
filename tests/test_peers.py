"""The table of other packages: by the names that they export, with the version."""

import re

from website import peers


def installed(folder, name, **files):
    for path, text in {"__init__": "", **files}.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / f"{path}.py").write_text(text)
    about = folder / f"{name}-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {name}\nVersion: 1.2\n\nIt judges.")


def test_a_row_names_what_a_package_exports_and_its_version(tmp_path):
    files = {
        "__init__": "from ._inner import llm_jury",
        "_inner": "def llm_jury(): ...\ndef run_jury(): ...",
        "scores": "class Kappa: ...\ndef _ensemble(): ...",
    }
    installed(tmp_path, "ragas", **files)
    row = peers.row_of(tmp_path, "ragas")
    assert "[ragas](https://docs.ragas.io) 1.2" in row
    source = "https://github.com/vibrantlabsai/ragas/blob/v1.2/src/ragas"
    assert f"| [no such name]({source}/__init__.py) | [`llm_jury`]({source}/_inner.py)" in row
    assert f"| [`Kappa`]({source}/scores.py) |" in row


def test_a_name_that_is_not_there_is_said_so(tmp_path):
    installed(tmp_path, "ragas", scores="def score(): ...")
    assert peers.row_of(tmp_path, "ragas").count("no such name") == len(peers.COLUMNS)


def test_each_cell_of_the_page_links_a_file_of_the_peer_at_the_version_read():
    _, _, rest = peers.PAGE.read_text().partition(peers.BEGIN)
    rows = [line for line in rest.partition(peers.END)[0].splitlines() if line.startswith("| [")]
    assert len(rows) == len(peers.PEERS)
    for row, (name, source) in zip(rows, peers.SOURCES.items(), strict=True):
        _, package, _, *cells, _ = row.split("|")
        [version] = re.findall(r"\) (\S+)", package)
        for cell in cells:
            links = re.findall(r"\]\((\S+?)\)", cell)
            assert links, (name, cell)
            assert all(f"//github.com/{source.format(version)}/" in link for link in links)
