"""`panda config show`."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from pathlib import Path

from panda.cli.contract import Invocation, Result, Table
from panda.documents.times import render_time
from panda.settings import SETTING_NAMES, Settings


def show(invocation: Invocation) -> Result:
    """
    Show every setting with its value and where it came from: flag, variable, file or default.

    Example: panda config show
    """
    settings = invocation.settings
    names = [one.name for one in fields(settings) if one.name not in ("origins", "project_text")]
    values = {name: _plain(getattr(settings, name)) for name in names}
    origins = {name: _origin(settings, name) for name in names}
    data = {name: {"value": values[name], "origin": origins[name]} for name in names}
    rows = [(name, _cell(values[name]), origins[name]) for name in names]
    return Result({"settings": data}, Table(("setting", "value", "origin"), rows))


def _origin(settings: Settings, name: str) -> str:
    """Where a setting came from; the three that nobody can set follow from where panda.toml is."""
    if name in (*SETTING_NAMES, "trust"):
        return settings.origin(name)
    if name == "state_dir":
        return "XDG_STATE_HOME"
    return str(settings.project_file) if settings.project_file.is_file() else "current directory"


def _plain(value: object) -> object:
    """A setting as a JSON value."""
    if isinstance(value, datetime):
        return render_time(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _cell(value: object) -> object:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {shlex.join(words)}" for key, words in value.items())
    return os.pathsep.join(map(str, value)) if isinstance(value, list) else value
