"""Differing prices of the same thing from different sources: shown side by side, never settled. Pure."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from panda.documents.evidence import find_claims

_MODEL = re.compile(r"(?=\w*\d)\w+")


@dataclass(frozen=True)
class FoundClaim:
    """One claim of a research with where it comes from."""

    text: str
    """One line."""
    subject: str
    """Title of the page: what it is about."""
    source: str
    """Site."""
    url: str
    """Page."""
    visit_id: str
    """Visit that holds it."""
    provenance: str
    """Its file, relative to the user's directory."""
    confidence: float
    """As of now."""
    content_type: str
    """How it ages."""

    @property
    def price(self) -> str | None:
        """The one price that it names, in normal form; None if it names none or several."""
        values = {claim.value for claim in find_claims(self.text) if claim.kind == "price"}
        return values.pop() if len(values) == 1 and self.content_type == "price" else None


@dataclass(frozen=True)
class Conflict:
    """Claims that cannot all hold."""

    about: str
    """What they are about."""
    claims: tuple[FoundClaim, ...]
    """All of them, in the order they were found."""

    @property
    def text(self) -> str:
        """One line that says what each source says."""
        unique = {(claim.price, claim.url): claim for claim in self.claims}.values()
        sites = [claim.source for claim in unique]
        places = sites if len(set(sites)) == len(sites) else [claim.url for claim in unique]
        said = [f"{_written_price(c)} ({place})" for c, place in zip(unique, places, strict=True)]
        return f"{self.about}: price {' or '.join(said)}; the sources disagree"


def _written_price(claim: FoundClaim) -> str:
    return next(found.text for found in find_claims(claim.text) if found.kind == "price")


def likeness(first: str, second: str) -> float:
    """
    How likely two titles name the same thing: the share of the shorter one's words; 0 if their models differ.

    >>> likeness("Lenovo LOQ 15 Gaming Laptop", "Lenovo LOQ 15"), likeness("Lenovo LOQ 15", "Lenovo LOQ 16")
    (1.0, 0.0)
    """
    a, b = (set(re.findall(r"\w+", title.lower())) for title in (first, second))
    models = [set(_MODEL.findall(title.lower())) for title in (first, second)]
    if not a or not b or (all(models) and not (models[0] <= models[1] or models[1] <= models[0])):
        return 0.0
    return round(len(a & b) / min(len(a), len(b)), 2)


def differing_pairs(claims: Sequence[FoundClaim]) -> Iterator[tuple[int, int, float]]:
    """
    Pairs of claims of different pages with different prices, with how alike their subjects are.

    Args:
        claims: In any order; only those that name one price count.

    Returns:
        (index, index, likeness), likeness above 0.
    """
    priced = [(n, claim, price) for n, claim in enumerate(claims) if (price := claim.price)]
    for (i, first, one), (j, second, two) in combinations(priced, 2):
        if first.url != second.url and one != two:
            alike = likeness(first.subject, second.subject)
            if alike:
                yield i, j, alike


def join_conflicts(claims: Sequence[FoundClaim], pairs: Collection[tuple[int, int]]) -> list[Conflict]:
    """
    Conflicts from pairs: what is connected is one conflict, with every claim on that price.

    Args:
        claims: As for differing_pairs.
        pairs: Indices of claims about the same thing.
    """
    groups: list[set[int]] = []
    for i, j in pairs:
        joined = {i, j}.union(*(group for group in groups if group & {i, j}))
        groups = [group for group in groups if not group & {i, j}] + [joined]
    conflicts = []
    for group in sorted(groups, key=min):
        members = tuple(claims[n] for n in sorted(group))
        conflicts.append(Conflict(min((claim.subject for claim in members), key=len), members))
    return conflicts
