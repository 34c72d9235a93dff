"""How far predictions are off: the leave-one-out residuals, each divided by the spread that its leverage foretells.

With the leverage h = a S⁻¹ aᴴ of a row a (`loo`), the noise of the targets and that of the fitted weights give an error
on a new row a spread of √(1 + h) times that of the targets. For a row m that is left out, the leverage is taken in the
rows that remain, and 1 + h₋ₘ = 1/(1 - h_m). So the standardised residuals

    s_m = e₋ₘ √(1 - h_m)

of all rows are alike, and a new row has an error of s √(1 + h). Three things are kept of them, whose size does not
depend on the number of rows.

- Quantiles of |s| of every output, at 257 levels, evenly spaced.
- Quantiles of max |s|/u over the outputs, with the root mean square u of each output: those of a box that holds all
  outputs of a row at once. It is a box, not a ball, because each output may have a unit of its own.
- Probes U: with ΩΩᴴ = 1 in the mean and a random Ω of few columns, h = ‖a S^(-1/2)‖² is ‖aU‖², U = S^(-1/2) Ω. U is a
  further output layer of 64 columns: random combinations of the fitted weights' errors. Where there are as few
  unknowns, h is exact. Otherwise the relative error of h is about √(2/64).

With n rows left out, the quantile for a coverage c is that of rank c (n + 1), which holds for any distribution of
exchangeable errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hyperelm._linalg.planes import block_basis
from hyperelm._solvers.loo import LeaveOneOut
from hyperelm._solvers.problem import Array
from hyperelm._validation import FloatArray

LEVELS = 257
PROBED = 64  # columns of the probes


@dataclass(frozen=True, eq=False)
class Residuals:
    """What is kept of standardised residuals.

    units : (outputs,), the root mean square of each output's
    quantiles : (outputs + 1, LEVELS), in these units, in single precision; the last row is that of the maximum over all
        outputs
    count : how many samples were left out
    """

    units: NDArray[np.float64]
    quantiles: NDArray[np.float32]
    count: float

    @classmethod
    def of(cls, residuals: NDArray[np.float64], weight: NDArray[np.float64], count: float) -> Residuals:
        """From standardised residuals, (m, outputs); those of rows that are not finite count as infinite."""
        sizes = np.abs(residuals)
        sizes[~np.isfinite(sizes)] = np.inf
        units = _root_mean_square(sizes, weight)
        sizes = sizes / np.where(units > 0, units, 1.0)
        sizes = np.concatenate([sizes, sizes.max(axis=1, keepdims=True)], axis=1)
        quantiles = np.array([weighted_quantiles(column, weight) for column in sizes.T])
        return cls(units, quantiles.astype(np.float32), count)

    def half_widths(self, coverage: float, *, joint: bool) -> NDArray[np.float64]:
        """The half width of the interval of every output for a row without leverage."""
        level = coverage * (self.count + 1) / self.count
        at = (self.quantiles[-1:] if joint else self.quantiles[:-1]).astype(np.float64)
        place = min(level, 1.0) * (LEVELS - 1)
        below = min(int(place), LEVELS - 2)
        share = place - below
        with np.errstate(invalid="ignore"):
            found = np.where(share > 0, (1 - share) * at[:, below] + share * at[:, below + 1], at[:, below])
        return np.asarray(np.where(np.isnan(found), np.inf, found) * self.units)

    @property
    def largest_coverage(self) -> float:
        return self.count / (self.count + 1)


def weighted_quantiles(values: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """The smallest values up to which the rows have the share k/256 of all weight, for k = 0, 1, …, 256."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weight[order])
    # A share that is reached up to rounding is reached.
    wanted = np.linspace(0, 1, LEVELS) * sums[-1] * (1 - 1e-12)
    return np.asarray(values[order][np.minimum(np.searchsorted(sums, wanted), len(values) - 1)])


def _root_mean_square(sizes: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the finite sizes of each column; 1 where there are none."""
    finite = np.isfinite(sizes)
    largest = np.where(finite, sizes, 0).max(axis=0, initial=0)
    relative = np.where(finite, sizes, 0) / np.where(largest > 0, largest, 1)
    counted = weight @ finite
    means = np.divide(weight @ relative**2, counted, out=np.zeros(len(counted)), where=counted > 0)
    return np.where(counted > 0, largest * np.sqrt(means), 1.0)


def probes(method: LeaveOneOut, numbers: int) -> FloatArray:
    """U, (L, numbers, d): the mean of |aU|² over its columns, d · numbers of them, is the leverage of a row a."""
    accumulator, rng = method.accumulator, np.random.default_rng(0)
    xs: list[Array] = []
    for n, block in enumerate(block_basis(accumulator.algebra).blocks):
        reduced = method.reduced[n]
        penalised = len(reduced.kept)
        omega = _directions(penalised + reduced.root.shape[1], block.copies * numbers, block.is_complex, rng)
        omega = omega.astype(np.result_type(accumulator.dtype, np.complex64) if block.is_complex else accumulator.dtype)
        x = method.half_inverse(n, omega[:penalised])
        if reduced.gone is not None:
            x[reduced.gone] = 0
        if len(reduced.free):
            whole = np.empty((penalised + len(reduced.free), x.shape[1]), x.dtype)
            whole[reduced.kept], whole[reduced.free] = x, reduced.root @ omega[penalised:] - reduced.of_rows @ x
            x = whole
        xs.append(x * x.real.dtype.type(np.sqrt(block.parts)))
    return accumulator.coef(xs)


def _directions(size: int, columns: int, is_complex: bool, rng: np.random.Generator) -> Array:
    """Ω, (size, columns), orthogonal directions with E[ΩΩᴴ] = columns · 1; exactly where there are enough columns."""
    given = rng.standard_normal((size, min(size, columns)))
    if is_complex:
        given = given + 1j * rng.standard_normal(given.shape)
    orthonormal = _orthonormal(given)
    found = np.zeros((size, columns), orthonormal.dtype)
    found[:, : orthonormal.shape[1]] = orthonormal * np.sqrt(columns * size / max(orthonormal.shape[1], 1))
    return found


def _orthonormal(columns: Array) -> Array:
    """The columns of a random matrix, made orthonormal.

    Long columns are nearly orthogonal already. Then XᴴX = RᴴR is well conditioned, and XR⁻¹ takes less time than QR.
    """
    if len(columns) < 4 * columns.shape[1]:
        return np.linalg.qr(columns)[0]
    R = np.linalg.cholesky(columns.conj().T @ columns).conj().T
    return np.asarray(linalg.solve_triangular(R, columns.conj().T, trans="C", check_finite=False).conj().T)


def standardised(residuals: NDArray[np.float64], leverages: NDArray[np.float64]) -> NDArray[np.float64]:
    """s, (m, outputs), of leave-one-out residuals, (m, outputs), and leverages, (m,)."""
    return residuals * np.sqrt(np.maximum(1 - leverages, 0))[:, None]
