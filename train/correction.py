"""The correction of SpMM's predicted times: for each candidate the logarithm of its time over the roofline's, from the
numbers that its choice counts anyway, by boosted trees."""

import math
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from data import Verdict


@dataclass(frozen=True)
class Shape:
    """What the trees are like; figures are in docs/algorithms/choice.md."""

    # Factors are held between these.
    bounds: tuple
    # Trees of a candidate, splits from a root to a leaf, and the share of a tree's step that is taken.
    trees: int
    depth: int
    rate: float
    # Candidates whose predicted times, over one's own, are inputs.
    relative: tuple


SHAPE = Shape((0.333, 3.0), 160, 6, 0.14, ("row", "sell", "window", "smat", "dense"))
# Parts that a number is divided into.
BINS = 64
# Leaves are whole numbers of so much.
UNIT = 1e-4
FOLDS = 5
# Places among the numbers of a product.
COLS, VALUE_BYTES = 1, 3
# Bytes of a pack.
PACK = 16


@dataclass
class Forest:
    """Trees of 2^depth leaves each, with what the library does with them, to the bit."""

    depth: int
    base: int
    inputs: np.ndarray  # trees × splits
    limits: np.ndarray  # float32
    leaves: np.ndarray  # trees × leaves, int16

    @staticmethod
    def fit(x, y, weights, shape=SHAPE):
        model = HistGradientBoostingRegressor(
            max_iter=shape.trees,
            max_depth=shape.depth,
            max_leaf_nodes=None,
            learning_rate=shape.rate,
            min_samples_leaf=60,
            l2_regularization=1.0,
            early_stopping=False,
        )
        # Limits are chosen from these: 63 of each number, so that each of 64 parts has as many cases.
        parts = np.arange(1, BINS) / BINS
        edges = [np.unique(np.quantile(column, parts, method="lower")).astype(np.float32) for column in x.T]
        # As the library compares: place k and those before it are at most limit k.
        places = np.stack([np.searchsorted(e, column, side="left") for e, column in zip(edges, x.T)], axis=1)
        # Beyond what a correction may be, how far it is off is no matter.
        y = np.clip(y, *(2.0 * np.log(np.array(shape.bounds))))
        model.fit(places.astype(np.float64), y, sample_weight=weights)
        splits, leaves = (1 << shape.depth) - 1, 1 << shape.depth
        out = Forest(
            shape.depth,
            int(round(float(np.ravel(model._baseline_prediction)[0]) / UNIT)),
            np.zeros((shape.trees, splits), dtype=np.int64),
            np.zeros((shape.trees, splits), dtype=np.float32),
            np.zeros((shape.trees, leaves), dtype=np.int64),
        )
        for at, (tree,) in enumerate(model._predictors):
            out._take(at, tree.nodes, edges, 0, 0)
        out.leaves = np.clip(out.leaves, -32767, 32767)
        return out

    def _take(self, at, nodes, edges, node, place):
        splits = (1 << self.depth) - 1
        here = nodes[node]
        if place >= splits:
            self.leaves[at, place - splits] = int(round(float(here["value"]) / UNIT))
            return
        left = right = node
        # Below a leaf everything is that leaf.
        if not here["is_leaf"]:
            left, right = here["left"], here["right"]
            number = int(here["feature_idx"])
            # Between two places.
            limit = edges[number][int(math.floor(float(here["num_threshold"])))]
            self.inputs[at, place], self.limits[at, place] = number, limit
        self._take(at, nodes, edges, left, 2 * place + 1)
        self._take(at, nodes, edges, right, 2 * place + 2)

    def logs(self, x):
        """As the library adds them: whole numbers."""
        x = np.asarray(x, dtype=np.float32)
        total = np.full(len(x), self.base, dtype=np.int64)
        rows = np.arange(len(x))
        for inputs, limits, leaves in zip(self.inputs, self.limits, self.leaves):
            place = np.zeros(len(x), dtype=np.int64)
            for _ in range(self.depth):
                place = 2 * place + 2 - (x[rows, inputs[place]] <= limits[place])
            total += leaves[place - ((1 << self.depth) - 1)]
        return total * UNIT


class Roofline:
    """No correction."""

    def factors(self, cases, names):
        return {name: np.ones(len(cases)) for name in names}


class Trees:
    def __init__(self, cases, names):
        self.forests = {}
        for name in names:
            own = [case for case in cases if name in case.choosable()]
            x = np.array([inputs(case, name) for case in own])
            y = np.array([math.log(case.measured[name] / float(case.predicted[name])) for case in own])
            self.forests[name] = Forest.fit(x, y, np.array([matters(case, name) for case in own]))

    def factors(self, cases, names):
        out = {}
        for name in names:
            x = np.array([inputs(case, name) if name in case.choosable() else zeros(case) for case in cases])
            out[name] = np.clip(np.exp(self.forests[name].logs(x)), *SHAPE.bounds)
        return out


