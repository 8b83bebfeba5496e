"""A fully connected network with two hidden layers, as Mehrabi et al. choose row permutations by: 64 and 32
neurons, L2 regularization. What it learns is the same to the bit on every machine: nothing but additions,
multiplications, divisions and square roots, in one order, and logarithms that are rounded to 32 bits."""

import numpy as np

HIDDEN = (64, 32)


def product(a, b):
    """The matrix product, term after term: a library's adds them in an order that goes by the processor."""
    return np.add.reduce(a.T[:, :, None] * b[:, None, :], axis=0)


class Network:
    """Inputs are logarithms of numbers, standardized; outputs are logarithms of times."""

    def __init__(self, seed, l2=1e-4, rate=2e-3, epochs=400, batch=64, near=0.05):
        self.rng = np.random.default_rng(seed)
        self.l2, self.rate, self.epochs, self.batch, self.near = l2, rate, epochs, batch, near

    def _inputs(self, x):
        x = np.log1p(np.asarray(x, dtype=np.float64)).astype(np.float32).astype(np.float64)
        if self.shift is None:
            # As the library has them.
            self.shift = x.mean(axis=0).astype(np.float32).astype(np.float64)
            self.scale = np.maximum(x.std(axis=0), 1e-6).astype(np.float32).astype(np.float64)
        return (x - self.shift) / self.scale

    def _forward(self, x):
        kept = [x]
        for at, (w, b) in enumerate(self.layers):
            x = product(x, w) + b
            if at + 1 < len(self.layers):
                x = np.maximum(x, 0.0)
            kept.append(x)
        return kept

    def fit_logs(self, x, logs):
        """Mean absolute error, of what is near its square; outputs that are not known are NaN."""
        known = np.isfinite(logs)
        target = np.where(known, logs, 0.0)
        self.shift = None
        x = self._inputs(x)
        sizes = [x.shape[1], *HIDDEN, logs.shape[1]]
        # Of variance 2 / a.
        draw = lambda a, b: self.rng.uniform(-1.0, 1.0, (a, b)) * np.sqrt(6.0 / a)
        self.layers = [(draw(a, b), np.zeros(b)) for a, b in zip(sizes, sizes[1:])]
        self.layers[-1] = (self.layers[-1][0] * 0.1, np.nanmedian(logs, axis=0))
        # Adam.
        moments = [[np.zeros_like(p), np.zeros_like(p)] for layer in self.layers for p in layer]
        powers = [1.0, 1.0]
        for epoch in range(self.epochs):
            t = epoch / self.epochs
            rate = self.rate * (1.0 - t * t * (3.0 - 2.0 * t))
            order = self.rng.permutation(len(x))
            for first in range(0, len(x), self.batch):
                rows = order[first : first + self.batch]
                kept = self._forward(x[rows])
                delta = np.clip((kept[-1] - target[rows]) / self.near, -1.0, 1.0) * known[rows] / len(rows)
                gradients = []
                for at in range(len(self.layers) - 1, -1, -1):
                    w, _ = self.layers[at]
                    gradients[:0] = [product(kept[at].T, delta) + self.l2 * w, delta.sum(axis=0)]
                    delta = product(delta, w.T) * (kept[at] > 0)
                powers = [powers[0] * 0.9, powers[1] * 0.999]
                flat = [p for layer in self.layers for p in layer]
                for p, g, moment in zip(flat, gradients, moments):
                    moment[0] = 0.9 * moment[0] + 0.1 * g
                    moment[1] = 0.999 * moment[1] + 0.001 * g * g
                    p -= rate * (moment[0] / (1 - powers[0])) / (np.sqrt(moment[1] / (1 - powers[1])) + 1e-8)
        return self

    def outputs(self, x):
        return self._forward(self._inputs(x))[-1]
