"""Tables of `tarsia sample`: products, what was counted for each, what each candidate took."""

import gzip
import math
from dataclasses import dataclass, field

import numpy as np


# Between the numbers of files.
APART = 1_000_000


@dataclass
class Case:
    """A product of a matrix."""

    number: int
    matrix: str
    op: str
    precision: str
    n: int
    numbers: np.ndarray  # float32, as the library has them
    features: np.ndarray  # of the matrix: its shape and density first, and in tables of orders all 24 of the paper on row permutations
    # By candidate: microseconds by the roofline (0: it has none), and measured.
    predicted: dict = field(default_factory=dict)
    measured: dict = field(default_factory=dict)

    @property
    def family(self):
        """The kind of matrix; a named one is a family of its own."""
        return self.matrix.split(":")[0]

    def choosable(self):
        """Candidates that the library chooses from."""
        return [name for name in self.measured if self.predicted[name] > 0]

    def best(self):
        return min(self.measured[name] for name in self.choosable())


class Table:
    """The cases of files; `names` of the numbers by operation."""

    def __init__(self, *paths):
        self.names, self.cases, self.about = {}, [], []
        for at, path in enumerate(paths):
            self._read(at, path)
        # The order in which threads were done is no matter.
        self.cases.sort(key=lambda case: (case.number, case.matrix, case.op, case.precision, case.n))

    def _read(self, at, path):
        """Numbers of one file's matrices are none of another's."""
        features = {}
        with gzip.open(path, "rt") if str(path).endswith(".gz") else open(path) as lines:
            for line in lines:
                line = line.rstrip("\n")
                if line.startswith("# names "):
                    _, _, op, *names = line.split(" ")
                    if self.names.setdefault(op, names) != names:
                        raise SystemExit(f"{path.name}: its numbers of {op} are others than those of the first file")
                elif line.startswith("#"):
                    self.about.append(line[2:])
                elif line.startswith("number\t"):
                    continue
                else:
                    self._add(at, line.split("\t"), features)

    def _add(self, at, fields, features):
        number, matrix, _, _, _, op, precision, n, numbers, times = fields
        numbers = np.array([np.float32(text) for text in numbers.split()], dtype=np.float32)
        if op == "matrix":
            features[number, matrix] = numbers
            return
        case = Case(max(int(number), -1) + at * APART, matrix, op, precision, int(n), numbers, features[number, matrix])
        for time in times.split():
            name, predicted, measured, _ = time.rsplit(":", 3)
            case.predicted[name] = np.float32(predicted)
            case.measured[name] = float(measured)
        if len(case.measured) > 1:
            self.cases.append(case)

    def version(self, what):
        """Of the features or the numbers of products, as the library calls it."""
        line = next(line for line in self.about if f" {what} " in line)
        return int(line.split(f" {what} ", 1)[1].split()[0])

    def of(self, op):
        """Cases of an operation that has a choice."""
        few = 2 if op == "spmm" else 0
        return [case for case in self.cases if case.op == op and len(case.choosable()) >= few]


def without(cases, others):
    """Cases of matrices that are none of the others, by their shape."""
    shapes = {tuple(case.features[:3]) for case in others}
    return [case for case in cases if tuple(case.features[:3]) not in shapes]


class Verdict:
    """What choices are worth: the best time over the chosen one's."""

    def __init__(self, cases, chosen):
        self.cases = cases
        self.shares = np.array([case.best() / case.measured[name] for case, name in zip(cases, chosen)])

    def of(self, keep):
        return [share for case, share in zip(self.cases, self.shares) if keep(case)]

    @staticmethod
    def line(shares):
        if not len(shares):
            return "none"
        shares = np.asarray(shares)
        mean = math.exp(np.mean(np.log(shares)))
        return f"{100 * mean:6.2f} %, worst {100 * shares.min():5.1f} %, {int((shares < 0.85).sum()):4} of {len(shares):5} under 85 %"

    def worst(self, count):
        order = np.argsort(self.shares, kind="stable")[:count]
        return [
            f"{self.cases[at].matrix} {self.cases[at].precision} {self.cases[at].n}: {100 * self.shares[at]:.0f} %"
            for at in order
        ]
