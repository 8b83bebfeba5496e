#!/usr/bin/env bash
# Runs tests that others wrote with the cuSPARSE of this machine, without and with libtarsia_cusparse.so, and says what
# fails only with it.
#
# usage: run-suites.sh [--suites DIR] [--results DIR] [--seconds S] SUITE [build] [without] [with] [force] [compare] [again]
#
#   cupy, torch   tests of CuPy and PyTorch, in several processes
#   samples       NVIDIA's programs, compiled here
#   hypre         BoomerAMG with PCG on a 7-point stencil of 128^3 points, by hypre's own driver; compiled here
#   pdlp          linear programs, by cuPDLPx, which is compiled here
#
# build: what is to be compiled, and no more. without, with, force: cuSPARSE alone, the drop-in, and the drop-in with every
# call taken that can be. compare: the results of those that have run. again: what has failed only with the drop-in once
# more, in one process, in all three modes. Without these words: all of them. hypre and pdlp run the modes three times in
# turns, and print their own times. Each mode has S seconds (default 170), after which what has not run is counted as such;
# what was compiled and the results stay in --results (default: results in --suites). --suites: the folder that
# scripts/drop-in-suites has made (default: suites beside this folder). DROP_IN names another library than the bundle's.
#
# Exit code: 1 if something fails only with the drop-in, or could not run.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=common.sh
source "$here/common.sh"

suites=$here/../suites results='' seconds=170 suite='' steps=()
while (($#)); do
    case $1 in
        --help | -h)
            sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        --suites) suites=${2:?} && shift ;;
        --results) results=${2:?} && shift ;;
        --seconds) seconds=${2:?} && shift ;;
        cupy | torch | samples | hypre | pdlp) suite=$1 ;;
        build | without | with | force | compare | again) steps+=("$1") ;;
        *)
            echo "run-suites: $1 is neither a suite nor a step" >&2
            exit 2
            ;;
    esac
    shift
done
[[ -f $suites/$suite.tar.xz ]] || {
    echo "run-suites: there is no $suites/$suite.tar.xz: name a suite that scripts/drop-in-suites has packed" >&2
    exit 2
}
suites=$(cd "$suites" && pwd)
results=${results:-$suites/results}/$suite
mkdir -p "$results"
results=$(cd "$results" && pwd)
unpack
drop_in=${DROP_IN:-$programs/lib/libtarsia_cusparse.so.0}
source=$results/source
if [[ ! -d $source ]]; then
    part=$(mktemp -d "$results/part.XXXXXX")
    decompress <"$suites/$suite.tar.xz" | tar -x -f - -C "$part"
    mv -T "$part" "$source"
fi
cat "$source/SOURCES"

