"""Exports that are made to hang or to fill the memory: told, and nothing comes in."""

import json
import sqlite3
import struct
import time
import zipfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.api import Ended, Panda
from tests.history.exports import chatgpt, claude, exchanges, said

MOST_SECONDS = 60
MARK = "\ue200cite\ue202turn0search0\ue201"


def take_in(panda: Panda, name: str, content: str | bytes) -> Ended:
    """What importing a file gives, in time."""
    panda.write(name, content)
    started = time.monotonic()
    ended = panda("import", name, "--json")
    assert time.monotonic() - started < MOST_SECONDS
    return ended


def refused(panda: Panda, name: str, content: str | bytes, *messages: str) -> None:
    """The file is refused with these words, and nothing of it has come in."""
    ended = take_in(panda, name, content)
    assert ended.code == 2, ended.out
    assert name in ended.error["where"]
    for message in messages:
        assert message in ended.error["message"]
    assert exchanges(panda) == []


def test_references_do_not_multiply_a_text(panda: Panda) -> None:
    """34 references whose texts hold their own mark twice: each mark is replaced once."""
    references = [{"matched_text": MARK, "alt": MARK * 2}] * 34
    talk = chatgpt(
        said("user", "A"), said("assistant", f"b{MARK}", metadata={"content_references": references})
    )
    assert take_in(panda, "conversations.json", json.dumps([talk])).code == 0
    assert len(exchanges(panda)) == 1


def test_many_damaged_messages_take_little_time(panda: Panda) -> None:
    """40,000 of them; what stands between comes in."""
    talk = claude(("human", "A"), ("assistant", "b"))
    damaged: list[Any] = [{"sender": 5, "uuid": f"d{n}"} for n in range(40_000)]
    talk["chat_messages"] += damaged
    ended = take_in(panda, "conversations.json", json.dumps([talk]))
    assert ended.code == 0, ended.out
    assert len(exchanges(panda)) == 1


def test_an_entry_of_a_zip_has_a_limit(panda: Panda) -> None:
    """Whatever size it says it has; the limit is told with its number."""
    path = panda.home / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", "[" + " " * 1_000_000 + "]")
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.rindex(b"PK\x01\x02") + 24, 0xFFFFFFF0)
    refused(panda, "export.zip", bytes(data), "4,295 MB unpacked", "4,000 MB")


def test_one_conversation_has_a_limit(panda: Panda) -> None:
    """A small .zip can hold an endless one."""
    path = panda.home / "export.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("conversations.json", "w") as file,
    ):
        file.write(b'[{"mapping": "')
        for _ in range(150):
            file.write(b"a" * 1_000_000)
        file.write(b'"}]')
    refused(panda, "export.zip", path.read_bytes(), "64 million characters")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 300_000,
        '[{"mapping":' + '{"a":' * 300_000,
        json.dumps([chatgpt(said("user", "A"), said("assistant", "b"))])[:-1] + ", " + "[" * 300_000,
        '[{"mapping": {}, "create_time": ' + "9" * 100_000 + "}]",
    ],
)
def test_deep_and_large_values_are_refused(panda: Panda, text: str) -> None:
    """Also after conversations that read."""
    refused(panda, "conversations.json", text)


def test_numbers_beyond_time_are_no_time(panda: Panda) -> None:
    """A conversation at 1e400 seconds or in a year of many digits has none."""
    talk = chatgpt(said("user", "A", create_time=1.5, untimed=True), said("assistant", "b"))
    text = json.dumps([talk]).replace("1.5", "1e400").replace("17000", "9" * 300)
    ended = take_in(panda, "conversations.json", text)
    assert ended.code in (0, 3), ended.out


def tangle(path: Path) -> None:
    """Make a table of which every page leads to all rows of the next, so that it never ends."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA page_size = 512")
        database.execute(
            "CREATE TABLE responses (id TEXT, prompt TEXT, response TEXT, conversation_id TEXT,"
            " datetime_utc TEXT)"
        )
        rows = ((f"id-{n}", "a" * 90, "b" * 90, f"c{n}", "2026-01-01T00:00:00") for n in range(4_000))
        database.executemany("INSERT INTO responses VALUES (?, ?, ?, ?, ?)", rows)
        database.commit()
    data = bytearray(path.read_bytes())
    inner = [at for at in range(512, len(data), 512) if data[at] == 5]
    assert len(inner) > 10
    for here, there in pairwise(inner[:13]):
        count = struct.unpack_from(">H", data, here + 3)[0]
        cells = [here + struct.unpack_from(">H", data, here + 12 + 2 * n)[0] for n in range(count)]
        for place in (*cells, here + 8):
            struct.pack_into(">I", data, place, there // 512 + 1)
    path.write_bytes(data)


def test_a_log_whose_pages_lead_in_circles_is_refused(panda: Panda) -> None:
    """It has more rows than a file of its size can hold."""
    path = panda.home / "logs.db"
    tangle(path)
    refused(panda, "logs.db", path.read_bytes(), "responses")


def test_a_large_export_comes_in(panda: Panda) -> None:
    """Hundreds of conversations, read one at a time, in an archive or as it is."""
    talks = [chatgpt(said("user", f"Q{n}"), said("assistant", "x" * 5_000), number=n) for n in range(300)]
    ended = take_in(panda, "conversations.json", json.dumps(talks))
    assert ended.code == 0, ended.out
    assert len(exchanges(panda)) == 300
