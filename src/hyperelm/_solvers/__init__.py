"""From rows to weights.

An accumulator (`Gram`, `QR` or `AllRows`) summarises rows. `problem` and `spectrum` turn it into one small problem for
every block of the algebra, `ridge` and `loo` choose the penalty, and `solve` gives the weights.
"""
