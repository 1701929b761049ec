"""`panda init`."""

from typing import Annotated

import typer

from panda.cli.contract import Invocation, Result
from panda.storage.assets import asset
from panda.storage.creation import create_store
from panda.storage.demo import copy_demo
from panda.storage.temporaries import begin_writing
from panda.trust import require_trust


def init(
    invocation: Invocation,
    demo: Annotated[bool, typer.Option("--demo", help="Add the user demo and its turns.")] = False,
) -> Result:
    """
    Create a store.

    The store is the directory --root, else ./panda-system-docs. One that is there already is left as it is.

    Example: panda init --demo
    """
    settings = invocation.settings
    require_trust(settings, "root")
    created = create_store(settings.root)
    begin_writing(settings.root)
    if demo:
        copy_demo(asset("panda-system-docs"), settings.root, settings.clock())
    invocation.reporter.step(f"{'created' if created else 'already there'}: {settings.root}")
    data = {"root": str(settings.root), "created": created, "user": "demo" if demo else settings.user}
    return Result(data)
