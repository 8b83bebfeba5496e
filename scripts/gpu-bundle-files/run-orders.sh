#!/usr/bin/env bash
# Times SpMM `csr` with the rows in their own order and in each order by name (tarsiaPlan_setReorder) on
# matrices of up to 100,000 rows, and prints a table like table I of Mehrabi et al., "Learning sparse matrix
# row permutations for efficient SpMM on GPU architectures": most, mean and least speed-up, and the oracle.
#
# usage: run-orders.sh OUT.tsv [ARGUMENTS of `tarsia bench`, such as --n 512 --alg csr,row --append
#                               --time-limit 500]
#
# MATRICES names other matrices of the gallery ("cant dnn90"). Without it the packed matrices of the bundle
# take part, if it has any. TARSIA_TEST_BACKEND chooses another backend (host). Exit code: that of
# `tarsia bench`, 1 if a result is wrong.

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
unpack
names=(band64 band256 dnn90 dnn80 conf5 cant consph gupta3 tsopf rmat16 mip1 lattice4d wilson6 markov400 hubs
    buses pruned70 pruned95 pruned98tall skewed90 gaps shuffled27 blocks16 graph5 band401 plate)
if [[ -n ${MATRICES-} ]]; then
    read -r -a names <<<"$MATRICES"
fi
files=()
if [[ -z ${MATRICES-} && -d $here/matrices ]]; then
    files=("$here"/matrices/*.tsm)
fi
[[ " $* " == *" --n "* ]] || set -- --n 512 "$@"
[[ " $* " == *" --alg "* ]] || set -- --alg csr "$@"
gallery=$(
    IFS=,
    echo "${names[*]}"
)
"$programs/bin/tarsia" bench ${files[@]+"${files[@]}"} --gallery "$gallery" \
    --backend "${TARSIA_TEST_BACKEND:-cuda}" --out "$out" --op spmm --types f32 --orders col --reorder all \
    --repeat 7 "$@"
