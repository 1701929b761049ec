"""No test reaches another machine, and a test that tries to fails."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sealing import MADE, read_contacts

TEST_RUN = """
import socket, subprocess, sys

def test_name():
    try:
        socket.getaddrinfo("shop.example", 443)
    except socket.gaierror:
        pass

def test_process():
    subprocess.run([sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 80))"])

def test_own():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(("localhost", server.getsockname()[1])).close()
"""
CONFTEST = "from tests.sealing import sealed_network\n"


@pytest.mark.asks_for("shop.example", "192.0.2.1")
def test_other_machines_are_out_of_reach() -> None:
    """A name does not exist and an address has no route; both are written down."""
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("shop.example", 443)
    with pytest.raises(OSError, match="unreachable"), socket.socket() as reaching:
        reaching.connect(("192.0.2.1", 80))
    with pytest.raises(OSError, match="unreachable"), socket.socket(type=socket.SOCK_DGRAM) as sending:
        sending.sendto(b"x", ("192.0.2.1", 53))
    assert list(read_contacts(MADE))[-3:] == ["shop.example", "192.0.2.1", "192.0.2.1"]


@pytest.mark.asks_for("192.0.2.1")
def test_processes_of_processes_are_sealed() -> None:
    """A process that a started process starts reaches no other machine either."""
    reach = "import socket; socket.create_connection(('192.0.2.1', 80))"
    start = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {reach!r}]).returncode)"
    done = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the network is sealed" in done.stderr


def test_who_asks_for_another_machine_fails(tmp_path: Path) -> None:
    """Also where the error was swallowed, and where a process asked; a test on its own machine passes."""
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_run.py").write_text(TEST_RUN, encoding="utf-8")
    root = Path(__file__).parent.parent
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--rootdir", ".", "."]
    environ = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{os.environ['PYTHONPATH']}"}
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environ, check=False)
    assert "hosts of other machines: shop.example" in done.stdout
    assert "hosts of other machines: 192.0.2.1" in done.stdout
    errors = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("ERROR ")]
    assert errors == ["test_run.py::test_name", "test_run.py::test_process"]
