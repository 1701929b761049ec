"""Documents of a turn: standard input beside a query and --with, from the pipe to the forgetting."""

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.api import CASES, PROGRAM, ROOT, Ended, ModelServer, Panda, run_here
from tests.script import Script, pick
from tests.web.site import running_site

CONTRACT = """# Supply contract

## Delivery

The supplier delivers 400 crates every Monday to the warehouse in Tromsø.

## Payment

The monthly fee is 1,250 EUR.

## Risks

The main risk is a strike at the port, which delays every delivery by two weeks.

A price increase of more than 8 % in a year ends the contract.
"""
RISK = "The main risk is a strike at the port, which delays every delivery by two weeks."
WRITTEN = "A strike at the port delays deliveries."
RISK_LINE = 13
KINDS = yaml.safe_load((CASES / "documents.yaml").read_text(encoding="utf-8"))


PAGE = KINDS["html"]["text"]


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project with an empty store."""
    project = Panda(tmp_path / "project")
    assert project("init", "--quiet").code == 0
    project.write("contract.md", CONTRACT)
    return project


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Panda, Ended]:
    """A store with one turn, about the risks of a contract that was piped; tests only look at it."""
    project = Panda(tmp_path_factory.mktemp("asked") / "project")
    project("init", "--quiet")
    project.write("contract.md", CONTRACT)
    ended = project("turn", "--json", "Summarise the risks", stdin=CONTRACT)
    return project, ended


def copy_of(asked: tuple[Panda, Ended], tmp_path: Path) -> Panda:
    """A copy of that store, to be changed."""
    return Panda(tmp_path / "copy", asked[0].store)


def texts_of(panda: Panda, number: int = 1) -> dict[str, str]:
    """The texts that a turn keeps of its documents, by file name."""
    directory = panda.turn_file(number, "documents")
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(directory.glob("*"))}


def test_standard_input_is_a_document(asked: tuple[Panda, Ended]) -> None:
    """A piped text is told, kept, quoted by line, and named by --json with its size and digest."""
    panda, ended = asked
    assert ended.code == 0
    assert f"Read {len(CONTRACT.encode())} bytes from standard input." in ended.err
    assert RISK in ended.data["response"]
    assert "1,250 EUR" not in ended.data["response"]
    assert f"documents/standard-input.txt:{RISK_LINE}" in ended.data["response"]
    assert {source["node_id"] for source in ended.data["sources"]} == {"document:1/standard-input"}
    (document,) = ended.data["documents"]
    assert document == {
        "node_id": "document:1/standard-input",
        "name": "standard-input",
        "source": "standard input",
        "content_type": "text/markdown",
        "bytes": len(CONTRACT.encode()),
        "sha256": hashlib.sha256(CONTRACT.encode()).hexdigest(),
        "tokens": document["tokens"],
        "compressed": False,
    }
    assert texts_of(panda) == {"standard-input.txt": CONTRACT}
    assert panda.problems() == []


def test_a_turn_shows_its_documents(asked: tuple[Panda, Ended]) -> None:
    """`panda show` names the document in §0 and §2; its text is a file, and its manifest has a schema."""
    panda, _ = asked
    output = panda("show", "1").out
    assert 'documents: ["standard-input"]' in output
    assert "### Provided Documents" in output
    assert "source_type: user_document" in output
    assert panda("show", "1", "--file", "documents/standard-input.txt").out == CONTRACT
    schema = json.loads(panda("schema", "documents.json").out)
    assert "documents" in json.dumps(schema)


def test_a_page_shows_the_documents(asked: tuple[Panda, Ended], tmp_path: Path) -> None:
    """The page of a turn leads to what was handed over with its query."""
    panda, _ = asked
    assert panda("view", "1", "--out", str(tmp_path / "pages")).code == 0
    pages = [path.read_text(encoding="utf-8") for path in (tmp_path / "pages").rglob("*.html")]
    assert any("Handed over with it" in page and "standard-input.txt" in page for page in pages)


@pytest.mark.parametrize("request_", ["summarise this", "What is this about?", "key points please"])
def test_a_request_without_a_question_is_about_the_document(panda: Panda, request_: str) -> None:
    """A request without a question is answered with the closest passages, and never with nothing."""
    ended = panda("turn", "--json", "--with", "contract.md", request_)
    assert (ended.code, ended.data["answered"]) == (0, True)
    assert "Closest in contract.md, word for word:" in ended.data["response"]
    assert {source["node_id"] for source in ended.data["sources"]} == {"document:1/contract.md"}
    assert panda.json("memory", "list")["memory"] == []


def test_several_documents_and_a_question(panda: Panda) -> None:
    """--with is repeatable and goes with standard input; the document that answers a question is cited."""
    panda.write("other/contract.md", "The warranty lasts three years.\n")
    words = ("--with", "contract.md", "--with", "other/contract.md", "How long does the warranty last?")
    ended = panda("turn", "--json", *words, stdin="The office closes at five.\n")
    names = [document["name"] for document in ended.data["documents"]]
    assert names == ["contract.md", "contract-2.md", "standard-input"]
    assert "The warranty lasts three years. [1]" in ended.data["response"]
    assert ended.data["sources"][0]["node_id"] == "document:1/contract-2.md"


def test_waiting_for_the_writer_of_a_fifo_is_told(panda: Panda) -> None:
    """A named pipe that nobody writes to is named after two seconds, and read once somebody does."""
    fifo = panda.home / "contract.fifo"
    os.mkfifo(fifo)
    with panda.start("turn", "--no-stdin", "--with", "contract.fifo", "What is the monthly fee?") as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == (
                "Waiting for contract.fifo: nothing has been written to it.\n"
            )
            fifo.write_text(CONTRACT, encoding="utf-8")
            output, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, "1,250 EUR" in output) == (0, True)


def test_a_document_of_which_nothing_can_be_quoted_was_searched(panda: Panda) -> None:
    """An answer that found nothing names what was handed over, beside what else was looked through."""
    panda.write("links.md", "[[Money]], [[Trips]]\n\nWhy tea?\n")
    ended = panda("turn", "--json", "--with", "links.md", "Where is the wifi password?", stdin="Why tea?\n")
    searched = ended.data["response"].partition("Searched: ")[2].strip()
    index = "the index of saved turns, memory, research and visits."
    assert searched == f"document:1/links.md, document:1/standard-input, {index}"


def test_a_later_turn_goes_on_with_the_document(panda: Panda) -> None:
    """The next turn cites a document for what the answer before it quoted of that document."""
    panda("turn", "--with", "contract.md", "What is the monthly fee?")
    later = panda("turn", "--json", "-c", "What was the monthly fee again?")
    assert "1,250 EUR" in later.data["response"]
    assert [source["node_id"] for source in later.data["sources"]] == ["document:1/contract.md"]
    assert panda.problems() == []


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_documents(panda: Panda, kind: str) -> None:
    """
    Tables, aligned columns, JSON, pages, code and short lines without a title are read as what they are, and
    cited by the line where they say it.
    """
    case = KINDS[kind]
    name = case.get("name", "standard-input")
    if "name" in case:
        panda.write(name, case["text"])
        ended = panda("turn", "--json", "--with", name, case["query"])
    else:
        ended = panda("turn", "--json", case["query"], stdin=case["text"])
    assert ended.code == 0, ended.err
    assert case["answer"] in ended.data["response"].replace("| ", "").replace("\\", "")
    assert f"documents/{name}.txt:{case.get('line', '')}" in ended.data["response"]
    assert panda.problems() == []


def test_the_newest_document_is_the_one_that_is_asked_about(panda: Panda) -> None:
    """
    A document of an earlier turn does not answer for the newest; half of a character in it stops nothing.
    """
    words = ("turn", "--json", "Who is the vet?")
    assert panda(*words, stdin='{"vet": "Dr. Amsel", "phone": "0151 222"}').code == 0
    ended = panda(*words, stdin='{"vet": "Dr. Miller \\ud800", "phone": "0151 333"}')
    assert "Dr. Miller" in ended.data["response"]
    assert "Amsel" not in ended.data["response"]
    coloured = panda(*words, stdin="\033[31mThe vet is Dr. Redwood.\033[0m\n")
    assert coloured.data["response"].startswith("The vet is Dr. Redwood.")


def test_a_long_cell_is_no_fault_of_a_document(panda: Panda) -> None:
    """Lines that may be a table are looked at whatever their length."""
    assert panda("turn", "--json", "Summarise this", stdin=f"a;{'b' * 140_000}\n" * 3).code in {0, 2}


def test_a_pause_of_the_writer_is_not_the_end(panda: Panda) -> None:
    """A pipe that a parent left non-blocking is read to its end."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with subprocess.Popen(
        [*PROGRAM, "turn", "--quiet", "Who is the plumber?"],
        cwd=panda.home,
        env=panda.environ,
        stdin=reading,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(reading)
        os.write(writing, b"The house is old and has a garden in the back.\n")
        time.sleep(1.5)
        os.write(writing, b"\nThe plumber is Mr. Late.\n")
        os.close(writing)
        answer, _ = process.communicate(timeout=60)
    assert answer.startswith("The plumber is Mr. Late.")


