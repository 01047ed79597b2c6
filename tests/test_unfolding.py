"""Groups of flags: a flag for each field, and an object for the command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from langchain_judges.cli.flags import Without, unfolded


@dataclass(frozen=True)
class Place:
    city: Annotated[str, typer.Option(help="Where.")]
    rooms: Annotated[int, typer.Option(min=1)] = 2
    garden: Annotated[bool, typer.Option("--garden")] = False


def find(place: Place, price: Annotated[float, typer.Argument()]) -> None:
    typer.echo(f"{place} {price}")


def small(place: Annotated[Place, Without("rooms", "garden")]) -> None:
    typer.echo(place)


def run(command, *words):
    app = typer.Typer()
    app.command()(unfolded(command))
    return CliRunner().invoke(app, words)


def test_each_field_of_a_group_is_a_flag_and_the_command_gets_the_group():
    output = run(find, "9.5", "--city", "Bonn", "--garden").stdout
    assert output == "Place(city='Bonn', rooms=2, garden=True) 9.5\n"


@pytest.mark.parametrize("words", [("9.5",), ("9.5", "--city", "Bonn", "--rooms", "0")])
def test_a_field_without_a_default_is_required_and_bounds_hold(words):
    assert run(find, *words).exit_code == 2


def test_a_field_that_a_command_does_not_take_is_no_flag_and_keeps_its_default():
    assert run(small, "--city", "Bonn").stdout == "Place(city='Bonn', rooms=2, garden=False)\n"
    assert run(small, "--city", "Bonn", "--rooms", "3").exit_code == 2


def test_a_field_to_leave_out_must_be_there():
    def wrong(place: Annotated[Place, Without("roms")]) -> None:
        pass

    with pytest.raises(TypeError, match="Place has no \\['roms'\\]"):
        unfolded(wrong)
