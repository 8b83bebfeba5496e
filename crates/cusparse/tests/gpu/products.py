#!/usr/bin/env python3
"""Times what users of CuPy and PyTorch do with sparse matrices, from Python, without the drop-in and with it.

usage: products.py [--rows N] [--only WORDS] [--drop-in FILE] [--rounds R]

Matrices: a 7-point stencil, and rows of very different lengths (as in graphs). With --drop-in two processes stay alive, one
without and one with the drop-in, and take turns in each of R rounds; the times are medians from call to end on the device, in
microseconds, in brackets the least and the greatest ratio of a round, and the share of the time without the drop-in in which
kernels of cuSPARSE ran, and in which any kernel did, by PyTorch's profiler. Without it, this process times all by itself.
The error is relative to the sums of magnitudes, or what is said behind it; one that is too large is an exit code of 1.
--only: cases whose names have one of these words, which commas divide.
"""

import argparse
import functools
import inspect
import json
import os
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp

N = (32, 128)


def stencil(n):
    """The 7-point stencil on n^3 points, scaled from both sides, so that it is symmetric and positive definite."""
    line = sp.diags([np.full(n - 1, -1.0), np.full(n, 2.3), np.full(n - 1, -1.0)], [-1, 0, 1])
    one = sp.identity(n)
    whole = sp.kron(sp.kron(line, one), one) + sp.kron(sp.kron(one, line), one) + sp.kron(sp.kron(one, one), line)
    scale = sp.diags(np.random.default_rng(5).uniform(0.7, 1.3, n**3))
    return (scale @ whole @ scale).tocsr()


