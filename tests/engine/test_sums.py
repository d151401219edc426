"""A sum does not depend on where its arrays lie in memory: the sources are read for it, and places are tried."""

import ast
import random
from pathlib import Path

import numpy as np

from gaussfold import engine
from gaussfold.engine.lowrank.row import look_row

LOOPS = ast.For | ast.While


def writing_sums(source: str) -> list[str]:
    """Innermost loops of functions whose sums may be reordered that add up and write to an array as well."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        if not any(isinstance(name, ast.Name) and name.id == "compiled_reduction" for name in function.decorator_list):
            continue
        for loop in ast.walk(function):
            inside = [node for line in loop.body for node in ast.walk(line)] if isinstance(loop, LOOPS) else []
            if any(isinstance(node, LOOPS) for node in inside):
                continue
            writes = any(isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) for node in inside)
            sums = any(isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) for node in inside)
            if writes and sums:
                found.append(f"{function.name}, line {loop.lineno}")
    return found


def test_no_loop_adds_up_and_writes():
    """The vectoriser would choose the order of the sum by where the allocator puts the arrays."""
    careless = {path.name: writing_sums(path.read_text()) for path in Path(engine.__file__).parent.rglob("*.py")}
    assert not {name: found for name, found in careless.items() if found}
    bad = "@compiled_reduction\ndef f(x, y):\n    s = 0.0\n    for i in x:\n        y[i] = x[i]\n        s += x[i]\n"
    assert writing_sums(bad) == ["f, line 4"]


def test_a_row_is_seen_alike_wherever_it_lies():
    rng, draw = np.random.default_rng(0), random.Random(1)
    arrays = rng.normal(size=(200, 10)), rng.random(200) + 0.5, rng.normal(size=200), rng.normal(size=200)

    def moved(array):
        """The same numbers somewhere else."""
        room, start = np.empty(array.size + 16), draw.randrange(9)
        place = room[start : start + array.size].reshape(array.shape)
        place[...] = array
        return place

    seen, rest = set(), []
    for _ in range(4000):
        rest.append(np.empty(draw.randrange(2, 800)))
        if len(rest) > 50:
            rest.pop(draw.randrange(50))
        reach = np.empty(10)
        seen.add((*look_row(*map(moved, arrays), reach), reach.tobytes()))
    assert len(seen) == 1
