"""Pages as their scripts make them, in Chromium, for the walks through a site of `internet.navigate`."""

from panda.addon_registry import Addon

ADDON = Addon(name="browser", page_browser="panda.addons.browser.chromium:open_browser")
