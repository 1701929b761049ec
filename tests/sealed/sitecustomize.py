"""
A seal on the network: this process reaches its own machine and nothing else.

Python imports this file when it starts, in every process whose PYTHONPATH has its directory. A name is
refused as one that does not exist, an address as one that no route leads to, as on a machine without a
network; and each is written down in the file that TESTS_CONTACTS names. It imports no more than it
needs: every process that a test starts pays for it.
"""

import errno
import os
import socket
import sys

CONTACTS = "TESTS_CONTACTS"
_NAMES = frozenset(
    {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyname_ex", "socket.gethostbyaddr"}
)
_ADDRESSES = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_OWN = frozenset({"", "localhost", "0.0.0.0", "::", "::1"})


def seal() -> None:
    """Seal this process; a second time changes nothing."""
    if not vars(sys).get("network_is_sealed"):
        vars(sys)["network_is_sealed"] = True
        sys.addaudithook(_watch)


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event in _NAMES:
        host = _text(arguments[0])
        if not _is_own(host) and not _is_address(host):
            _write_down(host)
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known: the network is sealed")
    elif event in _ADDRESSES:
        address = arguments[1]  # of a Unix socket a path
        host = _text(address[0]) if isinstance(address, tuple) else ""
        if not _is_own(host):
            _write_down(host)
            raise OSError(errno.ENETUNREACH, "Network is unreachable: the network is sealed")


def _text(host: object) -> str:
    return host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "")


def _is_own(host: str) -> bool:
    host = host.lower().removeprefix("::ffff:")
    return host in _OWN or (host.startswith("127.") and _is_address(host))


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host.partition("%")[0])
        except OSError:
            continue
        return True
    try:
        socket.inet_aton(host)  # as a number, or with fewer dots
    except OSError:
        return False
    return True


def _write_down(host: str) -> None:
    path = os.environ.get(CONTACTS)
    if path:
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123 - nothing more is imported
            file.write(f"{host}\n")


seal()