def skewed(rows, mean, generator):
    """Rows whose lengths have a heavy tail."""
    lengths = np.minimum((generator.pareto(1.3, rows) * mean / 3).astype(np.int64) + 1, rows // 2)
    row = np.repeat(np.arange(rows), lengths)
    col = generator.integers(0, rows, row.size)
    matrix = sp.coo_matrix((generator.standard_normal(row.size), (row, col)), (rows, rows)).tocsr()
    matrix.sum_duplicates()
    return matrix


@functools.lru_cache(maxsize=2)
def columns_of(rows):
    return np.random.default_rng(1).standard_normal((rows, max(N)))


def dense(rows, n):
    return np.ascontiguousarray(columns_of(rows)[:, :n])


def deviation(found, matrix, right):
    """Greatest |error| / (|A| |X|) in 1,000 rows, the longest among them."""
    rows = np.random.default_rng(3).integers(0, matrix.shape[0], 1000)
    rows[0] = np.argmax(np.diff(matrix.indptr))
    part, right = matrix[rows].astype(np.float64), right.astype(np.float64)
    expected, size = part @ right, abs(part) @ abs(right)
    return float(np.max(np.abs(found[rows] - expected) / np.where(size == 0, 1, size)))


class Case:
    """One thing that users do: `call` does it; `error` says how wrong what `call` returns is, of which `most` is right."""

    def __init__(self, call, error, synchronize, most=1e-5):
        self.call, self.error, self.synchronize, self.most = call, error, synchronize, most


def cupy_cases(matrices):
    """Name: a function that makes the case, for CuPy."""
    import cupy
    import cupyx.scipy.sparse as csp
    import cupyx.scipy.sparse.linalg as linalg

    def case(call, error, most=1e-5):
        return Case(call, error, cupy.cuda.Device().synchronize, most)

    def product(matrix, dtype, n, order):
        matrix, host = matrix.astype(dtype), dense(matrix.shape[1], n or 1).astype(dtype)
        a, x = csp.csr_matrix(matrix), cupy.asarray(host, order=order) if n else cupy.asarray(host[:, 0])
        return case(lambda: a @ x, lambda y: deviation(y.get(), matrix, host if n else host[:, 0]))

    def square(matrix, dtype):
        matrix = matrix.astype(dtype)
        a, v = csp.csr_matrix(matrix), dense(matrix.shape[1], 1)[:, 0]

        def error(c):
            # C v = A (A v), the right one in fp64.
            wide = matrix.astype(np.float64)
            size = abs(wide) @ (abs(wide) @ abs(v))
            return float(np.max(np.abs(c.get().astype(np.float64) @ v - wide @ (wide @ v)) / size))

        return case(lambda: a @ a, error)

    def cg(matrix, dtype):
        a, b = csp.csr_matrix(matrix.astype(dtype)), cupy.asarray(dense(matrix.shape[0], 1)[:, 0].astype(dtype))
        tolerance = "rtol" if "rtol" in inspect.signature(linalg.cg).parameters else "tol"

        def error(found):
            x = found[0].get().astype(np.float64)
            right = b.get().astype(np.float64)
            return float(np.linalg.norm(matrix @ x - right) / np.linalg.norm(right))

        return case(lambda: linalg.cg(a, b, maxiter=100, **{tolerance: 1e-30}), error, 1e-4)

    def eigsh(matrix, dtype):
        a = csp.csr_matrix(matrix.astype(dtype))

        def call():
            cupy.random.seed(1)
            return linalg.eigsh(a, k=6, which="LA", maxiter=100)

        def error(found):
            value, vector = (part.get().astype(np.float64) for part in found)
            return float(np.max(np.linalg.norm(matrix @ vector - vector * value, axis=0)) / np.max(value))

        return case(call, error, 0.1)

    made = {}
    for name, matrix in matrices:
        for dtype in (np.float32, np.float64):
            of = f"{name}, {dtype.__name__}"
            made[f"cupy A @ x, {of}"] = functools.partial(product, matrix, dtype, None, "C")
            for n in N:
                for order in "FC":
                    made[f"cupy A @ X, N = {n}, {order} order, {of}"] = functools.partial(product, matrix, dtype, n, order)
            if "7-point" in name:
                made[f"cupy A @ A, {of}"] = functools.partial(square, matrix, dtype)
                made[f"cupy cg, 100 iterations, {of}"] = functools.partial(cg, matrix, dtype)
                made[f"cupy eigsh, 100 steps, {of}"] = functools.partial(eigsh, matrix, dtype)
    return made


def torch_cases(matrices):
    """Name: a function that makes the case, for PyTorch, whose CSR tensors have indices of 64 bits by default."""
    import torch

    def case(call, error, most=1e-5):
        return Case(call, error, torch.cuda.synchronize, most)

    def tensor(matrix, kind):
        csr = torch.sparse_csr_tensor(torch.from_numpy(matrix.indptr.astype(np.int64)),
                                      torch.from_numpy(matrix.indices.astype(np.int64)),
                                      torch.from_numpy(matrix.data), size=matrix.shape).cuda()
        return csr if kind == "CSR" else csr.to_sparse_coo().coalesce()

    def product(matrix, kind, n):
        matrix, host = matrix.astype(np.float32), dense(matrix.shape[1], n or 1).astype(np.float32)
        host = host if n else host[:, 0].copy()
        a, x = tensor(matrix, kind), torch.from_numpy(host).cuda()
        return case(lambda: a @ x, lambda y: deviation(y.cpu().numpy(), matrix, host))

    def backward(matrix, kind, n):
        matrix, host = matrix.astype(np.float32), dense(matrix.shape[1], n).astype(np.float32)
        a, x = tensor(matrix, kind), torch.from_numpy(host).cuda().requires_grad_()
        gradient = torch.from_numpy(host[::-1].copy()).cuda()

        def call():
            x.grad = None
            (a @ x).backward(gradient)
            return x.grad

        return case(call, lambda found: deviation(found.cpu().numpy(), matrix.T.tocsr(), host[::-1]))

    def network(matrix):
        """Three layers of graph convolution, forward and backward."""
        sums = np.asarray(abs(matrix).sum(axis=1)).ravel()
        matrix = (sp.diags(1 / np.maximum(sums, 1e-9)) @ matrix).tocsr().astype(np.float32)
        widths = (128, 128, 128, 32)
        host = dense(matrix.shape[1], widths[0]).astype(np.float32)
        generator = np.random.default_rng(2)
        weights = [generator.standard_normal(pair).astype(np.float32) / np.float32(np.sqrt(pair[0]))
                   for pair in zip(widths, widths[1:])]
        a, x = tensor(matrix, "CSR"), torch.from_numpy(host).cuda()
        layers = [torch.from_numpy(weight).cuda().requires_grad_() for weight in weights]

        def call():
            h = x
            for at, layer in enumerate(layers):
                h = a @ (h @ layer)
                h = torch.relu(h) if at < 2 else h
            for layer in layers:
                layer.grad = None
            h.square().mean().backward()
            return h.detach()

        def error(found):
            h = host.astype(np.float64)
            for at, weight in enumerate(weights):
                h = matrix @ (h @ weight)
                h = np.maximum(h, 0) if at < 2 else h
            return float(np.linalg.norm(found.cpu().numpy() - h) / np.linalg.norm(h))

        # The products with weights are cuBLAS's, in tf32 where PyTorch is set so.
        return case(call, error, 1e-3)

    def attention(matrix, n):
        """A step of graph attention: scores of edges, a softmax over each row, and the product with these values."""
        matrix = matrix.astype(np.float32)
        host = dense(matrix.shape[1], n).astype(np.float32)
        offsets = torch.from_numpy(matrix.indptr.astype(np.int64)).cuda()
        columns = torch.from_numpy(matrix.indices.astype(np.int64)).cuda()
        row = torch.repeat_interleave(torch.arange(matrix.shape[0], device=offsets.device), offsets.diff())
        h = torch.from_numpy(host).cuda()
        of_row, of_column = (torch.from_numpy(dense(n, 2)[:, at].astype(np.float32) / n).cuda() for at in (0, 1))

        @torch.no_grad()
        def call():
            score = torch.nn.functional.leaky_relu((h @ of_row)[row] + (h @ of_column)[columns], 0.2)
            weight = score.exp()
            total = torch.zeros(matrix.shape[0], device=h.device).index_add_(0, row, weight)
            a = torch.sparse_csr_tensor(offsets, columns, weight / total[row], size=matrix.shape)
            return a.values(), a @ h

        def error(found):
            values, result = (part.cpu().numpy() for part in found)
            return deviation(result, sp.csr_matrix((values, matrix.indices, matrix.indptr), matrix.shape), host)

        return case(call, error)

    made = {}
    for name, matrix in matrices:
        made[f"torch CSR @ x, {name}"] = functools.partial(product, matrix, "CSR", None)
        for kind in ("CSR", "COO"):
            for n in N:
                made[f"torch {kind} @ X, N = {n}, {name}"] = functools.partial(product, matrix, kind, n)
                made[f"torch {kind} @ X with backward, N = {n}, {name}"] = functools.partial(backward, matrix, kind, n)
        made[f"torch three-layer GCN, {name}"] = functools.partial(network, matrix)
        made[f"torch attention step, N = 128, {name}"] = functools.partial(attention, matrix, 128)
    return made


def all_cases(options):
    side = round(options.rows ** (1 / 3))
    matrices = [(f"7-point {side}^3", stencil(side)),
                (f"skewed {options.rows}", skewed(options.rows, 10, np.random.default_rng(7)))]
    made = {}
    for cases in (cupy_cases, torch_cases):
        try:
            made.update(cases(matrices))
        except ImportError as error:
            print(f"left out: {error}", file=sys.stderr)
    words = options.only.split(",") if options.only else [""]
    return {name: make for name, make in made.items() if any(word in name for word in words)}


def median_time(case, seconds):
    """Microseconds from the call to its end on the device."""
    case.synchronize()
    times, until = [], time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < until and len(times) < 500):
        begin = time.perf_counter()
        case.call()
        case.synchronize()
        times.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(times))


