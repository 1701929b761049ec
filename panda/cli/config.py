"""`panda config show` and `panda trust`."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Annotated

from panda.cli.command import Invocation, OutputTable, Result, flag
from panda.documents.times import render_time
from panda.errors import Location, UsageError
from panda.settings import SETTABLE, Settings
from panda.trust import TrustCandidate, claims_of, read_trust, record_trust, revoke_trust, untrusted_claims

_UNSETTABLE = ("entries", "project_text", "sudo_uid", "models_by_layer")


def show(invocation: Invocation) -> Result:
    """
    Show every setting with its value and where it came from: flag, variable, file or default.

    Example: panda config show
    """
    settings = invocation.settings
    names = [setting.name for setting in fields(settings) if setting.name not in _UNSETTABLE]
    values = {name: _plain(getattr(settings, name)) for name in names}
    origins = {name: _origin(settings, name) for name in names}
    data = {name: {"value": values[name], "origin": origins[name]} for name in names}
    rows = [(name, _cell(values[name]), origins[name]) for name in names]
    return Result({"settings": data}, OutputTable(("setting", "value", "origin"), rows))


def _origin(settings: Settings, name: str) -> str:
    """Return where a setting came from; the three that nobody can set follow from where panda.toml is."""
    if name in (*SETTABLE, "trust"):
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


def trust(
    invocation: Invocation,
    dry_run: Annotated[bool, flag("Only show what would be trusted.", "--dry-run")] = False,
    revoke: Annotated[bool, flag("Trust nothing here any more.", "--revoke")] = False,
) -> Result:
    """
    Let this project's panda.toml and models.yaml, and the links of its store, reach out as they do now.

    Shows what they would do: servers they contact, secrets they send, commands they run, models they load,
    paths outside of the project; and files that belong to another user. A file that changes has to be trusted
    again. What is recorded lies in the user's state directory.

    Example: panda trust --dry-run
    """
    if dry_run and revoke:
        raise UsageError(
            "--dry-run and --revoke exclude each other", where="--revoke", fix="give one of them"
        )
    settings = invocation.settings
    if revoke:
        gone = revoke_trust(settings)
        invocation.reporter.step(f"no longer trusted: {len(gone)}")
        return Result(
            {"state": str(settings.trust_file), "revoked": gone}, "".join(f"{path}\n" for path in gone)
        )
    claims = claims_of(settings)
    trusted = read_trust(settings) if claims else {}
    missing = [claim for claim in claims if trusted.get(claim.path) != claim.digest]
    if not dry_run and missing:
        record_trust(settings, missing)
    _tell(invocation, claims, missing, dry_run=dry_run)
    data = {
        "state": str(settings.trust_file),
        "recorded": [] if dry_run else [claim.path for claim in missing],
        "claims": [_data(claim, trusted=not dry_run or claim not in missing) for claim in claims],
    }
    rows = [
        (
            str(Location(claim.path, line=reach.line, key=reach.key)),
            reach.effect,
            "new" if claim in missing else "trusted",
        )
        for claim in claims
        for reach in claim.reaches
    ]
    return Result(data, OutputTable(("file", "what it does", "state"), rows, keeps_words=True))


def _tell(
    invocation: Invocation, claims: list[TrustCandidate], missing: list[TrustCandidate], *, dry_run: bool
) -> None:
    if not claims:
        invocation.reporter.step("nothing here reaches out of the project")
    elif dry_run:
        invocation.reporter.step(f"not trusted yet: {len(missing)} of {len(claims)}")
    else:
        invocation.reporter.step(f"recorded in {invocation.settings.trust_file}: {len(missing)}")
        if behind := untrusted_claims(invocation.settings):
            invocation.reporter.warn(f"these name {len(behind)} more, run panda trust again")


def _data(claim: TrustCandidate, *, trusted: bool) -> dict[str, object]:
    return {
        "path": claim.path,
        "digest": claim.digest,
        "trusted": trusted,
        "reaches": [
            {"key": reach.key or None, "line": reach.line, "effect": reach.effect} for reach in claim.reaches
        ],
    }
