"""Check what would be published: run by `.ci/release` with the folder of sdist and wheel."""

import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
USED = [
    "Makefile",
    "constraints.txt",
    "langgraph.json",
    "mkdocs.yml",
    "graphs/judges.py",
    "website/hooks.py",
]
"""Files that README, CONTRIBUTING and Makefile name, beside package, tests and pages."""

folder = Path(sys.argv[1])
[sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
with tarfile.open(sdist) as archive:
    held = {name.partition("/")[2] for name in archive.getnames()}
assert not (lacking := set(USED) - held), f"the sdist lacks {lacking}"
with zipfile.ZipFile(wheel) as archive:
    [place] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = archive.read(place).decode()
relative = re.findall(r"\]\((?!https://)[^)]*\)", metadata)
assert not relative, f"links that lead nowhere on an index page: {relative}"
version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
assert f"\nVersion: {version}\n" in metadata
assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(), "CITATION.cff"
print(f"{wheel.name} and {sdist.name} hold what they should.")