def device_times(case):
    """Microseconds a call of kernels of cuSPARSE, and of all work of the device; None where no profiler is there."""
    try:
        from torch.profiler import ProfilerActivity, profile
    except ImportError:
        return None
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        for _ in range(5):
            case.call()
        case.synchronize()
    of_device = [event for event in found.events() if "CUDA" in str(event.device_type)]
    spent = [(event.name, event.time_range.elapsed_us()) for event in of_device]
    return (sum(time for name, time in spent if "cusparse" in name) / 5, sum(time for _, time in spent) / 5)


def serve(options):
    """Carries out the lines of stdin: NAME prepares a case, and nothing else is known until the next; answers in JSON."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    cases, case = all_cases(options), None

    def say(**what):
        print(json.dumps(what), file=answer, flush=True)

    say(cases=list(cases))
    for line in sys.stdin:
        word, name = (line.rstrip("\n").split(" ", 1) + [""])[:2]
        try:
            if word == "prepare":
                case = None
                case = cases[name]()
                error = case.error(case.call())
                until = time.perf_counter() + 0.5
                while time.perf_counter() < until:  # kernels are loaded, clocks are up
                    case.call()
                case.synchronize()
                say(error=error, most=case.most)
            elif word == "time":
                say(time=median_time(case, 0.2))
            else:
                say(device=device_times(case))
        except Exception as error:  # a case that the library refuses is no end of the others
            say(failed=f"{type(error).__name__}: {error}"[:300])


class Worker:
    """A process that serves."""

    def __init__(self, options, env):
        command = [sys.executable, __file__, "--serve", "--rows", str(options.rows), "--only", options.only]
        self.process = subprocess.Popen(command, env=dict(os.environ, **env), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(f"the process ended: {self.process.wait()}")
        return json.loads(line)

    def tell(self, *words):
        print(*words, file=self.process.stdin, flush=True)

    def ask(self, *words):
        self.tell(*words)
        return self.read()


def run(options):
    """All cases, in turns of the workers; false if a result is wrong or a case fails only with the drop-in."""
    modes = [{}]
    if options.drop_in:
        modes.append({"LD_PRELOAD": options.drop_in, "TARSIA_CUSPARSE": os.environ.get("TARSIA_CUSPARSE", "summary")})
    workers = [Worker(options, env) for env in modes]
    names = [worker.read()["cases"] for worker in workers][0]
    is_right = bool(names)
    for name in names:
        for worker in workers:
            worker.tell("prepare", name)
        answers = [worker.read() for worker in workers]
        if failed := [answer["failed"] for answer in answers if "failed" in answer]:
            print(f"{name:64} failed in {len(failed)} of {len(workers)} processes: {failed[0]}", flush=True)
            is_right &= len(failed) == len(workers) > 1
            continue
        rounds = [[worker.ask("time")["time"] for worker in workers] for _ in range(options.rounds)]
        device = workers[0].ask("device").get("device")
        found = [float(np.median(times)) for times in zip(*rounds)]
        wrong = [answer for answer in answers if not answer["error"] <= answer["most"]]
        is_right &= not wrong
        line = f"{name:64} {found[0]:10.1f} us"
        if len(workers) > 1:
            ratios = [without / with_it for without, with_it in rounds]
            line += f"  with {found[1]:10.1f}  {found[0] / found[1]:5.2f} times ({min(ratios):.2f} to {max(ratios):.2f})"
        if device:
            line += f"  cuSPARSE {100 * device[0] / found[0]:3.0f} %, device {100 * device[1] / found[0]:3.0f} %"
        line += f"  error {' '.join(format(answer['error'], '.1e') for answer in answers)}{'  WRONG' if wrong else ''}"
        print(line, flush=True)
    for worker in workers:
        worker.process.stdin.close()
        is_right &= worker.process.wait() == 0
    return is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--drop-in")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options)
    elif not run(options):
        sys.exit("a result is wrong, a case failed, or there was none")


if __name__ == "__main__":
    main()
