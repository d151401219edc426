"""The house in numbers: how large the rooms are, and where someone reaches through a wall.

``python -m tools.house`` prints the table, ``--where NAME`` the places that one row counts, and ``--limits`` fails when
a number is above its limit, as the tests do. They are places to look, not verdicts: a number may rise for a good
reason, and then its limit is raised in the same commit, which says why.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "gaussfold"

COMPLEX = 10
PARAMETERS = 10

# What today's numbers may not pass. Whoever brings one down brings its limit down with it.
LIMITS: dict[str, float] = {
    "largest": 374,
    "codes": 5,
    "switches": 82,
    "foreign": 1,
    "imports": 0,
    "any_per_thousand": 5.0,
    "asked": 10,
    "complex": 24,
    "worst_complexity": 27,
    "parameters": 27,
    "most_parameters": 22,
    "flat": 8,
    "noqa": 32,
    "ignore": 28,
    "unexplained": 11,
}

DOCUMENTED = {"_replace", "_exit"}
"""Public in spite of their underscore: of a named tuple, and of ``os``."""


class Module(NamedTuple):
    """One file of the package, read once for all measures."""

    path: Path
    lines: list[str]
    nodes: list[ast.AST]


class Place(NamedTuple):
    """What was found on which line of a file, and how much of it."""

    line: int
    what: str
    size: float = 1


Finder = Callable[[Module], Iterator[Place]]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def read(package: Path = PACKAGE) -> list[Module]:
    """All Python files below ``package``, in the order of their names."""
    modules = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        modules.append(Module(path, text.splitlines(), list(ast.walk(ast.parse(text, str(path))))))
    return modules


# Each finder yields the places that one row of the table counts.


def _in_text(pattern: str) -> Finder:
    """Every match of ``pattern``, comments and docstrings included: what a reader meets counts."""
    compiled = re.compile(pattern)

    def find(module: Module) -> Iterator[Place]:
        for number, line in enumerate(module.lines, 1):
            for _ in compiled.finditer(line):
                yield Place(number, line.strip())

    return find


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_code(name: str) -> bool:
    return name in {"code", "codes"} or name.endswith("_code")


def _equalities(module: Module) -> Iterator[tuple[ast.Compare, list[str]]]:
    """Every ``==``, ``!=``, ``in`` and ``not in``, with the names on its sides."""
    for node in module.nodes:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
            yield node, [name for name in map(_name, [node.left, *node.comparators]) if name]


def branches_on_codes(module: Module) -> Iterator[Place]:
    """Something called a code, compared with anything: a number that stands for a thing."""
    for node, names in _equalities(module):
        if any(map(_is_code, names)):
            yield Place(node.lineno, ast.unparse(node))


def switches(module: Module) -> Iterator[Place]:
    """Other names compared with upper-case constants (``kind == NUMBER``); single letters are bytes of text."""
    for node, names in _equalities(module):
        others = [name for name in names if len(name) > 1 and not name.isupper()]
        if others and any(name.isupper() for name in names) and not any(map(_is_code, names)):
            yield Place(node.lineno, ast.unparse(node))


def foreign_private(module: Module) -> Iterator[Place]:
    """Attributes with an underscore, of anything but ``self`` and ``cls``; `DOCUMENTED` ones are no secrets."""
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and node.attr not in DOCUMENTED:
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if owner not in {"self", "cls"}:
                yield Place(node.lineno, ast.unparse(node))


def private_imports(module: Module) -> Iterator[Place]:
    """Names with an underscore, taken from another file (a module's own name may have one)."""
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom):
            for alias in filter(lambda a: _is_private(a.name), node.names):
                yield Place(node.lineno, f"from {node.module} import {alias.name}")


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def functions(module: Module) -> Iterator[Function]:
    """All functions and methods, nested ones too."""
    return (node for node in module.nodes if isinstance(node, Function))


_FORKS = (
    ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.BoolOp, ast.match_case,
)  # fmt: skip


def complexity(function: Function) -> int:
    """One plus the places where the path forks: a chain of ``and``/``or`` counts once."""
    return 1 + sum(isinstance(node, _FORKS) for node in ast.walk(function))


