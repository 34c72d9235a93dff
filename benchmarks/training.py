"""How long does a hypercomplex ELM train compared with a real one?

The paper's auto-encoder: M = 10,000 images of 32 x 32 RGB pixels, targets = inputs; 450 hypercomplex neurons on 1,024
pixels with a zero real part, or 600 real neurons on 3,072 values. Weights are drawn inside every timing. Everything
is interleaved in one process, best of several; what counts are the ratios.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from timing import best_times

from hyperelm import Algebra, algebras, linalg
from hyperelm.activations import tanh
from hyperelm.elm.hidden import Forward, HiddenLayer
from hyperelm.solvers import Gram, solve
from hyperelm.solvers.sums import row_blocks
from hyperelm.solvers.team import team

CHUNK = 512
CHUNKR = 2048


def train(X, T, L, algebra, scale, ridge=0.0):
    D, d = X.shape[1:]
    W = np.random.default_rng(0).standard_normal((D, L, d), dtype=X.dtype)
    W *= scale
    layer = HiddenLayer(W, False, tanh, algebra)
    forward = Forward(layer)
    state = Gram(algebra, L, T.shape[1], X.dtype)
    with team(1e10) as crew:
        for rows in row_blocks(len(X), CHUNK if d > 1 else CHUNKR):
            H = forward(X[rows], crew)
            state.update(H, T[rows], team=crew)
    del forward
    return W, solve(state, ridge)
