#!/usr/bin/env python3
"""Runs tests that others wrote without and with the drop-in, and says which fail only with it.

usage: suites.py run --results DIR --mode without|with|force [--drop-in FILE] [--seconds S] [--processes P] -- ARGUMENTS
       suites.py run --programs --results DIR --mode MODE [--drop-in FILE] [--seconds S] [--processes P] -- PROGRAM...
       suites.py compare --results DIR

`run` starts P processes of pytest with these ARGUMENTS, each of which runs every P-th test, so that one process with the
drop-in has many tests, as programs have many products. A test that ends its process, or says nothing for two minutes, has
crashed; the others of that process go on in another one. With --programs each PROGRAM is a test of its own, which passes if
it exits with 0 and prints neither FAILED nor wrong. DIR/MODE.jsonl gets a line a test, DIR/MODE.calls what the drop-in
has counted, DIR/MODE.log all output. `compare` runs nothing.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

MODES = ("without", "with", "force")
SILENCE = 120  # seconds without a word of a test, after which it has crashed


# As a plugin of pytest: takes this process's share of the tests, and writes each outcome when it is known.

def _write(**line):
    with open(os.environ["SUITES_FILE"], "a") as file:
        file.write(json.dumps(line) + "\n")


def _pytest_collection_modifyitems(config, items):
    share, shares = map(int, os.environ["SUITES_SHARE"].split("/"))
    done = {line["test"] for line in read(os.environ["SUITES_FILE"]) if "test" in line}
    mine = items[share::shares]
    if only := os.environ.get("SUITES_ONLY"):
        wanted = set(json.loads(pathlib.Path(only).read_text()))
        mine = [item for item in items if item.nodeid in wanted][share::shares]
    _write(total=len(mine))
    items[:] = [item for item in mine if item.nodeid not in done]


def _pytest_runtest_logstart(nodeid, location):
    _write(test=nodeid, outcome="crashed", message="the process ended")


def _pytest_runtest_logreport(report):
    message = ""
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        message = (crash.message if crash else str(report.longrepr))[:300]
    outcome = "xfailed" if hasattr(report, "wasxfail") and report.skipped else report.outcome
    if report.when == "call" or outcome != "passed":
        _write(test=report.nodeid, outcome=outcome, message=message, seconds=round(report.duration, 2))


def _pytest_collectreport(report):
    if report.failed:
        _write(test=report.nodeid, outcome="failed", message=f"is not collected: {str(report.longrepr)[-280:]}")


if "SUITES_SHARE" in os.environ:
    import pytest

    # After the plugins that deselect.
    pytest_collection_modifyitems = pytest.hookimpl(trylast=True)(_pytest_collection_modifyitems)
    pytest_runtest_logstart = _pytest_runtest_logstart
    pytest_runtest_logreport = _pytest_runtest_logreport
    pytest_collectreport = _pytest_collectreport


# As a program.

def read(name):
    """The lines of a file of results; none if there is no file."""
    if not os.path.exists(name):
        return []
    with open(name) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def outcomes(name):
    """Test: its last line, but a failure, such as that of a test before its teardown, stays."""
    found = {}
    for line in read(name):
        if "test" in line and found.get(line["test"], {}).get("outcome") != "failed":
            found[line["test"]] = line
    return found


def environment(options):
    """That of a mode, from this process's own."""
    env = dict(os.environ, PYTHONHASHSEED="0", PYTHONUNBUFFERED="1")
    if options.mode != "without":
        env["LD_PRELOAD"] = os.pathsep.join(filter(None, [options.drop_in, env.get("LD_PRELOAD")]))
        env["TARSIA_CUSPARSE"] = "force" if options.mode == "force" else "summary"
    return env


def stop(process):
    """Ends a process: by an interrupt, after which pytest and the drop-in say what they have, or by force."""
    for number, patience in ((signal.SIGINT, 20), (signal.SIGABRT, 10), (signal.SIGKILL, 10)):
        if process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                pass


