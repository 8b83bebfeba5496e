#!/usr/bin/env bash
# Makes the comparison matrices on this machine, times products with them, writes a table. They come
# from the bundle's generator if it has one, else from the gallery of the command line.
#
# usage: run-bench.sh OUT.tsv [ARGUMENTS of `tarsia bench`, such as --op spmv --types f64
#                               --against cusparse --append --time-limit 500]
#
# MATRICES names a part of the matrices ("cant webbase"). The packed matrices of the bundle are timed
# too, if it has any and MATRICES is not set. TMPDIR is where the matrices are made (about 2 GB), and
# TARSIA_BENCH_MATRICES a folder to keep them in between runs. TARSIA_TEST_BACKEND chooses another
# backend (host). Exit code: that of `tarsia bench`, 1 if a result is wrong.

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
names=(mc2depi cant consph pwtk shipsec1 conf5 webbase rmat20 rmat16 hpcg128 poisson160 cop20k scircuit
    dc2 uniform mip1 si41 gupta3 tsopf band64 band256 band1024 dnn90 dnn80 mac_econ)
if [[ -n ${MATRICES-} ]]; then
    read -r -a names <<<"$MATRICES"
fi

files=() gallery=()
if [[ -x $programs/bin/generate ]]; then
    if [[ -n ${TARSIA_BENCH_MATRICES-} ]]; then
        folder=$TARSIA_BENCH_MATRICES
        mkdir -p "$folder"
    else
        folder=$(mktemp -d)
        temporary+=("$folder")
    fi
    # Made under another name first: what is there is whole.
    # shellcheck disable=SC2016
    printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I{} sh -c \
        '[ -e "$2/$3.bin" ] || { "$1" "$3" "$2/$3.part" >/dev/null && mv "$2/$3.part" "$2/$3.bin"; }' \
        sh "$programs/bin/generate" "$folder" {}
    for name in "${names[@]}"; do
        files+=("$folder/$name.bin")
    done
else
    gallery=(--gallery "$(
        IFS=,
        echo "${names[*]}"
    )")
fi
if [[ -z ${MATRICES-} && -d $here/matrices ]]; then
    files+=("$here"/matrices/*.tsm)
fi
"$programs/bin/tarsia" bench ${files[@]+"${files[@]}"} ${gallery[@]+"${gallery[@]}"} --backend "${TARSIA_TEST_BACKEND:-cuda}" --out "$out" "$@"
