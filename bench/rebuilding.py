"""
What `panda index rebuild` takes without vectors, from nothing and with nothing changed, beside its bars.

The bars are for 100,000 turns; a store of 20,000 is measured and what it takes is multiplied. Seconds are of
the processor, so that other programs on the machine count little.
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from panda.addons.exchange.intake import import_turns
from panda.documents.times import parse_time
from panda.store.files import stop_syncing
from panda.store.layout import Layout

_TURNS, _BAR_TURNS = 20_000, 100_000
_BARS = {"full": 60.0, "unchanged": 4.0}  # seconds
_DOCS = Path(__file__).parent.parent / "docs"
_REBUILD = """
import sys
from pathlib import Path
from panda.documents.times import parse_time
from panda.index.full_text import Index
from panda.store.layout import Layout
layout = Layout(Path(sys.argv[1]))
Index(layout).rebuild(full=sys.argv[2] == "full")
"""


def main() -> None:
    """Print the seconds of both."""
    with tempfile.TemporaryDirectory() as directory:
        stop_syncing()
        layout = Layout(Path(directory))
        import_turns(_lines(), layout, lambda: parse_time("2026-01-01"))
        for how, bar in _BARS.items():
            process = subprocess.Popen([sys.executable, "-c", _REBUILD, directory, how])
            _, status, used = os.wait4(process.pid, 0)
            if status:
                sys.exit(f"the rebuild ended with {os.waitstatus_to_exitcode(status)}")
            seconds = (used.ru_utime + used.ru_stime) * _BAR_TURNS / _TURNS
            print(f"rebuild, {how}: {seconds:.1f} s for {_BAR_TURNS:,} turns (bar {bar:g})")  # noqa: T201  the answer


def _lines() -> list[str]:
    """Turns of about 80 words each, drawn from the documentation as often as they stand there."""
    words = [
        word for path in sorted(_DOCS.glob("*.md")) for word in re.findall(r"\w+", path.read_text("utf-8"))
    ]
    chance = random.Random(7)

    def text(count: int) -> str:
        return " ".join(chance.choices(words, k=count))

    return [
        json.dumps(
            {
                "user": "default",
                "turn": number,
                "session": f"s{number // 20}",
                "at": f"20{number // 1000:02}-01-01",
                "query": text(12),
                "response": text(50),
                "summary": text(16),
                "topics": [text(1)],
            }
        )
        for number in range(1, _TURNS + 1)
    ]


if __name__ == "__main__":
    main()
