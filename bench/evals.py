"""
How right the choices are on the half of the cases that no fit has seen: `python -m bench.evals [FILE]`.

This half is read once a release, not while something is tuned. Asks all of it with `panda eval`, or takes the
numbers that `panda eval --write FILE` kept, and ends with 3 if a kind is below its floor in floors.json.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.asking import check_floors

CASES = Path(__file__).parent.parent / "tests" / "evals"


def main() -> int:
    """Print the numbers; the exit code."""
    given = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        files = [Path(name) for name in given] or [Path(directory) / "numbers.json"]
        if not given:
            panda = [sys.executable, "-c", "from panda.cli.main import main; main()"]
            words = ["eval", "--split", "test", "--cases", str(CASES), "--write", str(files[0])]
            subprocess.run([*panda, *words], check=True)
        kinds = [kind for path in files for kind in json.loads(path.read_text(encoding="utf-8"))["kinds"]]
    shares = {kind["kind"]: kind["accuracy"] for kind in kinds}
    for name, share in shares.items():
        print(f"{name}: {share:.3f} right")  # noqa: T201 - the result
    return check_floors("evals", shares)


if __name__ == "__main__":
    sys.exit(main())