def parameters(function: Function) -> int:
    """How many arguments a caller may pass, ``self`` and ``cls`` not among them."""
    a = function.args
    named = [arg.arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return sum(name not in {"self", "cls"} for name in named) + (a.vararg is not None) + (a.kwarg is not None)


def _functions_over(size: Callable[[Function], int], limit: int) -> Finder:
    def find(module: Module) -> Iterator[Place]:
        for function in functions(module):
            found = size(function)
            if found > limit:
                yield Place(function.lineno, function.name, found)

    return find


_SUPPRESSED = re.compile(r"#\s*(?:noqa(?::\s*[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*)?|type:\s*ignore(?:\[[^\]]*\])?)(.*)$")


def without_reason(module: Module) -> Iterator[Place]:
    """A ``noqa`` or ``type: ignore`` after which the line says nothing more."""
    for number, line in enumerate(module.lines, 1):
        match = _SUPPRESSED.search(line)
        if match and not match[1].strip(" -#"):
            yield Place(number, line.strip())


def flat_engine(module: Module) -> Iterator[Place]:
    """Files that lie in ``engine/`` itself, not in one of its folders."""
    if module.path.parent.name == "engine":
        yield Place(1, module.path.name)


FINDERS: dict[str, tuple[str, Finder]] = {
    "codes": ("branches on integer codes", branches_on_codes),
    "switches": ("branches on other constants", switches),
    "foreign": ("private attributes of others", foreign_private),
    "imports": ("private names imported", private_imports),
    "any": ("Any", _in_text(r"\bAny\b")),
    "asked": ("hasattr and getattr", _in_text(r"\b(?:hasattr|getattr)\(")),
    "complex": (f"functions over complexity {COMPLEX}", _functions_over(complexity, COMPLEX)),
    "parameters": (f"functions over {PARAMETERS} parameters", _functions_over(parameters, PARAMETERS)),
    "flat": ("files directly in engine/", flat_engine),
    "noqa": ("noqa", _in_text(r"#\s*noqa\b")),
    "ignore": ("type: ignore", _in_text(r"#\s*type:\s*ignore\b")),
    "unexplained": ("noqa and type: ignore without a reason", without_reason),
}


def places(modules: list[Module], name: str) -> list[tuple[Module, Place]]:
    """Everything that the finder called ``name`` finds, file by file."""
    finder = FINDERS[name][1]
    return [(module, place) for module in modules for place in sorted(finder(module))]


def measure(modules: list[Module]) -> dict[str, float]:
    """Every number of the table, by the names that :data:`LIMITS` uses."""
    sizes = [len(module.lines) for module in modules]
    found = {name: [place for _, place in places(modules, name)] for name in FINDERS}
    return {
        "files": len(sizes),
        "lines": sum(sizes),
        "median": median(sizes),
        "largest": max(sizes),
        **{name: len(them) for name, them in found.items()},
        "any_per_thousand": round(1000 * len(found["any"]) / sum(sizes), 1),
        "worst_complexity": max((place.size for place in found["complex"]), default=COMPLEX),
        "most_parameters": max((place.size for place in found["parameters"]), default=PARAMETERS),
    }


TITLES = {
    "files": "Python files",
    "lines": "lines",
    "median": "lines of the median file",
    "largest": "lines of the largest file",
    **{name: title for name, (title, _) in FINDERS.items()},
    "any_per_thousand": "Any per thousand lines",
    "worst_complexity": "complexity of the worst function",
    "most_parameters": "parameters of the longest signature",
}


def above(numbers: dict[str, float], limits: dict[str, float]) -> list[str]:
    """One sentence for each number above its limit, with the way to see why."""
    return [
        f"{TITLES[name]}: {numbers[name]:g}, allowed are {limit:g}"
        + (f" (python -m tools.house --where {name})" if name in FINDERS else "")
        for name, limit in limits.items()
        if numbers[name] > limit
    ]


def table(numbers: dict[str, float]) -> str:
    """The numbers as a Markdown table, their limits beside them."""
    rows = [f"| {TITLES[name]} (`{name}`) | {n:g} | {LIMITS.get(name, '')} |" for name, n in numbers.items()]
    return "\n".join(["| | now | limit |", "|---|---|---|", *rows])


def main() -> int:
    """Print what the arguments ask for; 1 if a limit is asked about and passed."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description="The house in numbers.")
    parser.add_argument("--where", choices=FINDERS, help="list the places that a row counts instead")
    parser.add_argument("--limits", action="store_true", help="fail if a number is above its limit")
    parser.add_argument("--package", type=Path, default=PACKAGE, help="the folder to measure")
    args = parser.parse_args()
    modules = read(args.package)
    if args.where:
        for module, place in places(modules, args.where):
            print(f"{module.path}:{place.line}: {place.what}" + (f" ({place.size:g})" if place.size > 1 else ""))
        return 0
    numbers = measure(modules)
    print(table(numbers))
    trespasses = above(numbers, LIMITS) if args.limits else []
    print(*trespasses, sep="\n", file=sys.stderr, end="\n" if trespasses else "")
    return bool(trespasses)


if __name__ == "__main__":
    sys.exit(main())
