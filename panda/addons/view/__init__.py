"""`panda view`: read-only pages over a store, served in the browser or written as files."""

from panda.addon_registry import Addon, CommandEntry

ADDON = Addon(
    name="view",
    commands=(
        CommandEntry(
            "view",
            "panda.addons.view.view_command:view",
            "Look at turns and what they rest on in the browser.",
            after="show",
        ),
    ),
)
