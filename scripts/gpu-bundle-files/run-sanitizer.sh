#!/usr/bin/env bash
# Runs compute-sanitizer's tools (memcheck, racecheck, initcheck, synccheck) over small tests.
#
# usage: run-sanitizer.sh [FILTER...]
#
#   FILTER   tests whose names contain one of these; default: a few of each operation
#
# COMPUTE_SANITIZER names the program, else PATH, CUDA_HOME and /usr/local/cuda are searched. TOOLS
# chooses the tools, OUT the folder of the logs (current folder). One line a tool; exit code: 0 if
# none found anything, 2 if there is no compute-sanitizer.

set -euo pipefail

if [[ ${1-} == --help ]]; then
    sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 0
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=common.sh
source "$here/common.sh"
unpack
sanitizer=${COMPUTE_SANITIZER:-}
for candidate in "$(command -v compute-sanitizer || true)" ${CUDA_HOME:+"$CUDA_HOME/bin/compute-sanitizer"} \
    /usr/local/cuda/bin/compute-sanitizer; do
    [[ -z $sanitizer && -x $candidate ]] && sanitizer=$candidate
done
if [[ -z $sanitizer ]]; then
    echo "run-sanitizer: no compute-sanitizer on this machine" >&2
    exit 2
fi

filters=("$@")
((${#filters[@]})) || filters=(oracle:: properties::)
export TARSIA_TEST_BACKEND=cuda TARSIA_TEST_ROOT=$here
# Each array is an allocation of its own, whose ends the tools know.
export TARSIA_CUDA_MEMORY_CACHE=0
# A tool slows kernels down 10 to 100 times: small matrices, few random cases.
export TARSIA_TEST_SMALL=1 TARSIA_TEST_CASES=${TARSIA_TEST_CASES:-4}
logs=${OUT:-.}
mkdir -p "$logs"
failed=0
for tool in ${TOOLS:-memcheck racecheck initcheck synccheck}; do
    # Calls that fail are part of the tests; what kernels do is what is looked at.
    options=(--tool "$tool" --error-exitcode 99 --target-processes application-only)
    [[ $tool == memcheck ]] && options+=(--report-api-errors no)
    log=$logs/sanitizer-$tool.log
    code=0
    start=$SECONDS
    "$sanitizer" "${options[@]}" "$programs/bin/tests" --test-threads 1 "${skip[@]}" "${filters[@]}" \
        >"$log" 2>&1 || code=$?
    passed=$(sed -n 's/^test result: .* \([0-9]*\) passed.*/\1/p' "$log" | tail -n 1)
    # No test, no finding: that is a filter without a match.
    if ((code == 0 && ${passed:-0} > 0)); then
        result=PASS
    else
        result=FAIL
        failed=$((failed + 1))
    fi
    summary=$(sed -n 's/^=* *\(ERROR SUMMARY.*\|RACECHECK SUMMARY.*\)/\1/p' "$log" | tail -n 1)
    echo "$result $tool: ${passed:-0} tests, exit code $code, $((SECONDS - start)) s; ${summary:-no summary}; $log"
done
((failed == 0))
