"""`panda export` and `import`: saved turns as texts, and conversations of other programs as turns."""

from panda.addon_registry import Addon, CommandEntry

ADDON = Addon(
    name="exchange",
    commands=(
        CommandEntry(
            "export",
            "panda.addons.exchange.exchange_commands:export",
            "Take saved turns out: queries, JSON lines, a transcript.",
            after="show",
        ),
        CommandEntry(
            "import",
            "panda.addons.exchange.exchange_commands:import_conversations",
            "Save turns from JSON lines, ChatGPT, Claude or llm.",
            after="export",
        ),
    ),
)
