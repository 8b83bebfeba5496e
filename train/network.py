"""A fully connected network with two hidden layers, as Mehrabi et al. choose row permutations by: 64 and 32
neurons, L2 regularization, mean absolute percentage error; or softmax and cross entropy."""

import numpy as np

HIDDEN = (64, 32)


class Network:
    """Inputs are logarithms of numbers, standardized; outputs are logarithms of times, or of odds."""

    def __init__(self, seed, l2=1e-4, rate=2e-3, epochs=400, batch=64):
        self.rng = np.random.default_rng(seed)
        self.l2, self.rate, self.epochs, self.batch = l2, rate, epochs, batch

    def _inputs(self, x):
        x = np.log1p(np.asarray(x, dtype=np.float64))
        if self.shift is None:
            self.shift, self.scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-6)
        return (x - self.shift) / self.scale

    def _forward(self, x):
        kept = [x]
        for at, (w, b) in enumerate(self.layers):
            x = x @ w + b
            if at + 1 < len(self.layers):
                x = np.maximum(x, 0.0)
            kept.append(x)
        return kept

    def _fit(self, x, outputs, gradient, start):
        """`gradient(rows, out)` is that of the loss by the outputs."""
        self.shift = None
        x = self._inputs(x)
        sizes = [x.shape[1], *HIDDEN, outputs]
        draw = lambda a, b: self.rng.standard_normal((a, b)) * np.sqrt(2.0 / a)
        self.layers = [(draw(a, b), np.zeros(b)) for a, b in zip(sizes, sizes[1:])]
        self.layers[-1] = (self.layers[-1][0] * 0.1, start.copy())
        # Adam.
        moments = [[np.zeros_like(p), np.zeros_like(p)] for layer in self.layers for p in layer]
        step = 0
        for epoch in range(self.epochs):
            rate = self.rate * 0.5 * (1.0 + np.cos(np.pi * epoch / self.epochs))
            order = self.rng.permutation(len(x))
            for first in range(0, len(x), self.batch):
                rows = order[first : first + self.batch]
                kept = self._forward(x[rows])
                delta = gradient(rows, kept[-1]) / len(rows)
                gradients = []
                for at in range(len(self.layers) - 1, -1, -1):
                    w, _ = self.layers[at]
                    gradients[:0] = [kept[at].T @ delta + self.l2 * w, delta.sum(axis=0)]
                    delta = (delta @ w.T) * (kept[at] > 0)
                step += 1
                flat = [p for layer in self.layers for p in layer]
                for p, g, moment in zip(flat, gradients, moments):
                    moment[0] = 0.9 * moment[0] + 0.1 * g
                    moment[1] = 0.999 * moment[1] + 0.001 * g * g
                    first_moment = moment[0] / (1 - 0.9**step)
                    p -= rate * first_moment / (np.sqrt(moment[1] / (1 - 0.999**step)) + 1e-8)
        return self

    def fit_times(self, x, times, weights):
        """Mean absolute percentage error of the times, each matrix with its weight."""
        times = np.asarray(times, dtype=np.float64)
        # Of exp(out): predictions are positive.
        def gradient(rows, out):
            ratio = np.exp(np.clip(out - np.log(times[rows]), -4.0, 4.0))
            return weights[rows, None] * np.sign(ratio - 1.0) * ratio / times.shape[1]

        return self._fit(x, times.shape[1], gradient, np.log(times).mean(axis=0))

    def fit_logs(self, x, logs):
        """Mean absolute error; outputs that are not known are NaN."""
        known = np.isfinite(logs)
        target = np.where(known, logs, 0.0)

        def gradient(rows, out):
            return np.clip((out - target[rows]) / 0.05, -1.0, 1.0) * known[rows]

        return self._fit(x, logs.shape[1], gradient, np.nanmedian(logs, axis=0))

    def fit_classes(self, x, classes, count, weights):
        """Cross entropy of the softmax."""
        wanted = np.eye(count)[classes]

        def gradient(rows, out):
            odds = np.exp(out - out.max(axis=1, keepdims=True))
            return weights[rows, None] * (odds / odds.sum(axis=1, keepdims=True) - wanted[rows])

        return self._fit(x, count, gradient, np.zeros(count))

    def outputs(self, x):
        return self._forward(self._inputs(x))[-1]
