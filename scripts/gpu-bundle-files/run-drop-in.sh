#!/usr/bin/env bash
# Tests and times libtarsia_cusparse.so in front of the cuSPARSE of this machine.
#
# usage: run-drop-in.sh [traps] [host-time] [products [ARGUMENTS of products.py]]
#
#   traps        what programs do with cuSPARSE that a library in front of it might get wrong: with cuSPARSE alone, with
#                the drop-in, and twice with every served shape taken, whose results must have the same bits
#   host-time    host time of a call: with cuSPARSE alone, forwarded, and taken
#   products     what users of CuPy and PyTorch do, in turns without and with the drop-in, where python3 has them
#
# Without a word: all three. The first two are compiled here by CC (cc) and need the headers and libraries of cuSPARSE and
# the CUDA runtime: of CUDA_HOME, CUDA_PATH, /usr/local/cuda or NVIDIA's Python packages. Exit code: 1 if something is wrong.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=common.sh
source "$here/common.sh"
case ${1-} in
    --help | -h)
        sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 0
        ;;
esac
unpack
drop_in=$programs/lib/libtarsia_cusparse.so.0
sources=$here/drop-in
work=$(mktemp -d)
temporary+=("$work")
failed=0

# Compiles a program of the bundle, with a header and a library that are found in one of these folders.
compile() {
    local name=$1 folder file flags=() cusparse='' runtime=''
    while IFS= read -r folder; do
        [[ -d $folder/include ]] && flags+=("-I$folder/include")
        for file in "$folder"/lib64/libcusparse.so* "$folder"/lib/libcusparse.so* \
            "$folder"/targets/*/lib/libcusparse.so*; do
            [[ -n $cusparse || ! -f $file ]] || cusparse=$file
        done
        for file in "$folder"/lib64/libcudart.so* "$folder"/lib/libcudart.so* "$folder"/targets/*/lib/libcudart.so* \
            "$folder"/lib64/libcudart_static.a; do
            [[ -n $runtime || ! -f $file ]] || runtime=$file
        done
    done < <(cuda_folders)
    if [[ -z $cusparse || -z $runtime ]]; then
        echo "run-drop-in: found cuSPARSE '$cusparse' and the CUDA runtime '$runtime': $name cannot be compiled" >&2
        return 1
    fi
    [[ $name != traps ]] || echo "compiled with $cusparse and $runtime"
    "${CC:-cc}" -std=c11 -O1 -Wno-deprecated-declarations "$sources/$name.c" "${flags[@]}" "$cusparse" "$runtime" \
        "-Wl,-rpath,$(dirname "$cusparse"):$(dirname "$runtime")" -Wl,--allow-shlib-undefined -lm -lpthread -ldl -lrt \
        -o "$work/$name"
}

# A command with a title; a failure is kept.
try() {
    echo
    echo "== $1"
    shift
    "$@" || {
        echo "== failed ($?): $*"
        failed=1
    }
}

# A command whose output goes to a file, too.
keep() {
    local status=0 file=$1
    shift
    "$@" >"$file" || status=$?
    cat "$file"
    return "$status"
}

traps() {
    compile traps || return 1
    local without=0
    echo
    echo "== cuSPARSE alone"
    "$work/traps" || without=1
    ((without == 0)) || echo "== cuSPARSE alone fails: compare the lines"
    try "with the drop-in" env TARSIA_CUSPARSE=summary "LD_PRELOAD=$drop_in" "$work/traps"
    for run in 1 2; do
        try "every served shape taken, run $run" keep "$work/run$run" \
            env TARSIA_CUSPARSE=force "LD_PRELOAD=$drop_in" "$work/traps"
    done
    if [[ $(grep '^bits' "$work/run1") != "$(grep '^bits' "$work/run2")" ]]; then
        echo "== two processes have other bits"
        failed=1
    fi
    # cuSPARSE promises nothing of these: the lines are to be compared.
    echo
    echo "== descriptors that say less than the arrays have: cuSPARSE alone, and with the drop-in"
    "$work/traps" views || true
    env "LD_PRELOAD=$drop_in" "$work/traps" views || true
}

host_time() {
    compile host_time || return 1
    try "cuSPARSE alone" "$work/host_time"
    try "forwarded" env TARSIA_CUSPARSE_TAKE=spgemm "LD_PRELOAD=$drop_in" "$work/host_time"
    try "taken, SpMM forwarded by a rule" env "LD_PRELOAD=$drop_in" "$work/host_time"
    try "taken" env TARSIA_CUSPARSE=force "LD_PRELOAD=$drop_in" "$work/host_time"
}

products() {
    try "cuSPARSE alone and with the drop-in, in turns" python3 "$sources/products.py" --drop-in "$drop_in" "$@"
}

(($# > 0)) || set -- traps host-time products
while (($#)); do
    case $1 in
        traps) traps || failed=1 ;;
        host-time) host_time || failed=1 ;;
        products)
            shift
            products "$@"
            break
            ;;
        *)
            echo "run-drop-in: $1 is none of traps, host-time, products" >&2
            exit 2
            ;;
    esac
    shift
done
exit "$failed"
