"""The chooser of the paper on row permutations, reproduced: from 24 features the times of SpMM `csr` with rows
in four orders (the smallest is chosen), or the order itself by softmax."""

import numpy as np

from data import Table
from network import Network

FEATURES = 24
ORDERS = ["csr", "dcsr", "lpt", "warp_aware"]


def report(train: Table, test: Table | None, splits):
    cases = [case for case in train.of("orders") if len(case.measured) == len(ORDERS)]
    print(f"\nRow permutations: {len(cases)} matrices, {FEATURES} features, orders {', '.join(ORDERS)}")
    if len(cases) < 10:
        print("too few")
        return
    x, times = inputs(cases), measured(cases)
    speedups = times[:, :1] / times
    for at, name in enumerate(ORDERS):
        s = speedups[:, at]
        wins = int((times.argmin(axis=1) == at).sum())
        print(f"  {name:10} max {s.max():5.2f} mean {s.mean():.3f} min {s.min():.2f}, fastest {wins} times")
    oracle = speedups.max(axis=1)
    print(f"  {'oracle':10} max {oracle.max():5.2f} mean {oracle.mean():.3f} min {oracle.min():.2f}")
    shares = {"times": [], "softmax": []}
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(cases))
        cut = len(cases) * 4 // 5
        learn, judge = order[:cut], order[cut:]
        for name in shares:
            found = choose(name, seed, x[learn], times[learn], x[judge])
            shares[name].append(judged(times[judge], found))
            if seed == 0 and name == "times":
                confusion(times[judge], found)
    for name, found in shares.items():
        gain, most, share, within, worst = np.mean(found, axis=0)
        print(
            f"  by {name:7} ({splits} splits of 80/20): mean speed-up {gain:.3f}, oracle {most:.3f}: {100 * gain / most:.1f} % of it; "
            f"{100 * share:.1f} % of the oracle's speed in geomean, {100 * within:.0f} % of matrices within 4 %, worst {worst:.2f}"
        )
    if test is not None:
        others = [case for case in test.of("orders") if len(case.measured) == len(ORDERS)]
        for name in shares if others else []:
            found = choose(name, 0, x, times, inputs(others))
            gain, most, share, within, worst = judged(measured(others), found)
            print(
                f"  by {name:7} on {len(others)} matrices that are not of the gallery's kinds: {100 * gain / most:.1f} % of the oracle's mean "
                f"speed-up, {100 * share:.1f} % of its speed in geomean, worst {worst:.2f}"
            )


def inputs(cases):
    return np.array([case.features[:FEATURES] for case in cases], dtype=np.float64)


def measured(cases):
    return np.array([[case.measured[name] for name in ORDERS] for case in cases])


def choose(kind, seed, x, times, others):
    """Which order, by what is learned from times."""
    classes = times.argmin(axis=1)
    counts = np.bincount(classes, minlength=len(ORDERS))
    # In inverse proportion to the classes' populations.
    weights = (len(x) / np.maximum(counts, 1) / len(ORDERS))[classes]
    weights = np.minimum(weights, 10.0) / np.minimum(weights, 10.0).mean()
    if kind == "times":
        return Network(seed).fit_times(x, times, weights).outputs(others).argmin(axis=1)
    return Network(seed).fit_classes(x, classes, len(ORDERS), weights).outputs(others).argmax(axis=1)


def judged(times, chosen):
    """Mean speed-ups of the choice and the oracle, share of the oracle's speed, matrices within 4 %, worst."""
    own, best = times[:, 0], times.min(axis=1)
    taken = times[np.arange(len(times)), chosen]
    share = best / taken
    return (own / taken).mean(), (own / best).mean(), np.exp(np.log(share).mean()), (share >= 0.96).mean(), share.min()


def confusion(times, chosen):
    print("  fastest (down) and chosen (across) of the first split:")
    best = times.argmin(axis=1)
    for row, name in enumerate(ORDERS):
        line = [int(((best == row) & (chosen == col)).sum()) for col in range(len(ORDERS))]
        print(f"    {name:10} " + " ".join(f"{count:5}" for count in line))
