"""Small inputs, and workers that are not there: shards run here, in any order, twice, or not at all."""

import pickle

import numpy as np

from gaussfold.cli.model import StreamModel
from gaussfold.cli.setting import Setting
from gaussfold.data.reading import Reading, Roles
from gaussfold.data.units import units_of
from gaussfold.distributed import Scheme, ShardError, learn_rounds, rounds_of
from gaussfold.distributed.work import learn_shard, open_base, together

SMALL = Scheme(head=200, growth=0.5, most=6)


class Here:
    """Runs shards in this process, in an order that a seed decides; some twice. Tasks travel as bytes."""

    def __init__(self, seed=0, twice=False):
        self._rng, self._twice, self.tasks = np.random.default_rng(seed), twice, []

    def run(self, base, tasks, stop):
        order = self._rng.permutation(len(tasks)).tolist()
        for k in order * (1 + self._twice):
            self.tasks.append(tasks[k])
            task = pickle.loads(pickle.dumps(tasks[k]))
            yield pickle.loads(pickle.dumps(learn_shard(open_base(lambda: base.raw, base.key), task)))


class Grouped(Here):
    """Adds up what some shards have learned before it says so; twice, since an engine may ask for a result again."""

    def run(self, base, tasks, stop):
        found = list(super().run(base, tasks, stop))
        cut = int(self._rng.integers(0, len(found)))
        for part in (found[:cut], found[cut:]):
            half = len(part) // 2
            for _ in range(2 if part else 0):
                deeper = [together(some) for some in (part[:half], part[half:]) if some]
                yield pickle.loads(pickle.dumps(together(deeper)))


class Dying(Here):
    """Gives up in a given round, when some shards are done."""

    def __init__(self, round_, seed=0):
        super().__init__(seed)
        self._round = round_

    def run(self, base, tasks, stop):
        for learned in super().run(base, tasks, stop):
            if tasks[0].shard.round >= self._round:
                msg = "gone"
                raise ShardError(msg)
            yield learned


def model(prior=0.7, bits=10, names=False, **options):
    return StreamModel(Setting(prior_std=prior, **options), Reading(bits=bits), names={} if names else None)


def learn(path, engine, start=None, place=None, scheme=SMALL, roles=None, skip_bad=0):
    """A model that has learned a file; and the outcomes of its rounds."""
    learned = start or model()
    units = units_of(path, learned.reading, roles or Roles(), scheme.head // 2)
    learned.reading = units.reading
    rounds = rounds_of(units.units, scheme)
    place = {} if place is None else place
    return learned, list(learn_rounds(learned, rounds, engine, scheme, place=place, skip_bad=skip_bad))


def in_order(path, start=None, roles=None):
    """The same in one pass."""
    from gaussfold.data.readers import Stream

    learned = start or model()
    stream = Stream(path, learned.reading, roles or Roles(), background=False, keep_names=learned.names is not None)
    for chunk in stream:
        learned.reading = stream.reading
        learned.add(chunk, learned.learn(chunk), 0, len(chunk))
    return learned


def bits_of(learned):
    """Everything, as bytes."""
    state = learned.state()
    names = sorted(learned.names.items()) if learned.names is not None else None
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in state.items()}, names
