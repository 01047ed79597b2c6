"""What the five protocol scripts have in common: their command lines."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import cast

import protocol_allure
import protocol_bsm
import protocol_drpe
import protocol_sc2
import protocol_writing
import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration
from protocols import Replies, in_flight, program
from typer.testing import CliRunner

SCRIPTS = [protocol_allure, protocol_bsm, protocol_drpe, protocol_sc2, protocol_writing]
SHARED = ("model", "base_url", "data", "out", "limit", "seed", "concurrency")


@pytest.fixture(params=SCRIPTS, ids=lambda script: script.__name__)
def script(request):
    return request.param


def told(script, *arguments):
    return CliRunner().invoke(program(script.main), [str(each) for each in arguments])


def test_the_same_options_have_the_same_names_types_and_defaults(script):
    options = inspect.signature(script.main).parameters
    others = inspect.signature(protocol_sc2.main).parameters
    for name in SHARED:
        assert options[name].annotation == others[name].annotation
        assert name == "out" or options[name].default == others[name].default
    assert f"{options['out'].default}".endswith("-study")


def test_calls_in_flight_are_sixteen_and_four_of_a_local_model():
    assert [in_flight("openai:gpt-5-mini", None), in_flight("local", None)] == [16, 4]
    assert [in_flight("local:/m.gguf", None), in_flight("local", 7)] == [4, 7]


@pytest.mark.parametrize(
    ("script", "option"),
    [
        (protocol_allure, "--preset"),
        (protocol_bsm, "--only"),
        (protocol_drpe, "--only"),
        (protocol_drpe, "--methods"),
        (protocol_drpe, "--rule"),
        (protocol_sc2, "--only"),
        (protocol_sc2, "--sets"),
    ],
)
def test_an_unknown_name_is_one_sentence(script, option, tmp_path):
    result = told(script, "--model", "local", "--data", tmp_path, option, "poems")
    assert (result.exit_code, "poems: not among" in result.output) == (2, True)


def test_what_is_wrong_is_one_sentence_and_nothing_is_written(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (["--data", "none"], ["--data", "none", "--model", "nobody:nothing"]):
        result = told(script, *arguments)
        assert result.exit_code == 2
        assert "Traceback" not in result.output
        assert isinstance(result.exception, SystemExit)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.system
def test_ctrl_c_is_one_sentence_and_code_130():
    code = (
        "import threading; from protocols import program\n"
        "def main():\n"
        "    threading.Thread(target=threading.Event().wait).start()\n"
        "    raise KeyboardInterrupt\n"
        "program(main)()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(protocol_sc2.__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 130
    assert result.stderr == "Stopped; the same command resumes where it stopped.\n"


def test_a_file_that_is_missing_is_one_sentence(tmp_path):
    (tmp_path / "summeval12").mkdir()
    options = ["--model", "local", "--data", tmp_path, "--sets", "summeval12"]
    result = told(protocol_sc2, *options)
    assert (result.exit_code, "cannot be read from" in result.output) == (2, True)


def test_replies_are_kept_over_runs_with_their_usage(tmp_path):
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    logprobs = {"logprobs": {"content": [{"token": "A", "logprob": -0.1}]}}
    message = AIMessage("A", usage_metadata=usage, response_metadata=logprobs)
    Replies(tmp_path / "r.jsonl").update("p", "m", [ChatGeneration(message=message)])
    with (tmp_path / "r.jsonl").open("a") as file:
        file.write('{"request": "killed in the mid')
    again = Replies(tmp_path / "r.jsonl")
    (reply,) = cast("list[ChatGeneration]", again.lookup("p", "m"))
    assert (reply.message, len(again)) == (message, 1)
    assert again.lookup("p", "other model") is None
