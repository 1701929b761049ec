"""
Turns of SmolLM2-135M on the demo store: how many replies are valid at the first attempt, halts, seconds.

    python -m bench.small_model
"""

import json
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.api import Panda

QUERIES = (
    "How much is the Lenovo LOQ 15?",
    "Which brands do I prefer?",
    "My sister plays the bassoon.",
    "Compare the laptops that we looked at.",
    "Look up whether the Lenovo LOQ 15 is in stock now.",
    "Write a short letter that praises the Lenovo LOQ 15.",
)
MODELS = """
models:
  small: {backend: llama_cpp, location: "builtin:smollm2-135m", n_ctx: 8192}
layers: {REFLEX: small, NERVES: small, MIND: small, VOICE: small}
"""


def main() -> None:
    """Print what came of each turn, and the share of valid first replies by recipe."""
    valid: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as home:
        panda = Panda(Path(home) / "project", user="demo")
        assert panda("init", "--demo").code == 0
        panda.write("models.yaml", MODELS)
        for query in QUERIES:
            started = time.monotonic()
            turn = panda.turn(query)
            seconds = time.monotonic() - started
            print(f"exit {turn.code}  {seconds:5.1f} s  {query}")  # noqa: T201
            calls = [json.loads(line) for line in turn.text("calls.jsonl").splitlines()]
            written = [call for call in calls if call["kind"] == "generate"]
            repeated = {(call["execution"], call["recipe"]) for call in written if call["attempt"] > 1}
            for call in written:
                if call["attempt"] == 1:
                    asked[call["recipe"]] += 1
                    valid[call["recipe"]] += (call["execution"], call["recipe"]) not in repeated
    for recipe, count in sorted(asked.items()):
        print(f"{valid[recipe]} of {count} valid at once  {recipe}")  # noqa: T201
    print(f"{sum(valid.values())} of {sum(asked.values())} replies are valid at the first attempt")  # noqa: T201


if __name__ == "__main__":
    main()