PDF_TEXT = "The lease ends on 31 March 2027."


def make_pdf(*pages: str) -> bytes:
    """A PDF of some pages, each a line of text; "" is a page without any."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    kids = []
    for text in pages:
        content = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode() if text else b""
        number = len(objects) + 1
        kids.append(f"{number} 0 R")
        font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /Resources {font} /MediaBox [0 0 612 792]"
            f" /Contents {number + 1} 0 R >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    data = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    return data + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)


def test_a_pdf_is_read_page_by_page(panda: Panda) -> None:
    """The text of a PDF stands below its pages; one that only has pictures is refused."""
    panda.write("lease.pdf", make_pdf("The flat has three rooms.", PDF_TEXT))
    ended = panda("turn", "--json", "--with", "lease.pdf", "When does the lease end?")
    assert f"{PDF_TEXT} [1]" in ended.data["response"]
    assert ended.data["documents"][0]["content_type"] == "application/pdf"
    assert f"# Page 2\n\n{PDF_TEXT}" in texts_of(panda)["lease.pdf.txt"]
    panda.write("scan.pdf", make_pdf(""))
    refused = panda("turn", "--json", "--with", "scan.pdf", "When does the lease end?")
    assert (refused.code, refused.error["where"]) == (2, "scan.pdf")
    assert "holds no text" in refused.error["message"]
    panda.write("torn.pdf", make_pdf("Hi.")[:60])
    assert panda("turn", "--with", "torn.pdf", "When does the lease end?").code == 2


def test_a_pdf_without_its_extra_names_the_extra(panda: Panda, tmp_path: Path) -> None:
    """Without pypdf the error says what to install, and no number is claimed."""
    panda.write("lease.pdf", make_pdf(PDF_TEXT))
    hide = "import sys; sys.modules['pypdf'] = None\nfrom panda.cli.main import main; main()"
    panda.program = (sys.executable, "-c", hide)
    refused = panda.process("turn", "--json", "--with", "lease.pdf", "When does the lease end?")
    assert (refused.code, refused.error["where"]) == (2, "lease.pdf")
    assert "pip install 'panda-turns[pdf]'" in refused.error["fix"]
    assert not panda.turn_file(1, "").exists()


@pytest.mark.parametrize(
    ("data", "words", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xff", (), "standard input is no text"),
        (b"caf\xe9 au lait\n", (), "not UTF-8: byte 3 is 0xe9"),
        (b"", ("--with", "-"), "standard input is empty"),
        (b"", ("--with", "gone.md"), "No such file"),
        (b"", ("--with", "empty.md"), "empty.md is empty"),
        (b"", ("--with", "large.txt"), "large.txt has 2,000,004 bytes of text"),
        (b"x", ("--no-stdin", "--with", "-"), "--with - does not go with --no-stdin"),
        (b"", tuple(word for n in range(21) for word in ("--with", f"{n}.md")), "21 documents"),
    ],
    ids=["binary", "latin-1", "no input", "no file", "empty file", "large", "both", "many"],
)
def test_what_is_no_document_claims_no_number(
    panda: Panda, data: bytes, words: tuple[str, ...], reason: str
) -> None:
    """Input that cannot be a document is refused with the reason and a fix, before a number is claimed."""
    panda.write("empty.md", "\n \n")
    panda.write("large.txt", "Line.\n" * 333_334)
    ended = panda("turn", "--json", *words, "Summarise this", stdin=data)
    assert ended.code in (2, 74)
    assert reason in ended.error["message"]
    assert ended.error["fix"] or ended.error["where"]
    assert not (panda.store / "users/default/turns").exists()


def test_nothing_is_read_where_nothing_is_handed_over(panda: Panda) -> None:
    """Empty standard input is no document and not told of; --no-stdin leaves a full one alone."""
    for stdin, words in (("", ()), ("\n", ()), (CONTRACT, ("--no-stdin",))):
        ended = panda("turn", "--json", *words, "Hello there", stdin=stdin)
        assert ended.data["documents"] == []
        assert "standard input" not in ended.err


def test_a_query_from_standard_input_is_no_document(panda: Panda) -> None:
    """`panda turn -` reads the query alone; one that is too long is told how to hand a text over."""
    ended = panda("turn", "--json", "-", stdin="Which tea do I like?\n")
    assert (ended.data["documents"], ended.data["answered"]) == ([], False)
    refused = panda("turn", "--json", "-", stdin="laptop price " * 400)
    assert refused.code == 2
    assert "--with -" in refused.error["fix"]
    both = panda("turn", "--json", "--with", "-", "-", stdin="Hi\n")
    assert (both.code, both.error["where"]) == (2, "--with")


CHANGELOG = """# Changelog

