"""Build the site: ``python -m tools.site`` into ``output/site``, offline, warnings as errors (``nox -s docs``).

Its pages are looked at afterwards (`tools.pages`). ``--quick`` leaves the guides unrun, for who is writing a page.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tools import pages

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Sphinx's exit code, or 1 if a page lacks what `tools.pages` asks of it."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description="Build the site.")
    parser.add_argument("--quick", action="store_true", help="do not run the guides")
    parser.add_argument("--out", type=Path, default=ROOT / "output" / "site", help="where to (output/site)")
    args = parser.parse_args()
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-E", "-W", "--keep-going", "-q", "docs", str(args.out)]
    quiet = os.environ | {"GAUSSFOLD_QUIET": "1", "MPLBACKEND": "agg"}
    if args.quick:
        quiet["GAUSSFOLD_SITE_QUICK"] = "1"  # docs/conf.py looks at it
    code = subprocess.run(command, cwd=ROOT, env=quiet, check=False).returncode
    if code:
        return code
    found = list(pages.faults(args.out.resolve()))
    print(*found, args.out / "index.html", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
