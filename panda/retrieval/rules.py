"""What belongs into a turn's context by rule, whatever the model thinks of it. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from panda.documents.questions import named_turns

_BUYING = re.compile(
    r"\b(?:find|buy|buying|purchase|recommend|suggest|shop(?:ping)?|looking for|search for|cheap(?:er|est)?|"
    r"affordable|best|deals?|which .*should i)\b",
    re.IGNORECASE,
)
_BUYERS_KEYS = re.compile(r"budget|brand|price|spend", re.IGNORECASE)
_DETAILS = re.compile(
    r"\b(?:specs?|specifications?|details?|features?|(?:more|everything|all) about|full description)\b",
    re.IGNORECASE,
)

_CHANGING = re.compile(
    r"\b(?:prices?|costs?|cheap\w*|deals?|stock|availab\w*|sold out|now|currently|today|still|latest|news)\b",
    re.IGNORECASE,
)


def ruled_nodes(
    query: str, analysis: Mapping[str, Any], offered: Sequence[str], previous: str | None
) -> list[str]:
    """
    The candidates that are relevant by rule.

    Args:
        query: The user's query.
        analysis: query_analysis.json.
        offered: Ids of the candidates.
        previous: Id of the session's previous turn; None if there is none.

    Returns:
        Turns that the query names, what it refers to, the previous turn if it refers to something that was
        not found, and for somebody who wants to buy the preferences about money and brands.

    >>> about = {"content_reference": None, "reference_resolution": {"status": "not_needed"}}
    >>> about["intent"] = "commerce"
    >>> ruled_nodes("find a cheap laptop", about, ["memory:budget", "memory:hamster"], None)
    ['memory:budget']
    """
    wanted = [f"turn:{number}" for number in named_turns(query)]
    reference = analysis["content_reference"]
    if reference:
        wanted += [reference["node_id"], *analysis.get("reference_nodes", ())]
    elif previous and analysis["reference_resolution"]["status"] == "failed":
        wanted.append(previous)
    if analysis["intent"] == "commerce" and _BUYING.search(query):
        keys = (node_id for node_id in offered if node_id.startswith("memory:"))
        wanted += [node_id for node_id in keys if _BUYERS_KEYS.search(node_id)]
    return [node_id for node_id in dict.fromkeys(wanted) if node_id in offered]


def asks_for_details(query: str) -> bool:
    """
    Whether a query wants all that a page says of a thing, and not one value.

    >>> asks_for_details("what were the specs on that Lenovo?"), asks_for_details("how much is it?")
    (True, False)
    """
    return _DETAILS.search(query) is not None


def asks_only_for_details(query: str) -> bool:
    """
    Whether a query wants what a page says of a thing and nothing that changes from day to day.

    >>> asks_only_for_details("what were the specs on that Lenovo?")
    True
    >>> asks_only_for_details("specs and price of that Lenovo?"), asks_only_for_details("is it heavy?")
    (False, False)
    """
    return asks_for_details(query) and _CHANGING.search(query) is None
