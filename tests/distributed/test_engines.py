"""Who runs the shards makes no difference: processes, Dask, killed workers, a killed driver."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.cli.commands import train_many
from gaussfold.data.reading import Roles
from gaussfold.data.units import units_of
from gaussfold.distributed import ShardError, StoppedError, processes
from gaussfold.distributed.fitting import engine_of
from gaussfold.distributed.plan import rounds_of
from gaussfold.distributed.processes import Processes
from gaussfold.distributed.work import Base, Task, learn_shards
from tests.cli.helpers import ENVIRONMENT, clicks, last_json
from tests.cli.helpers import run as run_here
from tests.distributed.helpers import SMALL, Here, bits_of, learn, model

ROOT = Path(__file__).parents[2]
ROWS = 4000


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "clicks.vw"
    path.write_bytes(clicks(ROWS))
    return path


@pytest.fixture
def cli(capsys, monkeypatch):
    monkeypatch.setattr(train_many, "SCHEME", SMALL)
    return lambda *args: run_here(capsys, monkeypatch, *args)


def sha(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.mark.parametrize("own", [False, True])
def test_processes_and_kills_give_the_same_bits(data, own, monkeypatch):
    monkeypatch.setattr(processes, "THREADED", frozenset())  # what other tests have imported
    expected = bits_of(learn(data, Here(0), model("auto"))[0])
    with Processes(2, own=own) as engine:
        assert bits_of(learn(data, engine, model("auto"))[0]) == expected

        class Shot:
            """One process is killed at the beginning of some rounds."""

            def run(self, base, tasks, stop):
                for k, learned in enumerate(engine.run(base, tasks, stop)):
                    if k == 0 and tasks[0].shard.round in (5, 7):
                        os.kill(engine.pids[0], signal.SIGKILL)
                    yield learned

        assert bits_of(learn(data, Shot(), model("auto"))[0]) == expected
        left = engine.pids
    deadline = time.monotonic() + 60.0
    while any(_alive(pid) for pid in left):  # they end with the engine
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z" if Path("/proc").exists() else True


def test_dask_gives_the_same_bits(data):
    pytest.importorskip("distributed", reason="gaussfold[dask] is not installed")
    from distributed import Client, LocalCluster
    from gaussfold.distributed.on_dask import OnDask

    expected = bits_of(learn(data, Here(0), model("auto"))[0])
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        assert bits_of(learn(data, OnDask(client), model("auto"))[0]) == expected


def test_a_worker_without_the_library_is_named():
    from gaussfold.distributed.on_dask import OnDask

    class Bare:
        def scheduler_info(self):
            return {"workers": {"tcp://a": {}, "tcp://b": {}}}

        def run(self, ask, what, on_error):
            missing = ask(what.replace("gaussfold", "math").replace("__version__", "pi"))
            return {"tcp://a": missing, "tcp://b": ModuleNotFoundError("No module named 'gaussfold'")}

    with pytest.raises(ValueError, match="worker tcp://b: it cannot import gaussfold"):
        OnDask(Bare())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Dask's own
def test_a_cluster_without_workers_is_not_waited_for_forever(data, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="gaussfold[dask] is not installed")
    from gaussfold.distributed import on_dask

    monkeypatch.setattr(on_dask, "ALONE", 1.0)
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        engine = on_dask.OnDask(client)
        client.retire_workers()
        with pytest.raises(ShardError, match=r"clicks\.vw.* lost its last worker; start one"):
            learn(data, engine, model("auto"))


@pytest.mark.slow
def test_spark_gives_the_same_bits_and_tries_again(data, tmp_path, monkeypatch):
    pyspark = pytest.importorskip("pyspark", reason="gaussfold[spark] is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    from gaussfold.distributed.on_spark import OnSpark

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{ROOT}")
    expected = bits_of(learn(data, Here(0), model("auto"))[0])
    session = (
        pyspark.sql.SparkSession.builder.master("local[2, 3]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    try:
        assert bits_of(learn(data, OnSpark(session), model("auto"))[0]) == expected
        mark = tmp_path / "failed once"
        engine = OnSpark(session)
        tripped = Tripped(engine, str(mark))
        assert bits_of(learn(data, tripped, model("auto"))[0]) == expected
        assert mark.exists()
    finally:
        session.stop()


class Tripped:
    """The first worker that opens a certain task fails; Spark tries it again."""

    def __init__(self, engine, mark):
        self._engine, self._mark = engine, mark

    def run(self, base, tasks, stop):
        if tasks[0].shard.round == 3:
            tasks = [_Once(tasks[0], self._mark), *tasks[1:]]
        return self._engine.run(base, tasks, stop)


class _Once:
    """A task that cannot be opened the first time."""

    def __init__(self, task, mark):
        self.shard, self._task, self._mark = task.shard, task, mark

    def __reduce__(self):
        return _open_once, (self._task, self._mark)


def _open_once(task, mark):
    if not Path(mark).exists():
        Path(mark).touch()
        msg = "the first time"
        raise OSError(msg)
    return task


@pytest.mark.slow
def test_ray_gives_the_same_bits_and_tries_again(data, tmp_path):
    ray = pytest.importorskip("ray", reason="gaussfold[ray] is not installed")
    from gaussfold.distributed.on_ray import OnRay

    with pytest.raises(ValueError, match=r"ray\.init"):
        OnRay()
    expected = bits_of(learn(data, Here(0), model("auto"))[0])
    places = os.pathsep.join(map(str, (ROOT / "src", ROOT)))
    ray.init(
        num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": places}},
    )  # fmt: skip
    try:
        mark = tmp_path / "failed once"
        assert bits_of(learn(data, Tripped(OnRay(), str(mark)), model("auto"))[0]) == expected
        assert mark.exists()
    finally:
        ray.shutdown()


def test_clients_are_told_by_their_type():
    with pytest.raises(ValueError, match="client: a str; a Dask Client, a SparkSession or the module ray is needed"):
        engine_of("tcp://127.0.0.1:8786")
    engine = Here(0)
    assert engine_of(engine) is engine


def test_a_shard_that_kills_its_worker_ends_the_run_with_its_name(data, tmp_path):
    class Deadly:
        """Hands out a task that no process survives: its weights are not there to be read."""

        def __init__(self, engine):
            self._engine = engine

        def run(self, base, tasks, stop):
            if tasks[0].shard.round == 5:
                tasks = [_Fatal.of(task) if k == 0 else task for k, task in enumerate(tasks)]
            return self._engine.run(base, tasks, stop)

    place = {}
    learned = model()
    with Processes(2) as engine, pytest.raises(ShardError, match=r"clicks\.vw \[bytes .* failed 5 times"):
        learn(data, Deadly(engine), learned, place)
    assert place["rounds"] == 5
    both, _ = learn(data, Here(0), learned, place)
    assert bits_of(both) == bits_of(learn(data, Here(1))[0])


def test_the_driver_learns_alone_and_tries_again(data, monkeypatch):
    """One worker is the driver itself; what fails there is tried again like anywhere, and it can be stopped."""
    expected = bits_of(learn(data, Here(0), model("auto"))[0])
    failures = iter([True] * 4)

    def failing(opened, batch, stop):
        if batch[0].shard.round == 3 and next(failures, False):
            raise MemoryError
        return learn_shards(opened, batch, stop)

    monkeypatch.setattr(processes, "learn_shards", failing)
    with Processes(1) as engine:
        assert bits_of(learn(data, engine, model("auto"))[0]) == expected
        assert engine.pids == []
        failures = iter([True] * 5)
        with pytest.raises(ShardError, match=r"clicks\.vw \[bytes .* failed 5 times \(MemoryError\)"):
            learn(data, engine, model("auto"))
        asked = []
        with pytest.raises(StoppedError):
            list(engine.run(Base(model()), [_task(data)], lambda: bool(asked.append(1)) or True))
    assert len(asked) == 1


def _task(data):
    reading = model().reading
    units = units_of(data, reading, Roles(), 100)
    return Task(rounds_of(units.units, SMALL)[0][0], units.reading, 16.0, 0)


class _Fatal:
    """A task that ends the process that opens it."""

    def __init__(self, shard):
        self.shard = shard

    @classmethod
    def of(cls, task):
        return cls(task.shard)

    def __reduce__(self):
        return os._exit, (3,)


def test_the_command_is_the_same_for_any_number_of_workers(cli, data, tmp_path):
    shas = set()
    for workers in (1, 2):
        target = tmp_path / f"m{workers}"
        code, out, err = cli("train", data, "-b", 10, "-f", target, "--workers", workers, "--json")
        assert code == 0, err
        assert last_json(out)["examples"] == ROWS
        assert "round 1/" in err
        shas.add(sha(target))
    assert len(shas) == 1
    assert gf.load(tmp_path / "m1").run == {"passes": 1, "rows": 0, "finished": 1}
    code, _, err = cli("train", data, "-f", tmp_path / "m1", "--workers", 1, "--resume")
    assert code == 0
    assert "is finished" in err
    assert sha(tmp_path / "m1") in shas


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_killed_driver_goes_on_where_it_was(cli, data, tmp_path):
    assert cli("train", data, "-b", 10, "-f", tmp_path / "whole", "--workers", 1, "--quiet")[0] == 0
    target = tmp_path / "m"
    command = [sys.executable, "-m", "tests.distributed.driver", "train", data, "-b", 10, "-f", target, "--workers", 1]
    first = subprocess.Popen([*map(str, command)], cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    seen = []
    for line in first.stderr:
        seen.append(line)
        if line.startswith("round 3/"):
            first.kill()
            break
    assert seen[-1].startswith("round 3/"), seen
    first.wait()
    first.stderr.close()
    place = gf.load(target).run
    assert place["rounds"] >= 3
    assert not place.get("finished")
    code, _, err = cli("train", data, "-b", 10, "-f", target, "--resume", "--quiet")
    assert code == 2
    assert "made with --workers" in err
    code, _, err = cli("train", data, "-b", 10, "-f", target, "--workers", 2, "--resume", "--quiet")
    assert code == 0, err
    assert sha(target) == sha(tmp_path / "whole")


def test_what_workers_cannot_do_is_refused(cli, data, tmp_path):
    def refused(match, *args, code=2):
        target = tmp_path / "kept"
        target.write_bytes(b"a good model")
        found, _, err = cli("train", *args, "-f", target, "--workers", 2, "--quiet")
        assert found == code, err
        assert match in err
        assert target.read_bytes() == b"a good model"

    refused("--forgetting 0.99", data, "--forgetting", 0.99, "--prior-std", 1)
    refused("first feature", data, "--prior-std", "1,u=0.5")
    refused("--passes", data, "--passes", 2)
    refused("standard input", "-")
    refused("-p", data, "-p", tmp_path / "p.csv")
    refused("--checkpoint", data, "--checkpoint", 100)
    refused("one of the two", data, "--scheduler", "tcp://127.0.0.1:1")
    refused("no file matches", tmp_path / "*.nothing", code=3)
    (tmp_path / "none.vw").write_bytes(b"")
    refused("no rows", tmp_path / "none.vw", code=3)
    (tmp_path / "bad.vw").write_bytes(b"17 |u x\n" * 10)
    refused("label", tmp_path / "bad.vw", code=3)


def test_changed_inputs_and_other_runs_are_not_resumed(cli, data, tmp_path):
    target = tmp_path / "m"
    own = tmp_path / "own.vw"
    lines = clicks(1500).splitlines(keepends=True)
    lines[1400] = b"17 |u x\n"
    own.write_bytes(b"".join(lines))
    code, _, err = cli("train", own, "-b", 10, "-f", target, "--workers", 1, "--quiet")
    assert code == 3
    assert "--resume goes on" in err
    assert gf.load(target).run["rounds"] > 0
    own.write_bytes(b"".join(lines[:-1]))
    code, _, err = cli("train", own, "-b", 10, "-f", target, "--workers", 1, "--resume", "--quiet")
    assert code == 2
    assert "is not what it was" in err
    own.write_bytes(b"".join(lines))
    code, _, err = cli("train", own, "-b", 10, "-f", target, "--workers", 1, "--resume", "--skip-bad", 1, "--quiet")
    assert code == 0, err
    assert gf.load(target).examples == 1499


def test_a_good_model_stays_until_the_new_one_is_whole(cli, data, tmp_path):
    target, beside, bad = tmp_path / "m", tmp_path / "m.rounds", tmp_path / "bad.vw"
    lines = clicks(1500).splitlines(keepends=True)
    bad.write_bytes(b"".join([*lines[:1400], b"17 |u x\n", *lines[1400:]]))
    options = ("train", bad, "-b", 10, "--quiet", "--workers", 1, "-f", target)
    target.write_bytes(b"a good model")
    code, _, err = cli(*options)
    assert code == 3
    assert "m.rounds holds the" in err
    assert target.read_bytes() == b"a good model"
    assert 0 < gf.load(beside).examples < 1500
    code, _, err = cli(*options, "--resume", "--skip-bad", 1)
    assert code == 0, err
    assert not beside.exists()
    whole = tmp_path / "whole"
    assert cli(*options[:-1], whole, "--skip-bad", 1)[0] == 0
    assert sha(target) == sha(whole)
    before = sha(target)
    assert cli(*options[:-1], target)[0] == 3  # again, and it fails again
    assert sha(target) == before


def test_a_table_is_resumed_too(cli, tmp_path):
    table, target = tmp_path / "clicks.csv", tmp_path / "m"
    rng = np.random.default_rng(8)
    rows = [f"{rng.integers(2)},u{rng.integers(30)},{rng.gamma(2.0):.3f}" for _ in range(1500)]
    options = ("train", table, "-b", 10, "--quiet", "--workers", 1)
    table.write_text("\n".join(["click,u,x", *rows[:1400], "17,u1,2.000", *rows[1400:]]) + "\n")
    code, _, err = cli(*options, "-f", target, "--label", "click")
    assert code == 3, err
    assert 0 < gf.load(target).examples < 1500
    code, _, err = cli(*options, "-f", target, "--resume", "--skip-bad", 1)
    assert code == 0, err
    assert cli(*options, "-f", tmp_path / "whole", "--label", "click", "--skip-bad", 1)[0] == 0
    assert sha(target) == sha(tmp_path / "whole")


def test_a_scheduler_that_is_not_there(data, tmp_path, monkeypatch):
    pytest.importorskip("distributed", reason="gaussfold[dask] is not installed")
    from gaussfold.distributed import on_dask

    monkeypatch.setattr(on_dask, "WAIT", "1s")
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:9.*no Dask scheduler answers"):
        on_dask.connect("tcp://127.0.0.1:9")