## 1.4.0

- Added the export of invoices to the monthly report
- Fixed the crash when a customer without an address is deleted
- Removed the old login page

## 1.3.2

- The minimum version of Python is 3.11
"""


def test_a_pasted_document_is_no_statement(panda: Panda) -> None:
    """A text that is pasted as the query is not kept as one fact; the answer says how to ask about it."""
    ended = panda("turn", "--json", "-", stdin=CHANGELOG)
    assert (ended.code, ended.data["noted"]) == (0, [])
    assert "--with FILE" in ended.data["response"]
    assert panda.json("memory", "list")["memory"] == []
    later = panda("turn", "--json", "What is the minimum version of Python?")
    assert "The minimum version of Python is 3.11 [1]" in later.data["response"]
    assert "Changelog" not in later.data["response"]


def test_a_pipe_that_is_waited_for(panda: Panda) -> None:
    """A real pipe that says nothing for two seconds is told of, and read when it does."""
    with panda.start("turn", "--json", "Summarise the risks") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        assert process.stderr.readline() == "Waiting for standard input; --no-stdin leaves it alone.\n"
        process.stdin.write(CONTRACT)
        process.stdin.close()
        assert process.stderr.readline() == f"Read {len(CONTRACT.encode())} bytes from standard input.\n"
        assert process.stdout is not None
        assert RISK in process.stdout.read()
    assert process.returncode == 0


def test_a_loop_over_lines(panda: Panda) -> None:
    """Without --no-stdin the first turn of a loop eats the questions that follow; with it each is asked."""
    panda.write("questions.txt", "Which tea do I like?\nWhere do I live?\n")
    command = " ".join(f"'{word}'" for word in panda.program)
    for option, turns in (("--no-stdin", 2), ("", 3)):  # of the second loop only the first question
        script = f'while read -r q; do {command} turn --quiet {option} "$q"; done < questions.txt'
        subprocess.run(
            ["/bin/sh", "-c", script],
            cwd=panda.home,
            env=panda.environ,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        assert len(panda.json("list")["turns"]) == turns


def test_a_large_document_is_brought_to_budget(panda: Panda) -> None:
    """Of 200 kB the lines that fit the question are read, in seconds; what was cut is told."""
    lines = [
        f"Clause {n}: the parties of section {n} meet in room {n % 40} once a year.\n" for n in range(3000)
    ]
    lines[2_345] = "Clause 2345: the deposit for the piano is 780 EUR.\n"
    text = "\n".join(lines)
    assert len(text) > 200_000
    began = time.monotonic()
    ended = panda("turn", "--json", "How much is the deposit for the piano?", stdin=text)
    assert time.monotonic() - began < 30  # some seconds, on a machine that does nothing else
    assert "the deposit for the piano is 780 EUR" in ended.data["response"]
    assert "standard-input.txt:4691" in ended.data["response"]
    assert ended.data["documents"][0]["compressed"] is True
    gathered = json.loads(panda.turn_file(1, "gathered_context.json").read_text(encoding="utf-8"))
    (loaded,) = gathered["documents"]
    assert loaded["kept_tokens"] <= 6_000 < loaded["tokens"]
    assert panda.problems() == []


def test_a_changed_document_is_seen(asked: tuple[Panda, Ended], tmp_path: Path) -> None:
    """A document that was changed after the turn is a finding, and so is one that has gone."""
    panda = copy_of(asked, tmp_path)
    path = panda.turn_file(1, "documents/standard-input.txt")
    path.write_text(CONTRACT.replace("two weeks", "ten weeks"), encoding="utf-8")
    assert any("has changed since it was handed over" in problem for problem in panda.problems())
    path.unlink()
    assert any(str(path) in problem for problem in panda.problems())


def test_a_replay_uses_the_kept_documents(asked: tuple[Panda, Ended], tmp_path: Path) -> None:
    """A turn is replayed with what it kept, whatever became of the file; other documents are a difference."""
    panda = copy_of(asked, tmp_path)
    assert panda("replay", "1").code == 0
    (copied,) = panda.store.glob("runs/*/turns/*/turn_000001/documents/standard-input.txt")
    assert copied.read_text(encoding="utf-8") == CONTRACT


def test_forgetting_reaches_documents(asked: tuple[Panda, Ended], tmp_path: Path) -> None:
    """--text takes a text out of documents, with the digests of what held it; a forgotten turn has none."""
    panda = copy_of(asked, tmp_path)
    assert panda("forget", "--text", "strike at the port", "--yes").code == 0
    assert "strike" not in texts_of(panda)["standard-input.txt"]
    manifest = json.loads(panda.turn_file(1, "documents.json").read_text(encoding="utf-8"))
    assert [manifest["documents"][0][key] for key in ("sha256", "text_sha256")] == [None, None]
    assert panda.problems() == []
    named = panda("forget", "document:1/standard-input", "--yes", "--json")
    assert (named.code, named.error["fix"]) == (2, "give the turn's number, or with --text what it says")
    assert panda("forget", "1", "--yes").code == 0
    assert not panda.turn_file(1, "documents").exists()
    assert not panda.turn_file(1, "documents.json").exists()
    assert panda.problems() == []


def test_a_forgotten_document_goes_from_turns_that_quote_it(panda: Panda) -> None:
    """Forgetting a turn takes what other turns and sessions quoted of its document, too."""
    panda.write(
        "old.md", "# Rental contract\n\nThe rent is 900 euros per month.\n\nThe deposit is two rents.\n"
    )
    panda("turn", "--session", "first", "--with", "old.md", "What is the rent?")
    later = panda("turn", "--session", "second", "--json", "What is the rent in old.md per month?")
    assert {source["node_id"] for source in later.data["sources"]} == {"document:1/old.md"}
    panda("turn", "--session", "second", "What about the rent?")
    panda.write("panda-system-docs/users/default/knowledge/rents.md", "Rents of 900 euros are usual.\n")
    assert panda("forget", "1", "--yes").code == 0
    paths = [path for path in panda.store.rglob("*") if path.is_file() and path.name != "rents.md"]
    assert [str(path) for path in paths if b"900 euros" in path.read_bytes()] == []
    assert [str(path) for path in paths if b"two rents" in path.read_bytes()] == []
    assert panda("validate", "--strict").code == 0


def test_a_text_in_the_name_of_a_document(panda: Panda) -> None:
    """--text leaves a document's name, and says so; source and digests lose it, and the turn validates."""
    panda.write("Zorbax-plan.md", "The Zorbax starts in May.\n\nIts budget is 40,000 euros.\n")
    panda("turn", "--with", "Zorbax-plan.md", "When does it start?")
    ended = panda("forget", "--text", "Zorbax", "--yes", "--json")
    assert (ended.code, "`panda forget 1` removes it" in ended.error["fix"]) == (3, True)
    (document,) = json.loads(panda.turn_file(1, "documents.json").read_text(encoding="utf-8"))["documents"]
    assert document["name"] == "Zorbax-plan.md"
    assert "Zorbax" not in document["source"]
    assert [document[key] for key in ("sha256", "text_sha256")] == [None, None]
    assert "Zorbax" not in texts_of(panda)["Zorbax-plan.md.txt"]
    assert panda("validate", "--strict").code == 0
    assert panda("forget", "1", "--yes").code == 0
    assert panda("validate", "--strict").code == 0


