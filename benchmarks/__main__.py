"""``python -m benchmarks NAME``: measure, print a table of ratios, write JSON."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from benchmarks.registry import BENCHMARKS


def main() -> None:
    """Run the benchmarks that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(BENCHMARKS)}")
    parser.add_argument("--list", action="store_true", help="say what there is and stop")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run, not how fast")
    parser.add_argument("--out", type=Path, default=Path("output/benchmarks"), help="folder for the JSON files")
    args = parser.parse_args()
    if args.list or not args.names:
        for name, (_, title) in BENCHMARKS.items():
            print(f"{name:20s} {title}")
        return
    for name in args.names:
        if name not in BENCHMARKS:
            parser.error(f"unknown benchmark {name!r}: choose from {', '.join(BENCHMARKS)}")
        report = importlib.import_module(BENCHMARKS[name][0]).run(quick=args.quick)
        print(f"\n## {report.title}\n\n{report.table()}")
        path = args.out / f"{name}.json"
        report.write(path)
        print(f"\nwritten to {path}")


if __name__ == "__main__":
    main()
