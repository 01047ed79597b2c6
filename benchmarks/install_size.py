"""How much disk the package and each of its extras take, measured in fresh environments.

    python -m benchmarks.install_size            # the core and every extra, some minutes
    python -m benchmarks.install_size core trust

Prints a table in Markdown: packages, and megabytes (of 10⁶ bytes, as `du` counts them) of
`site-packages`, pip left out. Versions are those of `constraints.txt`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Size(NamedTuple):
    """Size of an installation."""

    packages: int
    megabytes: float


def extras() -> list[str]:
    """The extras a user may want, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [name for name in project["optional-dependencies"] if name not in ("all", "dev")]


def measure(extra: str, wheel: Path, folder: Path) -> Size:
    """Install the wheel with an extra (`core`: with none) into a new environment."""
    venv.create(folder, with_pip=True, symlinks=True)
    python = folder / "bin" / "python"
    requirement = str(wheel) if extra == "core" else f"{wheel}[{extra}]"
    command = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*command, "-c", str(ROOT / "constraints.txt"), requirement], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    own = [each for each in site.iterdir() if not each.name.startswith(("pip", "setuptools"))]
    used = subprocess.run(
        ["du", "-sc", "--block-size=1000", *own],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    packages = sum(each.name.endswith(".dist-info") for each in own)
    return Size(packages, int(used.splitlines()[-1].split()[0]) / 1000)


def main(names: Iterable[str]) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as wheels:
        pip = [sys.executable, "-m", "pip"]
        build = [*pip, "wheel", "-qq", "--no-deps", "-w", wheels, str(ROOT)]
        subprocess.run(build, check=True)
        (wheel,) = Path(wheels).glob("*.whl")
        print("| extra | packages | MB | MB above the core |\n|---|---|---|---|", flush=True)
        core = None
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                size = measure(name, wheel, Path(folder))
            core = size if name == "core" else core
            more = f"{size.megabytes - core.megabytes:.0f}" if core and name != "core" else ""
            print(f"| `{name}` | {size.packages} | {size.megabytes:.0f} | {more} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["core", *extras(), "all"])
