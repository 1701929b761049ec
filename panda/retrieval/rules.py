"""What belongs into a turn's context by rule, whatever the model thinks of it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from panda.language.reading import Reading
from panda.language.topics import matters_to_buyers


def ruled_nodes(
    reading: Reading, analysis: Mapping[str, Any], offered: Sequence[str], previous: str | None
) -> list[str]:
    """
    The candidates that are relevant by rule.

    Args:
        reading: What the user's query means.
        analysis: query_analysis.json.
        offered: Ids of the candidates.
        previous: Id of the session's previous turn; None if there is none.

    Returns:
        Turns that the query names, what it refers to, the previous turn if it refers to something that was
        not found, and for somebody who looks for something to buy the preferences about money and brands.

    >>> about = {"content_reference": None, "reference_resolution": {"status": "not_needed"}}
    >>> about["intent"] = "commerce"
    >>> ruled_nodes(Reading("orders"), about, ["memory:budget", "memory:hamster"], None)
    ['memory:budget']
    """
    wanted = reading.turns
    reference = analysis["content_reference"]
    if reference:
        wanted += [reference["node_id"], *analysis.get("reference_nodes", ())]
    elif previous and analysis["reference_resolution"]["status"] == "failed":
        wanted.append(previous)
    if analysis["intent"] == "commerce" and (reading.mood == "orders" or reading.limits):
        keys = (node_id for node_id in offered if node_id.startswith("memory:"))
        wanted += [node_id for node_id in keys if matters_to_buyers(node_id)]
    return [node_id for node_id in dict.fromkeys(wanted) if node_id in offered]
