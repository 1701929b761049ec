"""Tables of the core that add-ons add to."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from panda.addon_registry import Addon, already_there, find_broken_addons, load_addons, load_target, warn_of
from panda.errors import AddonError


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Item = TypeVar("_Item", bound=_Named)


class ExtensibleTable(Mapping[str, _Item]):
    """
    A table of the core by name, which add-ons add to.

    Add-ons are loaded when a name is asked for that the core does not have, or all names are.

    Args:
        core: What the core has.
        targets: Gives the target by which an add-on adds to the table, None if it does not.
    """

    def __init__(self, core: Iterable[_Item], targets: Callable[[Addon], str | None]) -> None:
        self._core = {item.name: item for item in core}
        self._targets = targets
        self._added: dict[str, _Item] | None = None

    def __getitem__(self, name: str) -> _Item:
        if name in self._core:
            return self._core[name]
        return self._load_added()[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._core
        yield from self._load_added()

    def __len__(self) -> int:
        return len(self._core) + len(self._load_added())

    def _load_added(self) -> Mapping[str, _Item]:
        if self._added is None:
            added: dict[str, _Item] = {}
            for problem in find_broken_addons():
                warn_of(problem)
            for addon in load_addons():
                for item in self._load_items(addon):
                    if item.name in self._core or item.name in added:
                        warn_of(already_there(addon, repr(item.name)))
                    else:
                        added[item.name] = item
            self._added = added
        return self._added

    def _load_items(self, addon: Addon) -> Sequence[_Item]:
        """Return what an add-on adds; none where that cannot be loaded, with a warning."""
        target = self._targets(addon)
        if target is None:
            return ()
        try:
            items: Sequence[_Item] = load_target(target)
        except AddonError as exc:
            warn_of(exc)
            return ()
        return items
