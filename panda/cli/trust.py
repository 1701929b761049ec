"""`panda trust`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from panda.cli.contract import Invocation, Result, Table
from panda.errors import UsageError
from panda.trust import Claim, TrustFile, claims_of, untrusted_claims


def trust(
    invocation: Invocation,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be trusted.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust nothing here any more.")] = False,
) -> Result:
    """
    Let this project's panda.toml and models.yaml, and the links of its store, reach out as they do now.

    Shows what they would do: servers they contact, secrets they send, commands they run, paths outside of the
    project. A file that changes has to be trusted again. What is recorded lies in the user's state directory.

    Example: panda trust --dry-run
    """
    if dry_run and revoke:
        raise UsageError(
            "--dry-run and --revoke exclude each other", where="--revoke", fix="give one of them"
        )
    file = TrustFile(invocation.settings)
    if revoke:
        gone = file.revoke(invocation.settings)
        invocation.reporter.step(f"no longer trusted: {len(gone)}")
        return Result({"state": str(file.path), "revoked": gone}, "".join(f"{path}\n" for path in gone))
    claims = claims_of(invocation.settings)
    missing = [claim for claim in claims if not file.holds(claim)]
    if not dry_run and missing:
        file.record(missing)
    _tell(invocation, file, claims, missing, dry_run=dry_run)
    data = {
        "state": str(file.path),
        "recorded": [] if dry_run else [claim.path for claim in missing],
        "claims": [_data(claim, trusted=not dry_run or claim not in missing) for claim in claims],
    }
    return Result(data, _table(claims, missing))


def _tell(
    invocation: Invocation,
    file: TrustFile,
    claims: Sequence[Claim],
    missing: Sequence[Claim],
    *,
    dry_run: bool,
) -> None:
    if not claims:
        invocation.reporter.step("nothing here reaches out of the project")
    elif dry_run:
        invocation.reporter.step(f"not trusted yet: {len(missing)} of {len(claims)}")
    else:
        invocation.reporter.step(f"recorded in {file.path}: {len(missing)}")
        if behind := untrusted_claims(invocation.settings):
            invocation.reporter.warn(f"more lies behind these, run panda trust again: {len(behind)}")


def _table(claims: Sequence[Claim], missing: Sequence[Claim]) -> Table:
    rows = [
        (claim.where(reach), reach.effect, "new" if claim in missing else "trusted")
        for claim in claims
        for reach in claim.reaches
    ]
    return Table(("file", "what it does", "state"), rows)


def _data(claim: Claim, *, trusted: bool) -> dict[str, object]:
    return {
        "path": claim.path,
        "digest": claim.digest,
        "trusted": trusted,
        "reaches": [
            {"key": reach.key or None, "line": reach.line, "effect": reach.effect} for reach in claim.reaches
        ],
    }
