"""
Training on a cluster
=====================

Each worker adds the rows of its partitions of a dask array to an accumulator of small, fixed size. Only the
accumulators are sent and merged. The cluster here has two workers in this process. Give ``Client`` the address of a
scheduler, and the same lines run on a hundred machines.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

import hyperelm.dask
from hyperelm import ELMRegressor

# %%
# The inputs are 20,000 pairs of unit quaternions, and the targets are their products with noise. So the network has to
# learn the product of two numbers.
rng = da.random.default_rng(0)
numbers = rng.standard_normal((20_000, 2, 4), chunks=(1000, 2, 4))
pairs = numbers / da.sqrt((numbers**2).sum(axis=2, keepdims=True))
p, q = (np.moveaxis(pairs[:, n], -1, 0) for n in range(2))
product = da.stack(
    [
        p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
        p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
        p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
        p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0],
    ],
    axis=1,
)
target = product + 0.5 * rng.standard_normal((20_000, 4), chunks=(1000, 4))

# %%
# Train networks of two sizes on 1, 4 and 16 partitions, and test on the last 2,000 rows. ``fit`` returns the ordinary
# estimator.
counts = [1, 4, 16]
errors = {}
with (
    LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
    Client(cluster),
):
    rows, targets, truth = (array.persist() for array in (pairs, target, product))
    for neurons in (20, 100):
        errors[neurons] = []
        for count in counts:
            model = ELMRegressor("quaternions", neurons, random_state=0)
            hyperelm.dask.fit(model, rows[: 1000 * count], targets[: 1000 * count])
            missed = hyperelm.dask.predict(model, rows[18_000:]) - truth[18_000:]
            errors[neurons].append(float(np.sqrt((missed**2).mean()).compute()))
        few, many = errors[neurons][0], errors[neurons][-1]
        print(f"{neurons:3} neurons: error {few:.3f} with 1,000 rows, {many:.3f} with 16,000")

# %%
# More neurons help once there are enough rows to average the noise.
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
for neurons, values in errors.items():
    axis.loglog([1000 * count for count in counts], values, marker="o", label=f"{neurons} neurons")
axis.set_title("More rows help if there are enough neurons")
axis.set_xlabel("rows")
axis.set_ylabel("root mean square error")
axis.legend()
plt.show()
