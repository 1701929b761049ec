"""
How a question and a line of a note go through a turn: `python -m bench.tracing`.

Asks a copy of the demo store and, in a store of its own, a question about a note, and watches every call of
panda's own functions. Prints how many different functions take the query's words as an argument, how many
classes have the line's text in a field of theirs (its forms), and how often each phase loads the analysis;
with --names which they are.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from bench.asking import asker
from panda.documents import record_codec
from panda.models.layers import LoadedLayers
from panda.models.models_file import load_models_file
from panda.settings import load_settings
from panda.store.demo import copy_demo, create_store
from panda.store.layout import Layout, asset

PRICE = "What does the Lenovo LOQ 15 cost?"
NOTE = "# Bees\n\n- Feed the bees two litres of syrup in September.\n- The hive stands behind the shed.\n"
LINE = "Feed the bees two litres of syrup in September."
ASKED = "how much syrup do the bees get"
_PANDA = str(Path(record_codec.__file__).parents[1])
_AROUND = 1.6  # a text that is so much longer is a document, and no form of the line


class Tracer:
    """Watches the calls of panda's functions for a query and a line."""

    def __init__(self, query: str, line: str | None) -> None:
        self.query, self.line = query, line
        self.takers: set[str] = set()
        self.forms: set[str] = set()
        self.loads: Counter[str] = Counter()
        self._phase = ""

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        """What sys.setprofile calls."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(_PANDA):
            return
        if event == "return":
            self._look(value)
            return
        place = f"{code.co_filename.removeprefix(_PANDA + '/')}:{code.co_qualname}"
        if place.startswith("phases/") and code.co_qualname.endswith(".run"):
            self._phase = place
        if place in ("store/records.py:parse", "documents/record_codec.py:decode"):
            self.loads[
                f"{self._phase.partition(':')[0]} {getattr(frame.f_locals.get('cls'), '__name__', '')}"
            ] += 1
        count = code.co_argcount + code.co_kwonlyargcount
        arguments = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
        if not code.co_name.startswith("<") and any(_is(self.query, one) for one in arguments):
            self.takers.add(place)
        for one in arguments:
            self._look(one)

    def _look(self, value: Any) -> None:
        for one in _parts(value):
            if self.line is not None and any(_is(self.line, text) for text in _texts(one)):
                self.forms.add(f"{type(one).__module__.removeprefix('panda.')}.{type(one).__name__}")


def _is(text: str, value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _AROUND * len(text) and text in value


def _parts(value: Any) -> Iterator[Any]:
    several = isinstance(value, list | tuple | set | frozenset) and not hasattr(value, "_fields")
    for one in list(value)[:200] if several else [value]:
        if isinstance(one, msgspec.Struct) or is_dataclass(one) or hasattr(one, "_fields"):
            yield one


def _texts(value: Any) -> Iterator[Any]:
    names = getattr(value, "__struct_fields__", None) or getattr(value, "_fields", None)
    for name in names or getattr(value, "__dataclass_fields__", ()):
        yield getattr(value, name, None)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--names", action="store_true", help="print what was counted too")
    names = parser.parse_args().names
    settings = load_settings({}, os.environ, Path.cwd())
    models = load_models_file(settings.models_file)
    with (
        tempfile.TemporaryDirectory() as temporary,
        LoadedLayers(models, cache_dir=settings.cache_dir, environ=os.environ) as layers,
    ):
        demo, notes = Path(temporary) / "demo", Path(temporary) / "notes"
        create_store(demo)
        copy_demo(asset("panda-system-docs"), demo, load_settings({}, os.environ, demo).clock())
        create_store(notes)
        knowledge = Layout(notes).of("default").knowledge
        knowledge.mkdir(parents=True, exist_ok=True)
        (knowledge / "bees.md").write_text(NOTE, "utf-8")
        for root, user, query, line in ((demo, "demo", PRICE, None), (notes, "default", ASKED, LINE)):
            tracer = Tracer(query, line)
            ask = asker(layers, root, user)
            sys.setprofile(tracer)
            try:
                answer = ask(query, "s1")
            finally:
                sys.setprofile(None)
            print(f"{query}\n  {answer.text.strip()[:100]}")  # noqa: T201
            print(f"  functions that take its words: {len(tracer.takers)}")  # noqa: T201
            loads = {name: n for name, n in tracer.loads.most_common() if name.endswith(" QueryAnalysis")}
            print(f"  loads of the analysis by phase: {loads}")  # noqa: T201
            if line:
                print(f"  forms of the line: {len(tracer.forms)}")  # noqa: T201
            for name in sorted(tracer.takers) + sorted(tracer.forms) if names else ():
                print(f"    {name}")  # noqa: T201


if __name__ == "__main__":
    main()
