"""What users get: sdist and wheel, installed away from the sources, with the lowest versions, without a place to write.

``python -m tools.installed`` builds both, and then

- *wheel*: installs the wheel with the newest versions of everything, fits, runs the commands, fills the cache;
- *read-only*: takes the right to write away from that installation and runs as a user without a home, first with what
  was compiled into it, then without: in memory, with one warning;
- *lowest*: installs the sdist with exactly the lower bounds that ``pyproject.toml`` declares, and does the same.

It needs a package registry and fails without one. The gate runs it; it takes two to three minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOBODY = 65534
OLDEST = {"numpy": "1.26", "scipy": "1.13", "numba": "0.61", "scikit-learn": "1.6"}
"""What has been promised; the rest of the lower bounds are our own business."""

FIT = """
import sys, warnings, numpy as np, gaussfold as gf
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", RuntimeWarning)
    X = np.random.default_rng(3).standard_normal((50, 3))
    y = X @ [0.5, -1.0, 2.0] + 0.1
    belief = gf.DenseGaussian.isotropic(3, 1.7)
    gf.fold(belief, gf.likelihoods.Gaussian(0.7), X, y)
    exact = np.linalg.solve(np.eye(3) / 1.7**2 + X.T @ X / 0.7**2, X.T @ y / 0.7**2)
    assert np.allclose(belief.mean, exact, rtol=1e-10), (belief.mean, exact)
from gaussfold.engine.compilation import waiting
ours = [str(w.message) for w in caught if "NUMBA_CACHE_DIR" in str(w.message)]
print(gf.__version__, gf.__file__, waiting.count(), len(ours), sep="|")
"""


def lowest() -> list[str]:
    """Return the declared lower bounds of the dependencies, as requirements that allow nothing else."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = dict(re.fullmatch(r"([\w-]+)>=([\d.]+)", text).groups() for text in project["dependencies"])  # type: ignore[union-attr, misc]  # None fails here, as it should
    wrong = {name: bounds.get(name) for name, version in OLDEST.items() if bounds.get(name) != version}
    if wrong:
        msg = f"pyproject.toml declares {wrong}, the promise is {OLDEST}"
        raise SystemExit(msg)
    return [f"{name}=={version}" for name, version in bounds.items()]


class Environment:
    """A virtual environment of its own, in which nothing of this clone is to be seen."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        self._run([python, "-m", "venv", str(folder)])
        self.python = folder / "bin" / "python"
        self.command = folder / "bin" / "gaussfold"

    def install(self, *what: str) -> None:
        """Install with pip; without a registry this fails."""
        self._run([str(self.python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *what])

    def fit(self, nobody: bool = False, **variables: str) -> tuple[int, int]:
        """Fit a small model; returns how many functions were compiled and how often it was warned."""
        said = self._run([str(self.python), "-c", FIT], nobody, **variables).strip().split("|")
        if not Path(said[1]).is_relative_to(self.folder):
            msg = f"{said[1]} was imported, not what is in {self.folder}"
            raise SystemExit(msg)
        return int(said[2]), int(said[3])

    def demo(self) -> None:
        """Run commands as a user does, and look at the numbers."""
        self._run([str(self.command), "--version"])
        told = json.loads(self._run([str(self.command), "demo", "-n", "5000", "--json", "--quiet"]).splitlines()[-1])
        if not told["average_loss"] < told["constant_loss"]:
            msg = f"the demo learned nothing: {told}"
            raise SystemExit(msg)

    def compile(self, kinds: str) -> None:
        """Fill the cache of the installation."""
        self._run([str(self.command), "compile", "--for", kinds])

    def package(self) -> Path:
        """Where the package is."""
        return next(self.folder.glob("lib*/python*/site-packages/gaussfold"))

    def _run(self, command: list[str], nobody: bool = False, **variables: str) -> str:
        if nobody and os.geteuid() == 0:
            command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
        outside = ("PYTHONPATH", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
        environment = {name: value for name, value in os.environ.items() if name not in outside} | variables
        done = subprocess.run(
            command, cwd="/", env=environment, text=True, check=False, timeout=1200,
            stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
        if done.returncode:
            msg = f"{' '.join(command)[:300]} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            raise SystemExit(msg)
        return done.stdout


def check_wheel(scratch: Path, wheel: Path) -> None:
    """Install and run the wheel, then again where nothing can be written."""
    there = Environment(scratch / "newest", sys.executable)
    there.install(str(wheel))
    package = there.package()
    _lock(package)
    _expect("read-only, nothing kept", there.fit(nobody=True, HOME="/nonexistent"), compiles=True, warnings=1)
    _lock(package, writable=True)
    _expect("wheel, first fit", there.fit(HOME="/nonexistent"), compiles=True, warnings=0)
    there.demo()
    _lock(package)
    _expect("read-only, compiled before", there.fit(nobody=True, HOME="/nonexistent"), compiles=False, warnings=0)
    _lock(package, writable=True)


def check_lowest(scratch: Path, sdist: Path) -> None:
    """Install and run the sdist with the lowest versions that are allowed."""
    there = Environment(scratch / "lowest", _old_python())
    there.install(str(sdist), *lowest())
    there.compile("gp")
    _expect("lowest versions, first fit", there.fit(HOME="/nonexistent"), compiles=True, warnings=0)
    there.demo()


def _expect(what: str, found: tuple[int, int], *, compiles: bool, warnings: int) -> None:
    if (found[0] > 0, found[1]) != (compiles, warnings):
        msg = f"{what}: {found[0]} functions compiled and {found[1]} warnings; expected {compiles} and {warnings}"
        raise SystemExit(msg)
    print(f"  {what}: as it should be ({found[0]} functions compiled, {found[1]} warnings)", flush=True)


def _lock(package: Path, writable: bool = False) -> None:
    for path in (package, *package.rglob("*")):
        mode = 0o755 if path.is_dir() else 0o644
        path.chmod(mode if writable else mode & ~0o222)


def _old_python() -> str:
    """The lowest versions have no wheels for Python 3.13."""
    running = [int(number) for number in platform.python_version_tuple()[:2]]
    if running < [3, 13]:
        return sys.executable
    found = shutil.which("python3.11") or shutil.which("python3.12")
    if found is None:
        msg = "the lowest versions need Python 3.11 or 3.12; neither is on the path"
        raise SystemExit(msg)
    return found


def main() -> int:
    """Build, install, run."""
    parser = argparse.ArgumentParser(prog="python -m tools.installed", description="Try what users install.")
    parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        scratch.chmod(0o755)  # for a user who is nobody
        builder = Environment(scratch / "builder", sys.executable)
        builder.install("build")
        print("+ sdist, and the wheel from it", flush=True)
        subprocess.run(
            [str(builder.python), "-m", "build", "-o", str(scratch / "dist"), str(ROOT)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        (wheel,) = (scratch / "dist").glob("*.whl")
        (sdist,) = (scratch / "dist").glob("*.tar.gz")
        print(f"+ {wheel.name}, newest versions", flush=True)
        check_wheel(scratch, wheel)
        print(f"+ {sdist.name}, {', '.join(lowest())}", flush=True)
        check_lowest(scratch, sdist)
    return 0


if __name__ == "__main__":
    sys.exit(main())