def run_share(options, env, share, until):
    """Runs one share of the tests, in as many processes as crashes need."""
    file = f"{options.results}/{options.mode}.{share}"
    env = dict(env, SUITES_FILE=file, SUITES_SHARE=f"{share}/{options.processes}")
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [os.path.dirname(os.path.abspath(__file__)), env.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "suites",
               "--continue-on-collection-errors"]
    with open(file + ".log", "w") as log:
        for _ in range(30):
            before = len(outcomes(file))
            process = subprocess.Popen(command + options.arguments, env=env, stdout=log, stderr=subprocess.STDOUT)
            heard = time.time()
            while process.poll() is None and time.time() < until:
                time.sleep(0.2)
                if os.path.exists(file):
                    heard = max(heard, os.path.getmtime(file))
                if time.time() - heard > SILENCE + (0 if os.path.exists(file) else SILENCE):
                    log.write(f"suites: no word for {SILENCE} s\n")
                    process.send_signal(signal.SIGABRT)
                    heard = time.time()
            is_late = process.poll() is None
            stop(process)
            if is_late:
                # Not its fault.
                for line in [line for line in outcomes(file).values() if line["outcome"] == "crashed"][-1:]:
                    with open(file, "a") as results:
                        results.write(json.dumps(dict(line, outcome="unfinished", message="no time was left")) + "\n")
            # 0 and 1: all tests ran; 5: none was left. Else the process has crashed; without a new test it would again.
            if is_late or process.returncode in (0, 1, 5) or len(outcomes(file)) == before:
                return


