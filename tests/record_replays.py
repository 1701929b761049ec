"""
Record the turns that test_replay.py replays: `make record`, when prompts, recipes or phases were changed.

Each question is asked of a fresh copy of the demo store at a fixed time, with the embedded model.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPLAYS = Path(__file__).parent / "replays"
RECORDED_AT = "2026-02-01T12:00:00Z"
QUESTIONS = (
    "Which laptop was the top pick, and is it in stock?",
    "my favorite hamster is Syrian",
    "What is my favorite hamster?",
    "What is my sister's name?",
)
FIRST_TURN = 813


def panda(*arguments: str) -> None:
    """Run the real command; stop at the first failure."""
    command = [sys.executable, "-c", "from panda.cli.main import main; main()", *arguments]
    subprocess.run(command, check=True, env={**os.environ, "PANDA_NOW": RECORDED_AT})


def record() -> None:
    """Ask every question in one session and keep the turn directories and the memory."""
    with tempfile.TemporaryDirectory() as directory:
        root = f"{directory}/panda-system-docs"
        panda("init", "--demo", "--root", root)
        for question in QUESTIONS:
            panda("turn", question, "--root", root, "--user", "demo")
        shutil.rmtree(REPLAYS, ignore_errors=True)
        user = Path(root) / "users" / "demo"
        for number in range(FIRST_TURN, FIRST_TURN + len(QUESTIONS)):
            name = f"turns/turn_{number:06d}"
            shutil.copytree(user / name, REPLAYS / name)
        for name in ("preferences.md", "memory.jsonl"):
            shutil.copy(user / name, REPLAYS / name)


if __name__ == "__main__":
    record()
