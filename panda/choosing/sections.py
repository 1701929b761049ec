"""Prompt files of scorers: sections under `# heading` lines. Pure."""

import re

from panda.errors import RecipeKeyError


def prompt_sections(text: str, name: str) -> dict[str, str]:
    """
    The sections of a scorer's prompt file, by their `# heading`.

    Args:
        text: The file.
        name: Its name, for the error.

    Raises:
        RecipeKeyError: There is text but no heading.

    >>> prompt_sections("# shots\\nEvidence: a\\n# foreign\\n- b\\n", "x.md")
    {'shots': 'Evidence: a\\n', 'foreign': '- b\\n'}
    """
    parts = re.split(r"(?m)^# (.+)\n", text)
    if len(parts) < 3:
        raise RecipeKeyError("a scorer's prompt file needs `# heading` sections", where=f"prompts/{name}")
    return {parts[i].strip(): parts[i + 1] for i in range(1, len(parts), 2)}


def section_items(text: str) -> list[str]:
    """
    The list items of a section.

    >>> section_items("- a\\nand so on\\n- b\\n")
    ['a', 'b']
    """
    return [line[2:].strip() for line in text.splitlines() if line.startswith("- ")]
