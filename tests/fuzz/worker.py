"""A process that runs some cases and says which one it is at: what it dies of is then that case's doing."""

from __future__ import annotations

import resource
import sys
import traceback

from tests.fuzz import cases


def main(name: str, first: int, count: int) -> int:
    """Print ``at n`` before case n, ``failed n`` and why after one that fails, the peak of memory at the end."""
    for number in range(first, first + count):
        print("at", number, flush=True)
        try:
            cases.run(name, number)
        except Exception:  # anything a case lets out is a failure of the code under test, and is reported as one
            reason = traceback.format_exc(limit=-3).strip().replace("\n", "\\n")
            print("failed", number, reason, flush=True)
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
