#!/usr/bin/env bash
# Times the Galerkin products of the bundle's multigrid hierarchies, A·P and R·(A·P) of every level, first
# time and with new values, and writes a table.
#
# usage: run-galerkin.sh OUT.tsv [ARGUMENTS of `tarsia bench`, such as --types f64,f32 --against cusparse
#                                  --append --time-limit 500]
#
# HIERARCHIES names some of them ("sa-poisson128 sa-elasticity30"). Precision is f64 unless the arguments say
# another. TARSIA_TEST_BACKEND chooses another backend (host). Exit code: that of `tarsia bench`, 1 if a
# result is wrong.

set -euo pipefail

if (($# == 0)) || [[ $1 == -* ]]; then
    sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
out=$1
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=common.sh
source "$here/common.sh"
if [[ -n ${HIERARCHIES-} ]]; then
    read -r -a names <<<"$HIERARCHIES"
    folders=("${names[@]/#/$here/hierarchies/}")
elif [[ -d $here/hierarchies ]]; then
    folders=("$here"/hierarchies/*/)
else
    echo "run-galerkin: the bundle has no hierarchies; scripts/gpu-bundle --hierarchies puts them into it" >&2
    exit 2
fi
unpack
[[ " $* " == *" --types "* ]] || set -- --types f64 "$@"
"$programs/bin/tarsia" bench --hierarchy "${folders[@]}" --op spgemm \
    --backend "${TARSIA_TEST_BACKEND:-cuda}" --out "$out" "$@"
