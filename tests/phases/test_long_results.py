"""A turn whose tools give far more than §4 may hold."""

import json

from tests.code_mode import CodeProject, call, code_script, replies
from tests.code_mode import project as project

FILES = 5
QUERY = "Which measurements stand in the files?"


def test_the_oldest_results_of_tools_are_shortened(project: CodeProject) -> None:
    """
    Of five results of together over 20,000 characters §4 has the newest whole and the oldest in part, no call
    is too long, and all of it stays whole in the steps' files.
    """
    for n in range(FILES):
        text = "".join(f"day {n}.{i}: {i + 3} mm of rain, wind {i % 9} from the west\n" for i in range(114))
        project.write(f"day_{n}.txt", text)
    script = code_script(
        replies(*(call("file.read", path=f"day_{n}.txt") for n in range(FILES))),
        answer={"items": [{"text": "day 4.113: 116 mm of rain", "node_ids": [f"step:{FILES}"]}]},
    )
    turn = project.work(script, QUERY)
    contents = [step["data"]["content"] for step in turn.steps]
    assert [text.splitlines()[0][:9] for text in contents] == [f"day {n}.0: " for n in range(FILES)]
    assert all("day" in text.splitlines()[113] for text in contents)
    assert len(turn.section(4)) < sum(map(len, contents)) / 2
    assert turn.body(0) == QUERY
    assert all(line in turn.body(4) for line in contents[-1].splitlines())
    assert turn.meta(4) == {"steps": list(range(1, FILES))}
    assert "day 0.113" not in turn.body(4)
    assert max(len(json.dumps(request.body["messages"])) for request in turn.prompts) < 60_000
    assert turn.status == "approved"
    assert project.problems() == []
