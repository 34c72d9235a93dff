"""
Learning from a stream
======================

A sensor of rotations wears out: its readings are turned a little further every hour. Rows arrive hour by hour and are
not kept. We compare three models. The first is trained on the first hour only. The second continues with
``partial_fit`` and weights all hours equally. The third gives recent hours more weight, and follows the wear.
"""

import matplotlib.pyplot as plt
import numpy as np

from hyperelm import ELMRegressor

HOURS, ROWS = 24, 300


def hour(n, seed=0):
    """What the sensor reads of three axes, and the true rotation."""
    rng = np.random.default_rng((n, seed))
    rotation = rng.standard_normal((ROWS, 3))
    a = 0.03 * n
    turn = np.array([[np.cos(a), np.sin(a), 0], [-np.sin(a), np.cos(a), 0], [0, 0, 1]])
    return np.tanh(0.5 * rotation @ turn) + 0.01 * rng.standard_normal((ROWS, 3)), rotation


# %%
# The first hour fixes the hidden layer. Every hour is added to the accumulator of the model, whose size does not
# change. The model can predict after each hour.
settings = {"algebra": "quaternions", "n_hidden": 40, "packing": "imaginary", "ridge": 1e-2, "random_state": 0}
first = ELMRegressor(**settings).fit(*hour(0))
stream = ELMRegressor(**settings)
for n in range(HOURS):
    stream.partial_fit(*hour(n))

# %%
# ``fit`` takes all chunks from a generator, which is read once. The result is the same.
from_chunks = ELMRegressor(**settings).fit(hour(n) for n in range(HOURS))
difference = np.abs(from_chunks.predict(hour(5)[0]) - stream.predict(hour(5)[0])).max()
print(f"{HOURS * ROWS:,} rows in {HOURS} chunks; fit and partial_fit differ by {difference:.0e}")

# %%
# A chunk may have sample weights. Here every hour has half the weight of the next.
fading = ELMRegressor(**settings).fit((*hour(n), np.full(ROWS, 0.5 ** (HOURS - 1 - n))) for n in range(HOURS))


def error(model, n):
    reading, rotation = hour(n, seed=1)
    return float(np.sqrt(np.mean((model.predict(reading) - rotation) ** 2)))


figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name, model in [("first hour", first), ("all hours", stream), ("fading weights", fading)]:
    errors = [error(model, n) for n in range(HOURS)]
    print(f"{name:15} error in the first hour {errors[0]:.3f}, in the last {errors[-1]:.3f}")
    axis.plot(errors, label=name)
axis.set_title("Three models of a stream that drifts")
axis.set_xlabel("hour")
axis.set_ylabel("root mean square error")
axis.legend()
plt.show()