def test_an_export_tells_that_documents_are_needed(asked: tuple[Panda, Ended]) -> None:
    """A turn with documents is left out of queries to ask again, and stderr says why."""
    ended = asked[0]("export", "1", "--as", "queries", "--json")
    assert "it was asked with documents" in json.dumps(ended.value)


def test_a_resumed_turn_has_its_documents(panda: Panda) -> None:
    """A turn that was killed goes on with what was handed over, and takes no other document."""
    with panda.start("turn", "Summarise the risks", "--quiet") as process:
        assert process.stdin is not None
        process.stdin.write(CONTRACT)
        process.stdin.close()
        until = time.monotonic() + 60
        while not panda.turn_file(1, "metadata.json").exists() and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    refused = panda("turn", "--resume", "1", "--with", "contract.md", "--json")
    assert (refused.code, refused.error["where"]) == (2, "--with")
    ended = panda("turn", "--resume", "1", "--json", stdin="Something else.\n")
    assert RISK in ended.data["response"]
    assert panda.problems() == []


@pytest.mark.asks_for("shop.example")
def test_a_page_that_cannot_be_had(panda: Panda) -> None:
    """Offline, --with URL is an error that names the address, and no number is claimed."""
    ended = panda("turn", "--json", "--with", "https://shop.example/terms", "When may I cancel?")
    assert (ended.code, "shop.example" in ended.error["where"]) == (74, True)
    assert not (panda.store / "users/default/turns").exists()


