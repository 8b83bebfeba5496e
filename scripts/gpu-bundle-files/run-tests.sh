#!/usr/bin/env bash
# Runs the integration tests, the examples, the test of fork() and the demo on the CUDA backend.
#
# usage: run-tests.sh [--log FILE] [ARGUMENTS of the test executable, such as a filter]
#
#   --log FILE   all output; default tarsia-tests.log in the current folder
#
# Left out are the tests of compilers, generated files, symbol tables and pretended drivers: they need
# the source tree and ran where this was built. With ARGUMENTS only tests run, no examples.
# TARSIA_TEST_BACKEND chooses another backend (host). Exit code: 0 if everything passed.

set -euo pipefail

log=tarsia-tests.log
if [[ ${1-} == --log ]]; then
    log=${2:?--log needs a file}
    shift 2
fi
if [[ ${1-} == --help ]]; then
    sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 0
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=common.sh
source "$here/common.sh"
unpack
export TARSIA_TEST_BACKEND=${TARSIA_TEST_BACKEND:-cuda}
# Where tests that look for files find them.
export TARSIA_TEST_ROOT=$here
failed=0
: >"$log"

say() { echo "$*" | tee -a "$log"; }

# check NAME COMMAND...: one line, the output in the log.
check() {
    local name=$1 code=0 start=$SECONDS
    shift
    say "== $name"
    "$@" >>"$log" 2>&1 || code=$?
    if ((code == 0)); then
        say "PASS $name ($((SECONDS - start)) s)"
    elif ((code == 77)); then
        say "SKIP $name: it cannot run here"
    else
        say "FAIL $name: exit code $code ($((SECONDS - start)) s)"
        failed=$((failed + 1))
    fi
}

say "$(head -n 1 "$here/BUNDLE"), backend $TARSIA_TEST_BACKEND"
say "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no nvidia-smi')"
check tests "$programs/bin/tests" "${skip[@]}" "$@"
# What failed, and what was skipped on this machine.
grep -E '^(test result|SKIP|test .*FAILED)|^    [a-z_]+::[a-z_:0-9]+$' "$log" | sort -u || true
if (($# == 0)); then
    for program in "$programs"/examples/*; do
        check "example ${program##*/}" "$program"
    done
    check fork "$programs/bin/fork" "$TARSIA_TEST_BACKEND"
    # Left out where there was no C++ compiler.
    for program in "$programs"/bin/cpp_*; do
        [[ -x $program ]] || continue
        folder=$(mktemp -d)
        temporary+=("$folder")
        check "${program##*/}" "$program" "$TARSIA_TEST_BACKEND" "$folder"
    done
    check demo "$programs/bin/tarsia" demo --size 16x8x8 --backend "$TARSIA_TEST_BACKEND"
fi
say "$failed failed; the log is $log"
((failed == 0))
