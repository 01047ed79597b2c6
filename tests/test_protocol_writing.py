"""The protocol script, proved on a scripted model."""

import json

import protocol_writing as protocol
import pytest

from langchain_judges import create_bsm_judge
from tests.fakes import FakeChatModel, writes
from tests.judges import answer_call

LINES = [json.dumps({"concepts": [f"c{row}x{i}" for i in range(25)]}) for row in range(8)]


def test_concepts_are_drawn_by_seed_and_each_list_by_itself():
    tasks = protocol.draw(LINES, rows=5, size=10, seed=0)
    assert [task["id"] for task in tasks] == list("01234")
    assert all(len(set(task["concepts"])) == 10 for task in tasks)
    assert tasks == protocol.draw(LINES, rows=5, size=10, seed=0)
    assert tasks[:3] == protocol.draw(LINES, rows=3, size=10, seed=0)
    assert tasks != protocol.draw(LINES, rows=5, size=10, seed=1)


def test_every_method_stands_in_one_table_and_nothing_is_paid_twice(tmp_path):
    def respond(prompt):
        # A single prompt for all concepts forgets half of them, a merge the last one.
        text = writes(prompt)
        if "Leave none of them out" in prompt and prompt.count("\nc") > 6:
            return json.dumps({"text": json.loads(text)["text"][: len(text) // 2]})
        if "Make one coherent" in prompt:
            return json.dumps({"text": json.loads(text)["text"].rpartition(",")[0]})
        return text

    model = FakeChatModel(replies=respond)
    judge = create_bsm_judge(FakeChatModel(), criteria=["Coherence"])
    tasks = protocol.draw(LINES, rows=3, size=10, seed=0)
    study_result = protocol.carry_out(model, tasks, tmp_path, judge, progress=False)
    # 1 + 2 + 6 + 5 + (1 + 1) + 4 + (4 + 1) calls for each of three lists.
    assert len(model.prompts) == 3 * 25
    assert study_result["zero-shot"]["all_present"] == 0
    assert study_result["zero-shot"]["failing"] == {"solve": 1, "merge": 0}
    paper = study_result["Branch-Solve-Merge (paper)"]
    assert paper["missing"] == pytest.approx(0.1)
    assert paper["failing"] == {"solve": 0, "merge": 1}
    assert paper["quality"]["tie"] == 3
    assert study_result["Branch-Solve-Merge"]["all_present"] == 1
    assert study_result["zero-shot, repaired"]["all_present"] == 1
    assert study_result["zero-shot"]["quality"] is None
    again = protocol.carry_out(model, tasks, tmp_path, judge, progress=False)
    assert again == study_result
    assert len(model.prompts) == 3 * 25
    lines = protocol.table(study_result).splitlines()
    assert len(lines) == 2 + 7
    assert lines[2].startswith("| zero-shot | 3 of 3 | 0.0 | ")
    assert "| Branch-Solve-Merge (paper) | 3 of 3 | 0.0 | 10.0 | 0.0 | 100.0 | 0/3/0 |" in lines


@pytest.mark.figures
@pytest.mark.parametrize("names", ["folder", "file"])
def test_the_program_asks_a_server_and_keeps_its_texts(serve, tmp_path, capsys, names):
    lists = tmp_path / "commongen_hard" / "concepts.jsonl"
    lists.parent.mkdir()
    lists.write_text("\n".join(LINES))
    server = serve(answer_call)
    study_result = protocol.main(
        "fake",
        base_url=server.url,
        data=tmp_path if names == "folder" else lists,
        out=tmp_path / "out",
        limit=2,
        judge="fake",
    )
    assert {each["tasks"] for each in study_result.values()} == {2}
    assert study_result["plan & solve"]["quality"]["not_judged"] == 0
    printed = capsys.readouterr().out
    assert protocol.table(study_result) in printed
    replies = (tmp_path / "out" / "replies.jsonl").read_text().splitlines()
    assert f"was sent {len(replies)} different requests" in printed
    assert 0 < len(replies) <= len(server.calls)
    assert {call.body["model"] for call in server.calls} == {"fake"}
