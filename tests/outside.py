"""A tree beside the store that nothing in the store may reach: what it holds, and whether it was touched."""

import shutil
from pathlib import Path

from tests.api import Ended, Panda, tree

SECRET = "Zwetschgenknoedel"
"""Stands in every file outside, and nowhere else."""


class Outside:
    """
    A directory beside a project, with a store of a stranger in it.

    Args:
        place: Where it is made.
        store: What the stranger's store is made of; the secret stands in each of its texts.
    """

    def __init__(self, place: Path, store: Path) -> None:
        self.place, self.store = place, place / "other"
        shutil.copytree(store, self.store)
        (place / "secret.json").write_text(f'{{"secret": "{SECRET}"}}')
        (place / "secret.md").write_text(f"# {SECRET}\n\nThe word is {SECRET}.\n")
        (place / "empty").mkdir()
        for path in self.store.rglob("*"):
            if path.is_file() and path.suffix in (".md", ".json", ".jsonl"):
                path.write_text(path.read_text().replace("Lenovo", SECRET))
        (place / ".left.0123456789ab.panda.tmp").write_text(SECRET)
        self.settle()

    def settle(self) -> None:
        """Let what is there now be what must stay."""
        self._before = self._state()

    def _state(self) -> dict[str, tuple[int, int, bytes]]:
        return {
            str(path.relative_to(self.place)): (
                (status := path.lstat()).st_mtime_ns,
                status.st_mode,
                b"" if path.is_dir() else path.read_bytes(),
            )
            for path in sorted(self.place.rglob("*"))
        }

    def changes(self) -> list[str]:
        """What is not as it was: files and directories that came, went, or were written."""
        now = self._state()
        return sorted(
            name for name in now.keys() | self._before.keys() if now.get(name) != self._before.get(name)
        )


def leaks(panda: Panda, *ended: Ended) -> list[str]:
    """Where the secret has come to: the streams of commands, or files of the project."""
    streams = [name for one in ended for name, text in (("out", one.out), ("err", one.err)) if SECRET in text]
    held = (name for name, content in tree(panda.home).items() if SECRET.encode() in content)
    return streams + [name for name in held if not (panda.home / name).is_symlink()]


def link(path: Path, target: Path) -> None:
    """Put a link in the place of a file or directory."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
