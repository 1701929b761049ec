"""
What a compressed document still answers: 40 documents of fifteen kinds, five questions each.

bench/compression.txt names the documents and says what must stand in the compressed text for a question to be
answered. Each document is compressed to 10, 25 and 50 % of its tokens without a query, and to 25 % with each
question as the query. Ends with 3 if a share is below its floor in floors.json.

    python -m bench.compression [FILE] [--show DIRECTORY]
"""

import argparse
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from time import monotonic

from bench.asking import check_floors
from panda.compression.compressor import compress
from panda.compression.fit import detect_content_type
from panda.compression.plans import detect_format
from panda.errors import LimitError
from panda.models.cl100k import count_tokens

ROOT = Path(__file__).parents[1]
SHARES = (0.1, 0.25, 0.5)
QUERY_SHARE = 0.25


@dataclass
class Question:
    """One question, and what its answer holds."""

    text: str
    wordings: Sequence[Sequence[str]]
    """Each of them answers it, with all its parts."""

    def is_answered(self, compressed: str) -> bool:
        """Return whether a text answers it, whatever its line breaks are."""
        flat = " ".join(compressed.split())
        return any(all(" ".join(part.split()) in flat for part in parts) for parts in self.wordings)


@dataclass
class Document:
    """One document with its questions."""

    kind: str
    place: str
    questions: list[Question] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the name of its file."""
        where, _, name = self.place.partition(":")
        return "README" if where == "package" and "/" not in name else name

    def read(self) -> str | None:
        """Return what it says; None if it is not installed here."""
        where, _, name = self.place.partition(":")
        path = {"repo": ROOT, "here": ROOT / "bench" / "documents", "file": Path("/")}.get(where)
        if where == "stdlib":
            path = Path(sysconfig.get_path("stdlib"))
        if path is not None:
            file = path / name
            return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None
        package, _, inner = name.partition("/")
        try:
            if not inner:
                return distribution(package).read_text("METADATA")
            files = distribution(package).files or []
        except PackageNotFoundError:
            return None
        named = [file for file in files if str(file).endswith(inner)]
        return named[0].read_text(encoding="utf-8") if named else None


def load(path: Path) -> list[Document]:
    """Return the documents of a file with their questions."""
    documents: list[Document] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            kind, place = line[3:].split(maxsplit=1)
            documents.append(Document(kind, place))
        elif "=>" in line:
            question, answer = line.split(" => ", 1)
            wordings = [wording.split(" && ") for wording in answer.split(" || ")]
            documents[-1].questions.append(Question(question, wordings))
    return documents


def compressed(document: Document, text: str, share: float, query: str | None) -> str:
    """Return a document at a share of its tokens; empty if nothing fits."""
    budget = int(share * count_tokens(text))
    kind = detect_content_type(document.name, text)
    try:
        return compress(text, kind=kind, budget_tokens=budget, query=query, name=document.name).text
    except LimitError:
        return ""


def measure(documents: Sequence[Document], show: Path | None) -> Iterator[tuple[Document, str, int, int]]:
    """Yield for each document and way of compressing it how many of its questions are answered."""
    for document in documents:
        text = document.read()
        if text is None:
            print(f"not installed here: {document.place}", file=sys.stderr)  # noqa: T201
            continue
        for share in SHARES:
            output = compressed(document, text, share, None)
            missing = [question.text for question in document.questions if not question.is_answered(output)]
            if show is not None:
                file = show / f"{int(100 * share)} {document.place.replace('/', '_').replace(':', ' ')}"
                file.write_text(output, encoding="utf-8")
                if share == QUERY_SHARE:
                    read_as = detect_format(document.name, text, detect_content_type(document.name, text))
                    print(f"  {document.place} ({read_as}, {count_tokens(text)} tokens): {missing}")  # noqa: T201
            yield document, f"{share:.0%}", len(document.questions) - len(missing), len(document.questions)
        answered = sum(
            question.is_answered(compressed(document, text, QUERY_SHARE, question.text))
            for question in document.questions
        )
        yield document, f"{QUERY_SHARE:.0%}, asked", answered, len(document.questions)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path, nargs="?", default=ROOT / "bench" / "compression.txt")
    parser.add_argument("--show", type=Path, help="write the compressed documents there, and what they miss")
    options = parser.parse_args()
    started = monotonic()
    counts: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for document, way, answered, asked in measure(load(options.file), options.show):
        for kind in (document.kind, "all"):
            counts[kind][way][0] += answered
            counts[kind][way][1] += asked
    ways = list(counts["all"])
    print("".join([f"{'questions answered at':24}", *(f"{way:>12}" for way in ways)]))  # noqa: T201
    for kind, by_way in sorted(counts.items(), key=lambda pair: pair[0] == "all"):
        cells = [f"{answered:d}/{asked:d}" for answered, asked in (by_way[way] for way in ways)]
        print("".join([f"{kind:24}", *(f"{cell:>12}" for cell in cells)]))  # noqa: T201
    shares = {way: answered / asked for way, (answered, asked) in counts["all"].items()}
    told = ", ".join(f"{way} {share:.1%}" for way, share in shares.items())
    print(f"{told}; {monotonic() - started:.1f} s", flush=True)  # noqa: T201
    return check_floors("compression", shares) if options.file.name == "compression.txt" else 0


if __name__ == "__main__":
    sys.exit(main())
