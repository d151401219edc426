"""No pointer outlives its array: the sources are read for it, and rows of any length, threads and forks are tried."""

import ast
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import gaussfold as gf
from gaussfold import engine

ENGINE = Path(engine.__file__).parent


def _root(node: ast.expr) -> str | None:
    """The variable that ``a``, ``a.b`` or ``a[0]`` is a part of."""
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _names(target: ast.expr) -> list[str]:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _held(function: ast.FunctionDef) -> set[str]:
    """Names that mean an argument, or a part of one, wherever they stand in a function."""
    held = {argument.arg for argument in function.args.args}
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        names = {name for target in node.targets for name in _names(target)}
        held = held | names if all(_root(part) in held for part in parts) else held - names
    return held


def careless_pointers(source: str) -> list[str]:
    """Functions that make a pointer of something else than an argument, and of what."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and _root(node.func) == "pointer"]
        held = _held(function)
        found += [f"{function.name}: {ast.unparse(call)}" for call in calls if _root(call.args[0]) not in held]
    return found


def test_pointers_are_made_of_arguments_alone():
    """What only the function itself holds is freed after its last visible use, and a pointer is no such use."""
    sources = {path: path.read_text() for path in ENGINE.rglob("*.py")}
    assert sum(source.count("pointer(") for source in sources.values()) > 30
    careless = {path.name: careless_pointers(source) for path, source in sources.items()}
    assert {name: found for name, found in careless.items() if found} == {}


@pytest.mark.parametrize(
    "body",
    ["a = np.empty(3)\n p = pointer(a)", "p = pointer(x.ravel())", "x = x + 1\n p = pointer(x)", "p = pointer(x[1:])"],
)
def test_a_careless_pointer_is_seen(body):
    assert len(careless_pointers(f"def f(x):\n {body}\n return p[0]")) == 1
    assert not careless_pointers("def f(x, y):\n a, b = x\n p = pointer(a)\n q = pointer(y.data)\n return p[0]")


def test_no_other_way_to_an_address():
    """Addresses are made in one file, and no array is asked for its own."""
    for path in ENGINE.parent.rglob("*.py"):
        source = path.read_text()
        for word in (".ctypes", "carray(", "farray(", "data_as(", "__array_interface__", "address_of"):
            assert word not in source, (path.name, word)
        if path.name != "pointers.py":
            assert "CPointer" not in source, path.name


def run(*how: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, with these settings in its environment."""
    environment = os.environ | {"GAUSSFOLD_QUIET": "1"} | settings
    return subprocess.run([sys.executable, *how], capture_output=True, text=True, env=environment, timeout=600)


def test_sanitising_mode_finds_what_leaves_its_memory():
    """Every kind of access one element too far, and a pointer into an array that the function will free."""
    done = run("-m", "tests.engine.violations", GAUSSFOLD_SANITISE="1")
    assert done.returncode == 0, done.stderr
    own, *pairs = done.stdout.splitlines()
    assert own.startswith("SanitiserError __main__.own_array: a pointer into an array of the function's own")
    assert len(pairs) == 12
    for pair in pairs:
        inside, outside = pair.split(" | ")
        assert inside == "fine", pair
        assert outside.startswith("SanitiserError __main__."), pair


@pytest.mark.parametrize("make", [gf.DiagonalGaussian.isotropic, gf.DiagonalMixture.isotropic])
@pytest.mark.parametrize("length", [4_093, 50_000, 1_000_000])
def test_a_long_row_among_short_ones(make, length):
    """As one chunk, and row by row."""
    ends = np.cumsum([0, 1, length, 3, length // 2, 1])
    places = np.concatenate([np.arange(stop - start) for start, stop in pairwise(ends)])
    x = 0.7 + 0.01 * (np.arange(ends[-1]) % 7)
    rows = csr_array((x, places, ends), shape=(5, length))
    y = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    whole, single = make(length), make(length)
    told = gf.fold(whole, gf.likelihoods.Bernoulli("logit"), rows, y, rule="newton").log_predictive
    apart = [gf.fold(single, gf.likelihoods.Bernoulli("logit"), rows[[i]], y[[i]], rule="newton") for i in range(5)]
    np.testing.assert_array_equal(told, [trace.log_predictive[0] for trace in apart])
    assert np.isfinite(told).all()
    for name, array in whole.state().items():
        np.testing.assert_array_equal(array, single.state()[name], err_msg=name)


def _stream(seed: int) -> np.ndarray:
    """What a model of its own predicts and believes after a few hundred rows of odd lengths."""
    rng = np.random.default_rng(seed)
    lengths = np.r_[rng.integers(0, 40, 200), 3_000, 1, rng.integers(0, 40, 200)]
    dim = 5_000
    places = np.concatenate([np.sort(rng.choice(dim, n, replace=False)) for n in lengths])
    rows = csr_array((rng.normal(size=places.size), places, np.r_[0, np.cumsum(lengths)]), shape=(lengths.size, dim))
    belief = (gf.DiagonalMixture if seed % 2 else gf.DiagonalGaussian).isotropic(dim)
    y = (rng.random(lengths.size) < 0.4).astype(float)
    weight = rng.uniform(0.5, 2.5, y.size)
    told = gf.fold(belief, gf.likelihoods.Bernoulli("logit"), rows, y, rule="newton", sample_weight=weight)
    return np.concatenate([told.log_predictive, *(np.ravel(array) for array in belief.state().values())])


def test_six_threads_fold_six_models():
    """Loops run without the interpreter's lock: each has working memory of its own."""
    alone = [_stream(seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(3):
            for one, other in zip(alone, pool.map(_stream, range(6)), strict=True):
                np.testing.assert_array_equal(one, other)


FORK = """
import os
import numpy as np
from tests.engine.test_pointers import _stream

before = [_stream(seed) for seed in range(2)]
for _ in range(3):
    child = os.fork()
    if child == 0:
        same = all(np.array_equal(_stream(seed), before[seed], equal_nan=True) for seed in range(2))
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
assert np.array_equal(_stream(1), before[1], equal_nan=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
def test_fork_after_use():
    """A child of a process that has used the engine goes on with it, as the parent does."""
    done = run("-c", FORK)
    assert done.returncode == 0, done.stderr