def test_a_page_is_a_document(panda: Panda) -> None:
    """--with URL fetches a page as the tools do: at allowed places, unless robots.txt asks not to."""
    with running_site() as site:
        url = site.add("/terms.html", PAGE)
        words = ("turn", "--json", "--with", url, "When does the museum open on Sundays?")
        refused = panda(*words)
        assert (refused.code, refused.error["where"]) == (74, site.place)
        ended = panda(*words, "--allow", "127.0.0.1")
        site.add("/robots.txt", "User-agent: *\nDisallow: /", headers={"Content-Type": "text/plain"})
        unwelcome = panda(*words, "--allow", "127.0.0.1")
    (document,) = ended.data["documents"]
    assert (document["source"], document["name"]) == (url, "127.0.0.1-terms.html")
    assert "The museum opens at 10:15 on Sundays. [1]" in ended.data["response"]
    assert (unwelcome.code, "robots.txt" in unwelcome.error["message"]) == (74, True)


def test_a_writer_reads_the_documents(panda: Panda) -> None:
    """A model that writes is output the documents under a heading of their own and cites their lines."""
    server = ModelServer(
        Script(
            synthesis={"lines": pick("strike at the port")},
            answer={
                "items": [
                    {
                        "text": "A strike at the port delays deliveries.",
                        "node_ids": ["document:1/contract.md"],
                    }
                ]
            },
        )
    )
    panda.write("models.yaml", server.models())
    try:
        ended = panda("turn", "--json", "--with", "contract.md", "Summarise the risks")
    finally:
        server.close()
    assert ended.code == 0, ended.err
    assert f"{WRITTEN} [1]" in ended.data["response"]
    assert f"documents/contract.md.txt:{RISK_LINE}" in ended.data["response"]
    assert panda.problems() == []


