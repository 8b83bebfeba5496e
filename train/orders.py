"""The choice of the paper on row permutations: for each form of product that takes orders of rows a network from 24
features of the pattern to the logarithms of the times in each order, over that in the rows' own."""

import numpy as np

from data import Table
from network import Network

FEATURES = 24
OWN = "none"
# What tarsiaReorder_t calls an order of rows, by its name in tables.
POLICIES = {
    "dcsr": 11,
    "plain_sort": 2,
    "flipped_sort": 3,
    "lpt": 4,
    "warp_aware": 5,
    "cta_aware": 6,
    "hybrid_1": 7,
    "hybrid_2_1": 8,
    "hybrid_2_2": 9,
    "hybrid_2_3": 10,
    "rcm": 12,
    "gray_code": 13,
}
# By its name in the library's file, what tables call a form of product.
FORMS = {"spmv-csr": "orders-spmv-csr", "spmm-row": "orders-spmm-row", "spmm-csr": "orders-spmm-csr"}
SEED = 1


class Chooser:
    """What was learned of one form of product."""

    def __init__(self, cases):
        self.policies = [name for name in POLICIES if any(name in case.measured for case in cases)]
        self.network = Network(SEED).fit_logs(inputs(cases), logs(cases, self.policies))

    def choose(self, cases):
        """The names of orders, of those that a matrix has."""
        out = []
        for case, found in zip(cases, self.network.outputs(inputs(cases))):
            least, best = min((value, name) for value, name in zip(found, self.policies) if name in case.measured)
            out.append(best if least < 0.0 else OWN)
        return out


def inputs(cases):
    return np.array([case.features[:FEATURES] for case in cases], dtype=np.float64)


def logs(cases, policies):
    """Of times over those in the rows' own order; NaN where a matrix cannot have an order."""
    ratio = lambda case, name: np.log(case.measured[name] / case.measured[OWN]) if name in case.measured else np.nan
    return np.array([[ratio(case, name) for name in policies] for case in cases]).astype(np.float32).astype(np.float64)


def learned(train: Table):
    """By form, of those that were measured."""
    cases = {form: train.of(op) for form, op in FORMS.items()}
    return {form: Chooser(found) for form, found in cases.items() if found}
