"""Ctrl-C in the first moments: no traceback, whatever is being imported at that time."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.helpers import ENVIRONMENT

MARK = """
import sys, os
class Watch:
    "Tells when the command has begun: before that, it is the interpreter that is interrupted."
    def find_spec(self, name, path=None, target=None):
        if name == "gaussfold.cli.interrupts":
            os.write(1, b"!")
        return None
sys.meta_path.insert(0, Watch())
sys.argv = ["gaussfold", "demo", "-n", "1000", "--quiet"]
from gaussfold.cli import command
command()
"""


def _start(code=MARK):
    child = subprocess.Popen(
        [sys.executable, "-c", code], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert os.read(child.stdout.fileno(), 1) == b"!"
    return child


@pytest.mark.parametrize("milliseconds", [*range(2, 30, 4), *range(30, 400, 25)])
def test_an_interrupted_start_is_one_line(milliseconds):
    with _start() as child:
        time.sleep(milliseconds / 1000)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=120)
    assert b"Traceback" not in err, err.decode()
    assert b"Exception ignored" not in err
    assert len(err.splitlines()) <= 1
    assert child.returncode in (0, 130)  # 0: it was done before


def test_an_interrupt_during_the_imports_has_its_exit_code():
    # the signal may come late: an import waits for it; and these tests may run in the background, where it is ignored
    slow = 'if name == "numpy":\n            import time; time.sleep(60)\n        return None'
    heard = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    with _start(heard + MARK.replace("return None", slow)) as child:
        time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=50)
    assert child.returncode == 130
    assert err in (b"", b"gaussfold: interrupted\n")


def test_a_parent_that_ignores_interrupts_is_obeyed():
    """As a shell does for jobs in the background."""
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN);" + MARK.replace("demo", "--version")
    code = code.replace(', "-n", "1000", "--quiet"', "")
    with subprocess.Popen([sys.executable, "-c", code], env=ENVIRONMENT, stdout=subprocess.PIPE) as child:
        os.read(child.stdout.fileno(), 1)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=120)
    assert child.returncode == 0
    assert out.startswith(b"gaussfold ")


def test_the_way_to_the_handler_imports_next_to_nothing():
    """What is imported before `command` runs is the time in which an interrupt still shows a traceback."""
    code = "import sys; old = {*sys.modules}; from gaussfold.cli import command; print(sorted({*sys.modules} - old))"
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout == "['__future__', 'gaussfold', 'gaussfold.cli']\n"
