"""`panda serve` and `mcp`: syntheses over HTTP, tools and resources for MCP clients."""

from panda.addon_registry import Addon, CommandEntry

ADDON = Addon(
    name="serving",
    commands=(
        CommandEntry(
            "serve",
            "panda.addons.serving.serving_commands:serve",
            "Answer requests for a synthesis over HTTP.",
            after="synthesize",
        ),
        CommandEntry(
            "mcp",
            "panda.addons.serving.serving_commands:mcp",
            "Serve tools and resources to MCP clients.",
            after="serve",
        ),
    ),
)