def inputs(case, name):
    """What the library gives a candidate's trees: the numbers, its microseconds, these over the best's, others' over
    these (0 for what was not measured), and whether a row of A as a dense matrix ends inside a pack."""
    own = case.predicted[name]
    best = min(case.predicted[other] for other in case.predicted if case.predicted[other] > 0)
    others = [case.predicted.get(other, np.float32(0)) / own for other in SHAPE.relative]
    inside_pack = case.numbers[COLS] % (PACK / case.numbers[VALUE_BYTES]) != 0
    return np.concatenate([case.numbers, np.array([own, own / best, *others, inside_pack], dtype=np.float32)])


def zeros(case):
    return np.zeros(len(case.numbers) + 3 + len(SHAPE.relative), dtype=np.float32)


def matters(case, name):
    """What is far from the best is not chosen, however wrong its prediction is."""
    return (case.best() / case.measured[name]) ** 2


def candidates(cases):
    return sorted({name for case in cases for name in case.choosable()})


def choose(model, cases):
    """The library's choices."""
    names = candidates(cases)
    factors = model.factors(cases, names)
    out = []
    for row, case in enumerate(cases):
        seconds = {name: float(case.predicted[name]) * factors[name][row] for name in case.choosable()}
        out.append(min(seconds, key=lambda name: (seconds[name], name)))
    return out


def folds(keys):
    """Parts of the cases, those of a key together."""
    found = sorted(set(keys))
    place = {key: at % FOLDS for at, key in enumerate(np.random.default_rng(1).permutation(found).tolist())}
    return np.array([place[key] for key in keys])


def validated(kind, cases, keys):
    """Choices for each case by a model that has seen none of its key."""
    part, names = folds(keys), candidates(cases)
    chosen = [None] * len(cases)
    for fold in range(FOLDS):
        learn = [case for case, other in zip(cases, part) if other != fold]
        judge = [at for at, other in enumerate(part) if other == fold]
        if judge:
            model = kind(learn, names)
            for at, name in zip(judge, choose(model, [cases[at] for at in judge])):
                chosen[at] = name
    return chosen


def groups(cases):
    return sorted({(case.precision, case.n) for case in cases})


def show(title, verdict):
    print(f"  {title:44} {Verdict.line(verdict.shares)}")


def table(title, verdict):
    print(f"  {title}")
    for precision, n in groups(verdict.cases):
        line = Verdict.line(verdict.of(lambda case: (case.precision, case.n) == (precision, n)))
        print(f"    {precision} {n:4} {line}")
    print(f"    worst: {'; '.join(verdict.worst(4))}")


def learned(cases):
    """Trees that learned from all of them."""
    return Trees(cases, candidates(cases)) if len(cases) >= 50 else None


def report(cases, test):
    """Prints what corrections are worth; returns the trees that learned from all cases."""
    print(f"\nspmm: {len(cases)} products, share of the oracle's speed in geomean")
    if len(cases) < 50:
        print("too few")
        return None
    names = candidates(cases)
    plain = Verdict(cases, choose(Roofline(), cases))
    show("roofline", plain)
    matrices, families = [case.number for case in cases], [case.family for case in cases]
    trees = Verdict(cases, validated(Trees, cases, matrices))
    show("trees, matrices held out", trees)
    show("trees, families held out", Verdict(cases, validated(Trees, cases, families)))
    table("by precision and columns, roofline", plain)
    table("by precision and columns, trees, matrices held out", trees)
    model = learned(cases)
    if test:
        others = [case for case in test if set(case.choosable()) & set(names)]
        table("matrices of files and the gallery, none of which was learned from, roofline", Verdict(others, choose(Roofline(), others)))
        table("the same, trees", Verdict(others, choose(model, others)))
    return model


def sparse(names, cases, test):
    """Prints what the two algorithms of SpGEMM take: below its limit of products the library takes `hash`."""
    for title, some in (("sampled", cases), ("others", test)):
        both = [case for case in some if {"hash", "tile"} <= set(case.measured)]
        if not both:
            continue
        ratio = np.array([case.measured["hash"] / case.measured["tile"] for case in both])
        share = np.minimum(1.0, 1.0 / ratio)
        print(
            f"\nspgemm, {title}: {len(both)} products, `hash` has {100 * np.exp(np.log(share).mean()):.2f} % of the speed of the better one; `tile` is "
            f"faster on {int((ratio > 1).sum())}, by up to {ratio.max():.2f}, `hash` on the others, by {1 / np.median(ratio):.1f} in the median"
        )
        for at in np.argsort(-ratio, kind="stable")[:5]:
            case = both[at]
            times = f"hash {case.measured['hash']:.0f} µs, tile {case.measured['tile']:.0f}"
            numbers = ", ".join(f"{name} {number:.4g}" for name, number in zip(names, case.numbers))
            print(f"    {case.matrix}: {times}; {numbers}")
