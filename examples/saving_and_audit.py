"""
Saving, versions and audit
==========================

A model file is named arrays and a JSON header under a checksum: no pickle, nothing that runs when it is opened. A
loaded model goes on exactly where the saved one stopped, and old files keep loading.
"""

import json
import struct
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gaussfold as gf

rng = np.random.default_rng(13)
X = rng.normal(size=(2000, 6))
y = (rng.random(2000) < 1.0 / (1.0 + np.exp(-X @ rng.normal(size=6)))).astype(int)
path = Path(tempfile.mkdtemp()) / "model.gf"

# %%
# Half of the rows, a file, the other half; and all of them at once.
gf.save(gf.StreamingClassifier().partial_fit(X[:1000], y[:1000], classes=[0, 1]), path)
resumed = gf.load(path).partial_fit(X[1000:], y[1000:])
unbroken = gf.StreamingClassifier().partial_fit(X, y, classes=[0, 1])
print("the same to the last bit:", np.array_equal(resumed.coef_, unbroken.coef_))

# %%
# What is in the file can be read by any program that knows the safetensors format: for an audit, or in another
# language.
content = path.read_bytes()
length = struct.unpack("<Q", content[:8])[0]
header = json.loads(content[8 : 8 + length])
described = json.loads(header.pop("__metadata__")["gaussfold"])
print({key: described[key] for key in ("format", "kind", "version")})
print({name: part["shape"] for name, part in header.items()})

# %%
# A damaged file is refused, with what to do, whatever byte was hit.
damaged = bytearray(content)
damaged[-5] ^= 1
path.write_bytes(damaged)
try:
    gf.load(path)
except ValueError as error:
    print(error)

# %%
# How the weights became known while the rows came in.
model, seen, stds = gf.StreamingClassifier(), [], []
for stop in np.unique(np.geomspace(10, 2000, 25).astype(int)):
    start = seen[-1] if seen else 0
    model.partial_fit(X[start:stop], y[start:stop], classes=[0, 1])
    seen.append(int(stop))
    stds.append(model.coef_std_.ravel())
figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
axis.loglog(seen, stds)
axis.set(xlabel="rows", ylabel="standard deviation of each weight")
plt.show()