# A mode of the suite, or a comparison, by suites.py.
compared() {
    local arguments=() processes=() kind=()
    case $suite in
        cupy) arguments=(-c "$source/pyproject.toml" --rootdir "$source" "$source/tests/cupyx_tests") ;;
        torch)
            export PYTHONPATH=$source/site:$source/tests${PYTHONPATH:+:$PYTHONPATH}
            arguments=(--rootdir "$source/tests" -k "cuda and (mm or mv or matmul or sampled) and not triton"
                "$source"/tests/test_sparse*.py)
            ;;
        samples)
            kind=(--programs)
            processes=(--processes 4)
            arguments=("$results"/bin/*)
            ;;
    esac
    case $1 in
        build) ;; # has been
        compare) python3 "$here/drop-in/suites.py" compare --results "$results" ;;
        again)
            [[ -s $results/new.json && $(<"$results/new.json") != '[]' && $suite != samples ]] || return 0
            echo "once more, in one process:"
            for mode in without with force; do
                SUITES_ONLY=$results/new.json python3 "$here/drop-in/suites.py" run --mode "$mode" --processes 1 \
                    --drop-in "$drop_in" --seconds 60 --results "$results/again" -- "${arguments[@]}" || true
            done
            python3 "$here/drop-in/suites.py" compare --results "$results/again"
            ;;
        *)
            (cd "$source" && python3 "$here/drop-in/suites.py" run --mode "$1" "${kind[@]}" "${processes[@]}" \
                --drop-in "$drop_in" --seconds "$seconds" --results "$results" -- "${arguments[@]}")
            ;;
    esac
}

# Compiles what is not compiled yet, four at a time; what does not compile, of which $results/build.log has the reasons, is
# no test.
samples_build() {
    local file name compiler runtime=-lcudart libraries
    mkdir -p "$results/bin"
    [[ -e $results/cuda/lib64/libcudart.so ]] || runtime=-lcudart_static
    for file in "$source"/cuSPARSE/*/*_example.c*; do
        name=${file##*/}
        name=${name%_example.*}
        [[ ! -x $results/bin/$name ]] || continue
        case $file in *.c) compiler=("${CC:-cc}" -std=gnu11) ;; *) compiler=("${CXX:-c++}" -std=c++17) ;; esac
        libraries=(-lcusparse)
        ! grep -q cublas "$file" || libraries+=(-lcublas)
        ! grep -q nvrtc "$file" || libraries+=(-lnvrtc)
        ! grep -q '<cuda.h>' "$file" || libraries+=("$(ldconfig -p | sed -n 's/.*=> \(.*libcuda\.so\.1\)$/\1/p' | head -n 1)")
        while (($(jobs -rp | wc -l) >= 4)); do wait -n || true; done
        { "${compiler[@]}" -O2 -w "-I$results/cuda/include" "$file" "-L$results/cuda/lib64" "${libraries[@]}" "$runtime" \
            -Wl,--allow-shlib-undefined -lm -ldl -lpthread -lrt -o "$results/bin/$name" ||
            echo "run-suites: $name does not compile"; } >>"$results/build.log" 2>&1 &
    done
    wait
    grep '^run-suites' "$results/build.log" || true
    compgen -G "$results/bin/*" >/dev/null || {
        tail -n 20 "$results/build.log"
        return 1
    }
}

# Configures a suite by CMake and runs what builds it, the words behind --. $results/cuda has the libraries; the compiler
# is where it is.
cmake_build() {
    local nvcc options=()
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
    export CPATH=$results/cuda/include${CPATH:+:$CPATH} LIBRARY_PATH=$results/cuda/lib64${LIBRARY_PATH:+:$LIBRARY_PATH}
    [[ ! -d $results/cuda/include/cccl ]] || CPATH+=:$results/cuda/include/cccl
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    shift
    if ! { cmake -G Ninja -B "$results/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES="${CUDA_ARCH:-90}" \
        -DCMAKE_CUDA_COMPILER="$(realpath "$nvcc")" -DCUDAToolkit_ROOT="$results/cuda" -DCMAKE_PREFIX_PATH="$results/cuda" \
        "${options[@]}" && "$@"; } >>"$results/build.log" 2>&1; then
        grep -A12 -m3 -E 'error:|FAILED:|CMake Error' "$results/build.log" || tail -n 30 "$results/build.log"
        echo "run-suites: $suite does not compile: $results/build.log"
        return 1
    fi
}

# Only what ij needs of hypre: no matrices of structured grids, half of what nvcc would compile.
hypre_objects() {
    local objects runtime=-lcudart
    [[ -e $results/cuda/lib64/libcudart.so ]] || runtime=-lcudart_static
    mapfile -t objects < <(ninja -C "$results/build" -t targets all | sed -n 's/^\(CMakeFiles\/HYPRE\.dir\/.*\.o\): .*/\1/p' |
        grep -vE '/(struct_mv|struct_ls|sstruct_mv|sstruct_ls)/')
    timeout "${BUILD_SECONDS:-480}" ninja -C "$results/build" "${objects[@]}" test/CMakeFiles/ij.dir/ij.c.o || return 1
    (cd "$results/build" && "${CXX:-c++}" test/CMakeFiles/ij.dir/ij.c.o "${objects[@]}" "-L$results/cuda/lib64" -lcusparse \
        -lcurand "$runtime" -Wl,--allow-shlib-undefined -lm -ldl -lpthread -lrt -o ij)
}

hypre_build() {
    # Toolkits may lack this header, whose functions the CUDA runtime has.
    local header=$results/cuda/include/cuda_profiler_api.h
    [[ -e $header ]] || cat >"$header" <<'HEADER'
#include <cuda_runtime_api.h>
#ifdef __cplusplus
extern "C" {
#endif
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
#ifdef __cplusplus
}
#endif
HEADER
    cmake_build -S "$source/src" -DHYPRE_ENABLE_CUDA=ON -DHYPRE_ENABLE_MPI=OFF -DHYPRE_ENABLE_CUBLAS=OFF \
        -DHYPRE_ENABLE_CUSOLVER=OFF -DHYPRE_ENABLE_UMPIRE=OFF -DHYPRE_ENABLE_DEVICE_MALLOC_ASYNC=ON -DHYPRE_BUILD_TESTS=ON \
        -- hypre_objects
}

pdlp_build() {
    cmake_build -S "$source/cupdlpx" -DFETCHCONTENT_SOURCE_DIR_PSLP="$source/pslp" \
        -DFETCHCONTENT_SOURCE_DIR_ZLIB="$source/zlib" -DFETCHCONTENT_FULLY_DISCONNECTED=ON -DBUILD_SHARED_LIBS=OFF \
        -DCUPDLPX_BUILD_PYTHON=ON -DCUPDLPX_BUILD_CLI=OFF -DCUPDLPX_BUILD_SHARED_LIB=OFF \
        -Dpybind11_DIR="$(python3 -m pybind11 --cmakedir)" -DPython3_EXECUTABLE="$(command -v python3)" \
        -DPYTHON_EXECUTABLE="$(command -v python3)" \
        -- timeout "${BUILD_SECONDS:-480}" ninja -C "$results/build" _cupdlpx_core || return 1
    cp "$results"/build/python_bindings/_cupdlpx_core*.so "$source/cupdlpx/python/cupdlpx/"
}

failed=0
case $suite in
    samples | hypre | pdlp)
        toolkit "$results/cuda"
        export LD_LIBRARY_PATH=$results/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        : >"$results/build.log"
        "${suite}_build" || exit 1
        [[ ${steps[*]-} != build ]] || exit 0
        ;;
