"""
Counts, by syntax tree, the habits that slow readers down: `python -m tests.style` lists where each stands.

    python -m tests.style                       how often each habit occurs
    python -m tests.style "chained ternary"     where it occurs, a line each
    python -m tests.style --write               lower the limits of cases/style.json to what is there
"""

import ast
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIMITS = ROOT / "tests" / "cases" / "style.json"
PLACEHOLDERS = frozenset(["one", "found", "known", "said", "told", "kept", "given", "shown", "made"])
"""Names that do not say what a variable holds."""
USUAL_ALIASES = frozenset({"np", "plt"})
MOST_POSITIONAL = 5

Places = list[str]
"""Each as path:line."""


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.List | ast.Tuple) and not node.elts


def _names(node: ast.expr) -> Counter[str]:
    return Counter(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))


def is_tuple_assignment(node: ast.AST) -> bool:
    """Say whether a statement assigns several values at once and does not exchange what it assigns to."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    target = node.targets[0]
    if not isinstance(target, ast.Tuple) or len(target.elts) != len(node.value.elts):
        return False
    return not set(_names(target)) & set(_names(node.value))


def is_conditional_append(node: ast.AST) -> bool:
    """Say whether a statement adds a list that is empty in one case, as `x += [a] if c else []`."""
    if not isinstance(node, ast.AugAssign) or not isinstance(node.value, ast.IfExp):
        return False
    return _is_empty(node.value.orelse) or _is_empty(node.value.body)


def is_conditional_splat(node: ast.AST) -> bool:
    """Say whether an expression unpacks what is empty in one case, as `*([a] if c else [])`."""
    if not isinstance(node, ast.Starred) or not isinstance(node.value, ast.IfExp):
        return False
    return _is_empty(node.value.orelse) or _is_empty(node.value.body)


def is_loop_over_ternary(node: ast.AST) -> bool:
    """Say whether a loop or a comprehension goes over a conditional expression."""
    return isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.IfExp)


def is_sequence_times_bool(node: ast.AST) -> bool:
    """Say whether a sequence is multiplied by a condition, as `[a] * (b is not None)`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    sides = (node.left, node.right)
    is_sequence = any(
        isinstance(side, ast.List | ast.Tuple | ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )
    return is_sequence and any(_is_condition(side) for side in sides)


def _is_condition(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("bool", "isinstance", "any", "all")
    is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return is_not or isinstance(node, ast.Compare | ast.BoolOp)


def is_chained_ternary(node: ast.AST) -> bool:
    """Say whether a conditional expression has another one as one of its values."""
    return isinstance(node, ast.IfExp) and any(
        isinstance(value, ast.IfExp) for value in (node.body, node.orelse)
    )


def has_many_positional(node: ast.AST) -> bool:
    """Say whether a call has six or more positional arguments."""
    return isinstance(node, ast.Call) and len(node.args) > MOST_POSITIONAL


def is_placeholder(node: ast.AST) -> bool:
    """Say whether a name is bound that does not say what it holds."""
    if isinstance(node, ast.Name):
        return isinstance(node.ctx, ast.Store) and node.id in PLACEHOLDERS
    return isinstance(node, ast.arg) and node.arg in PLACEHOLDERS


def is_alias(node: ast.AST) -> bool:
    """Say whether something imported gets another name."""
    if not isinstance(node, ast.alias) or node.asname is None:
        return False
    return node.asname != node.name and node.asname not in USUAL_ALIASES


_OPENINGS = ("What ", "The same", "It ", "How ", "Whether ", "That ", "Where ")


def has_vague_docstring(node: ast.AST) -> bool:
    """Say whether a function's docstring begins with a question or a pronoun in place of a verb."""
    if not isinstance(node, ast.FunctionDef):
        return False
    return (ast.get_docstring(node) or "").startswith(_OPENINGS)


HABITS: Mapping[str, Callable[[ast.AST], bool]] = {
    "tuple assignment of unrelated values": is_tuple_assignment,
    "conditional append": is_conditional_append,
    "conditional splat": is_conditional_splat,
    "loop over a ternary": is_loop_over_ternary,
    "sequence times a condition": is_sequence_times_bool,
    "chained ternary": is_chained_ternary,
    "six or more positional arguments": has_many_positional,
    "placeholder name": is_placeholder,
    "alias": is_alias,
    "vague docstring": has_vague_docstring,
}
_NEVER_THE_SAME = ("module name used again", "class name used again", "parameter with several types")


def python_files(directory: str) -> Iterator[Path]:
    """Yield the Python files of a directory of the project, by name."""
    yield from sorted((ROOT / directory).rglob("*.py"))


def find_habits(directory: str) -> dict[str, Places]:
    """Return where each habit occurs in a directory of the project."""
    places: dict[str, Places] = {name: [] for name in (*HABITS, *_NEVER_THE_SAME)}
    modules: dict[str, Places] = defaultdict(list)
    classes: dict[str, Places] = defaultdict(list)
    types: dict[str, dict[str, str]] = defaultdict(dict)
    for path in python_files(directory):
        name = str(path.relative_to(ROOT))
        modules[path.stem].append(f"{name}:1")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{name}:{getattr(node, 'lineno', 0)}"
            for habit, has_habit in HABITS.items():
                if has_habit(node):
                    places[habit].append(place)
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(place)
            elif isinstance(node, ast.arg) and node.annotation is not None:
                types[node.arg].setdefault(_bare_type(node.annotation), place)
    for name, where in modules.items():
        if len(where) > 1 and not name.startswith("__") and name != "conftest":
            places["module name used again"] += where[1:]
    for where in classes.values():
        places["class name used again"] += where[1:]
    for by_type in types.values():
        if len(by_type) > _MOST_TYPES and directory == "panda":
            places["parameter with several types"] += list(by_type.values())[_MOST_TYPES:]
    return places


_MOST_TYPES = 2


def _bare_type(annotation: ast.expr) -> str:
    """Return an annotation without `| None`, by which two parameters of one name are compared."""
    return ast.unparse(annotation).strip("'\"").removesuffix(" | None")


def count_habits() -> dict[str, dict[str, int]]:
    """Return how often each habit occurs in the program and in its tests."""
    return {
        directory: {habit: len(places) for habit, places in find_habits(directory).items()}
        for directory in ("panda", "tests")
    }


def main(words: list[str]) -> None:
    """List the habits, or the places of one, or lower the limits."""
    counts = count_habits()
    if words == ["--write"]:
        limits = json.loads(LIMITS.read_text(encoding="utf-8"))
        for directory, by_habit in counts.items():
            for habit, count in by_habit.items():
                by_habit[habit] = min(count, limits[directory].get(habit, count))
        LIMITS.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    elif words:
        for directory in counts:
            sys.stdout.writelines(f"{place}\n" for place in find_habits(directory)[words[0]])
    else:
        for directory, by_habit in counts.items():
            for habit, count in by_habit.items():
                sys.stdout.write(f"{directory:6}{count:6}  {habit}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
