"""The linters, listed once: the gate, the pre-commit hook and nox all run this file.

``python -m tools.lint`` runs them all, ``python -m tools.lint types imports`` only those, ``--fix`` lets ruff mend what
it can. Every one runs even if one before it fails, so that one commit can answer them all.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

LINTERS = {
    "lint": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
    "imports": ["lint-imports", "--no-cache"],
}
FIXES = {
    "lint": ["ruff", "check", "--fix", "."],
    "format": ["ruff", "format", "."],
}


def tool(name: str) -> str:
    """Where a linter is: beside this Python, in the clone's .venv, or on the path.

    A hook is started by git, mostly outside the environment that it was installed from.
    """
    for folder in (Path(sys.executable).parent, ROOT / ".venv" / "bin", ROOT / ".venv" / "Scripts", None):
        found = shutil.which(name, path=folder and str(folder))
        if found:
            return found
    msg = f"{name} is neither beside {sys.executable} nor in .venv nor on the path: pip install -e '.[dev]'"
    raise SystemExit(msg)


def main() -> int:
    """Run the linters that the arguments name; 1 if one of them complains."""
    parser = argparse.ArgumentParser(prog="python -m tools.lint", description="Run the linters.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"which: {', '.join(LINTERS)} (all)")
    parser.add_argument("--fix", action="store_true", help="mend what can be mended")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in LINTERS]
    if unknown:
        parser.error(f"unknown linter {unknown[0]!r}: choose from {', '.join(LINTERS)}")
    commands = {**LINTERS, **FIXES} if args.fix else LINTERS
    failed = []
    for name in args.names or LINTERS:
        program, *arguments = commands[name]
        print("+", program, *arguments, flush=True)
        if subprocess.run([tool(program), *arguments], cwd=ROOT, check=False).returncode:
            failed.append(name)
    if failed:
        print("not clean:", *failed, file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
