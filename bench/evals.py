"""
How right replies are on the half of the cases that no classifier has seen: `python -m bench.evals [FILE]`.

This half is read once a release, not while something is tuned. Asks all of it with `panda eval`, or takes the
numbers that `panda eval --write FILE` kept, and ends with 3 if a kind is below its floor in floors.json. The
pairs of the evidence check that are judged wrongly are listed.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.asking import check_floors

TESTS = Path(__file__).parent.parent / "tests"
ASKED = ((TESTS / "evals", "test"), (TESTS / "cases" / "evidence_unseen.jsonl", "all"))
"""Labelled cases, and the split of them that is asked."""


def main() -> int:
    """Print the numbers; the exit code."""
    given = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        files = [Path(name) for name in given]
        for cases, split in () if given else ASKED:
            files.append(Path(directory) / f"{cases.stem}.json")
            panda = [sys.executable, "-c", "from panda.cli.main import main; main()"]
            words = ["eval", "--split", split, "--cases", str(cases), "--write", str(files[-1])]
            subprocess.run([*panda, *words], check=True)
        written = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    for answer in (answer for one in written for answer in one["answers"]):
        if answer["kind"] == "evidence" and not answer["right"]:
            print(f"WRONG  evidence, {answer['said']}: {answer['query']}")  # noqa: T201
    shares = {kind["kind"]: kind["accuracy"] for one in written for kind in one["kinds"]}
    for name, share in shares.items():
        print(f"{name}: {share:.3f} right")  # noqa: T201 - the result
    return check_floors("evals", shares)


if __name__ == "__main__":
    sys.exit(main())