def in_threads(count, work):
    """Runs work(0) to work(count - 1) at the same time."""
    threads = [threading.Thread(target=work, args=(share,)) for share in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_pytest(options, env, until):
    in_threads(options.processes, lambda share: run_share(options, env, share, until))


def run_programs(options, env, until):
    """Runs programs, several at a time, each in its own folder."""
    waiting, lock = collections.deque(options.arguments), threading.Lock()

    def work(share):
        file = f"{options.results}/{options.mode}.{share}"
        with open(file, "w") as results, open(file + ".log", "w") as log:
            while True:
                with lock:
                    if not waiting or time.time() > until:
                        break
                    program = os.path.abspath(waiting.popleft())
                try:
                    ran = subprocess.run([program], env=env, cwd=os.path.dirname(program), stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, timeout=SILENCE, check=False)
                    output, status = ran.stdout.decode(errors="replace"), ran.returncode
                except subprocess.TimeoutExpired as error:
                    output, status = (error.stdout or b"").decode(errors="replace"), "no end"
                is_wrong = status != 0 or re.search(r"FAILED|wrong", output)
                said = [line for line in output.splitlines() if line and "libtarsia_cusparse[" not in line]
                results.write(json.dumps({"test": os.path.basename(program), "outcome": "failed" if is_wrong else "passed",
                                          "message": f"exit {status}: {said[-1] if said else ''}"[:300]}) + "\n")
                log.write(f"== {program}: {status}\n{output}\n")
            if share == 0:
                results.write(json.dumps({"total": len(options.arguments)}) + "\n")

    in_threads(options.processes, work)


def gather(options):
    """Makes one file each of the shares' results, logs and counted calls."""
    base, calls, total = f"{options.results}/{options.mode}", collections.Counter(), 0
    said = collections.Counter()
    with open(base + ".jsonl", "w") as results, open(base + ".log", "w") as log:
        for share in range(options.processes):
            file = f"{base}.{share}"
            total += max((line["total"] for line in read(file) if "total" in line), default=0)
            for line in outcomes(file).values():
                results.write(json.dumps(line) + "\n")
            with open(file + ".log", errors="replace") as part:
                text = part.read()
            log.write(f"=== share {share}\n{text}\n")
            for count, what in re.findall(r"libtarsia_cusparse\[\d+\]: summary: +(\d+) (cusparse.*)", text):
                calls[what] += int(count)
            for line in re.findall(r"libtarsia_cusparse\[\d+\]: (?!summary)(.*)", text):
                said[line] += 1
            for name in (file, file + ".log"):
                if os.path.exists(name):
                    os.remove(name)
        results.write(json.dumps({"total": total}) + "\n")
    with open(base + ".calls", "w") as file:
        for what, count in sorted(calls.items(), key=lambda pair: -pair[1]):
            file.write(f"{count:10} {what}\n")
        for what, count in said.most_common(20):
            file.write(f"{count:10} times said: {what}\n")


def run(options):
    os.makedirs(options.results, exist_ok=True)
    for name in os.listdir(options.results):
        if name.startswith(options.mode + "."):
            os.remove(os.path.join(options.results, name))
    until = time.time() + options.seconds
    (run_programs if options.programs else run_pytest)(options, environment(options), until)
    gather(options)
    print(counts(options.results, options.mode), flush=True)
    if not outcomes(f"{options.results}/{options.mode}.jsonl"):
        with open(f"{options.results}/{options.mode}.log", errors="replace") as file:
            print(file.read()[-3000:])
        sys.exit(f"suites: no test has run: {options.results}/{options.mode}.log")


def counts(results, mode):
    file = f"{results}/{mode}.jsonl"
    found = outcomes(file)
    number = collections.Counter(line["outcome"] for line in found.values())
    total = max([line["total"] for line in read(file) if "total" in line] + [len(found)])
    words = [f"{number[word]} {word}" for word in ("passed", "failed", "crashed", "skipped", "xfailed", "unfinished") if number[word]]
    if total > len(found):
        words.append(f"{total - len(found)} not run")
    return f"{mode:8} " + ", ".join(words or ["nothing"])


def is_bad(line):
    return line is not None and line["outcome"] in ("failed", "crashed")


def compare(options):
    """Prints the outcomes of all modes that have run, what differs, and the calls; exits with 1 if a test fails only with
    the drop-in."""
    modes = [mode for mode in MODES if os.path.exists(f"{options.results}/{mode}.jsonl")]
    found = {mode: outcomes(f"{options.results}/{mode}.jsonl") for mode in modes}
    for mode in modes:
        print(counts(options.results, mode))
    new = {}
    for mode in modes[1:] if modes[:1] == ["without"] else []:
        new[mode] = sorted(test for test, line in found[mode].items()
                           if is_bad(line) and not is_bad(found["without"].get(test)))
        gone = [test for test, line in found["without"].items() if is_bad(line) and test in found[mode]
                and not is_bad(found[mode][test])]
        print(f"\n{mode}: {len(new[mode])} fail that do not fail without the drop-in, {len(gone)} fail only without it")
        for test in new[mode][:60]:
            beside = found["without"].get(test, {"outcome": "not run"})["outcome"]
            print(f"    {test}: {found[mode][test]['outcome']} (without: {beside}): {found[mode][test]['message']!r:.250}")
        for test in gone[:20]:
            print(f"    only without: {test}: {found['without'][test]['message']!r:.200}")
    for mode in [mode for mode in modes if mode != "without"]:
        lines = pathlib.Path(f"{options.results}/{mode}.calls").read_text().rstrip()
        print(f"\ncalls of {mode}:\n{lines or '    none was counted'}")
    pathlib.Path(f"{options.results}/new.json").write_text(json.dumps(sorted(set(sum(new.values(), [])))))
    sys.exit(1 if any(new.values()) else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "compare"])
    parser.add_argument("--results", required=True)
    parser.add_argument("--mode", choices=MODES, default="without")
    parser.add_argument("--drop-in")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 1) * 3 // 4))
    parser.add_argument("--programs", action="store_true")
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:at])
    options.arguments = sys.argv[at + 1:]
    options.results = os.path.abspath(options.results)
    if options.what == "run" and options.mode != "without" and not os.path.exists(options.drop_in or ""):
        parser.error(f"--drop-in is no file: {options.drop_in}")
    (run if options.what == "run" else compare)(options)


if __name__ == "__main__":
    main()
