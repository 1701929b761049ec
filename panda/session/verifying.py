"""Whether session.json says what the files of its turns say."""

from collections.abc import Iterator

from panda.documents.problems import Problem
from panda.errors import PandaError
from panda.session.decoding import encode
from panda.session.session_file import Session, fold_turns, load_session, saved_turns
from panda.storage.layout import Layout

_SHOWN_CHARS = 120


def verify_session(layout: Layout, user: str, session: str) -> list[Problem]:
    """
    What differs between a session's file and its turns.

    Args:
        layout: The store; nothing is written.
        user: User id.
        session: Session id.

    Returns:
        One problem for each field that differs, and for each saved turn that the file does not know; [] if
        all is well, also where there is no file yet.
    """
    path = str(layout.session(user, session))
    try:
        found = load_session(layout, user, session, sealed=False)
    except PandaError as exc:
        return [Problem(path, exc.message, fix=exc.fix)]
    if found is None:
        return []
    listed = [entry.turn for entry in found.turns]
    saved = saved_turns(layout, user).get(session, [])
    unlisted = [number for number in saved if number < min(listed)] if found.turns_cut else []
    lost = sorted(set(saved) - set(listed) - set(unlisted))
    problems = [
        Problem(path, f"turn {number} is saved but not in the session", key="turns", fix=_FIX)
        for number in lost
    ]
    if len(unlisted) != found.turns_cut:
        problems.append(Problem(path, f"{len(unlisted)} older turns, not {found.turns_cut}", key="turns_cut"))
    try:
        again = fold_turns(layout, user, session, [*unlisted, *listed])
    except PandaError as exc:
        return [*problems, Problem(exc.where or path, exc.message, fix=exc.fix)]
    problems += _differences(path, found, again)
    return problems or _broken_seal(layout, user, session)


def _broken_seal(layout: Layout, user: str, session: str) -> list[Problem]:
    """What is wrong with a file that says what its turns say, and yet was altered."""
    try:
        load_session(layout, user, session)
    except PandaError as exc:
        return [Problem(exc.where or "", exc.message, fix=exc.fix)]
    return []


_FIX = "delete session.json: it is made again from the turns"


def _differences(path: str, found: Session, again: Session | None) -> Iterator[Problem]:
    if again is None:
        yield Problem(path, "it has no turns", key="turns")
        return
    before, after = encode(found), encode(again)
    pairs = [(name, before[name], after[name]) for name in before if name != "carry"]
    pairs += [(f"carry.{name}", value, after["carry"][name]) for name, value in before["carry"].items()]
    for key, said, made in pairs:
        if said != made:
            place, was, now = _first_difference(key, said, made)
            message = f"holds {was!r:.{_SHOWN_CHARS}}, the turns say {now!r:.{_SHOWN_CHARS}}"
            yield Problem(path, message, key=place, fix=_FIX)


def _first_difference(key: str, said: object, made: object) -> tuple[str, object, object]:
    """The innermost place at which two values differ first."""
    if isinstance(said, dict) and isinstance(made, dict):
        for name in said:
            if said[name] != made.get(name):
                return _first_difference(f"{key}.{name}", said[name], made.get(name))
    if isinstance(said, list) and isinstance(made, list) and len(said) == len(made):
        for at, (one, other) in enumerate(zip(said, made, strict=True)):
            if one != other:
                return _first_difference(f"{key}[{at}]", one, other)
    return key, said, made
