"""Which statements of a query are worth remembering: rules where they are sure, else a recipe."""

from panda.tools.contract import Ask
from panda.tools.statements import Stated, find_statements


def lasting_statements(query: str, ask: Ask | None) -> list[Stated]:
    """
    What a query states that is meant to last.

    Args:
        query: The raw query.
        ask: Asks the recipe about what rules are not sure of; None takes all of it.

    Raises:
        HaltError: A model call failed.
    """
    found = find_statements(query)
    if ask is None or all(one.sure for one in found):
        return found
    lasts = ask("phase4_memory_statement")["lasts"] == "lasting"
    return [one for one in found if one.sure or lasts]