esac
# A program that says how long it takes: its modes three times in turns, and the calls of the last round.
timed() {
    local round mode command env
    case $suite in
        hypre)
            # All kernels of the program's own are loaded before its clock begins.
            export CUDA_MODULE_LOADING=EAGER
            command=("$results/build/ij" -n 128 128 128 -solver 1 -memory_device -exec_device -mm_vendor 1 -mv_vendor 1
                -pmis -interptype 6 -rlx 18)
            ;;
        pdlp)
            export PYTHONPATH=$source/cupdlpx/python${PYTHONPATH:+:$PYTHONPATH}
            command=(python3 "$here/drop-in/pdlp.py")
            ;;
    esac
    for round in 1 2 3; do
        for mode in "$@"; do
            env=()
            case $mode in
                with) env=("LD_PRELOAD=$drop_in" TARSIA_CUSPARSE=summary) ;;
                force) env=("LD_PRELOAD=$drop_in" TARSIA_CUSPARSE=force) ;;
            esac
            echo "== $mode, round $round"
            env "${env[@]}" timeout "$seconds" "${command[@]}" >"$results/$mode.$round.log" 2>&1 || {
                echo "== failed ($?): $results/$mode.$round.log"
                tail -n 20 "$results/$mode.$round.log"
                failed=1
            }
            grep -E 'wall clock|Setup:|Solve:|Iterations|Residual|iterations' "$results/$mode.$round.log" || true
        done
    done
    for mode in with force; do
        [[ ! -e $results/$mode.3.log ]] || grep -h 'libtarsia_cusparse' "$results/$mode.3.log" || true
    done
}

case $suite in
    hypre | pdlp)
        # Without a mode it is all of them; there is nothing to compare by name.
        modes=()
        for step in "${steps[@]}"; do
            case $step in without | with | force) modes+=("$step") ;; esac
        done
        ((${#modes[@]})) || modes=(without with force)
        timed "${modes[@]}"
        exit "$failed"
        ;;
esac
((${#steps[@]})) || steps=(without with force compare again)
for step in "${steps[@]}"; do
    compared "$step" || failed=1
done
exit "$failed"