def test_gathering_takes_documents(panda: Panda) -> None:
    """`panda gather --query` takes what is handed over, as a turn does."""
    ended = panda("gather", "--query", "What is the monthly fee?", "--json", stdin=CONTRACT)
    assert "### Provided Documents" in ended.data["section"]
    assert "1,250 EUR" in ended.data["section"]


def test_the_example_of_the_readme(panda: Panda) -> None:
    """The example of the README runs as it stands there, in a shell, and its answer is right."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"(?m)^\$ (cat \S+ \| panda turn .*?)\s*#", readme)
    panda.write("CONTRIBUTING.md", (ROOT / "CONTRIBUTING.md").read_bytes())
    panda.write("bin/panda", f'#!/bin/sh\nexec {shlex.join(panda.program)} "$@"\n').chmod(0o755)
    environ = {**panda.environ, "PATH": f"{panda.home / 'bin'}:{os.environ['PATH']}"}
    ended = subprocess.run(
        ["/bin/sh", "-c", command], cwd=panda.home, env=environ, check=True, capture_output=True, text=True
    )
    assert "minutes on two cores" in ended.stdout


def test_the_help_shows_a_pipe_and_a_loop() -> None:
    """`panda turn --help` has an example with a pipe, and of a loop that keeps its input."""
    output = run_here(("turn", "--help")).out
    assert 'cat contract.md | panda turn "Summarise the risks"' in output
    assert 'do panda turn --no-stdin "$q"; done' in output


@pytest.mark.parametrize("names", [["documents/contract.md.txt"], ["documents.json", "documents"]])
def test_a_turn_whose_document_was_deleted_is_not_resumed(panda: Panda, names: list[str]) -> None:
    """The error names the file and what to do, `validate` finds it, and the turn goes on once it is back."""
    facts = panda.write("store/users/default/facts.md", "---\n- no map\n---\n")
    assert panda.turn("What is the monthly fee?", "--with", "contract.md").code == 20
    facts.unlink()
    directory = panda.turn_file(1, "metadata.json").parent
    for name in names:
        shutil.move(directory / name, panda.home / Path(name).name)
    ended = panda("turn", "--resume", "1", "--json")
    assert (ended.code, ended.error["where"]) == (2, str(directory / names[0])), ended.out
    assert "is missing" in ended.error["message"] or "are missing" in ended.error["message"]
    assert ended.error["fix"] == "restore it, or ask the query as a new turn"
    assert any(str(directory / names[0]) in problem for problem in panda.problems())
    for name in names:
        shutil.move(panda.home / Path(name).name, directory / name)
    resumed = panda("turn", "--resume", "1", "--json")
    assert (resumed.code, "1,250 EUR" in resumed.data["response"]) == (0, True)
