"""Add-ons that come with panda: the core runs without any of them, and imports none (see docs/addons.md)."""
