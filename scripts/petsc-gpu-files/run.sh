#!/usr/bin/env bash
# Times PETSc with its own matrices on GPUs (aijcusparse) and with Tarsia's (aijtarsia), in turns, on
# one rank and on several, each with a GPU of its own where there are as many. Every product and solve
# is compared with the first type's; a part that fails is named, and the others go on.
#
# usage: run.sh [--host] OUT.tsv [PART...]
#
#   tests       the operations of aijtarsia against those of aij, with matrices on the host, then on GPUs
#   poisson     7 points, 256^3: MatMult, conjugate gradients with Jacobi
#   elasticity  80^3 nodes of three displacements, 81 entries a row: the same
#   weak        7 points, 256^3 on each rank: the same; one rank's line is that of poisson
#   gamg        multigrid: 7 points 128^3, elasticity 40^3: setup, setup with kept interpolation, solve
#   gamg256     7 points 256^3, a few minutes on one rank: the setup's graph is the host's work
#   ptap        MatPtAP, first and with MAT_REUSE_MATRIX: 7 points 128^3, elasticity 32^3
#   all         all but gamg256 (as without a PART)
#
#   --host      where there is no GPU: aij against aijtarsia, with grids of 12^3; shows that everything starts
#
# OUT.tsv gets the lines of the programs, what they say beside goes to OUT.tsv.log. RANKS (1 2) are the
# numbers of ranks, TURNS (9; multigrid and MatPtAP a third) how often each is timed, LIMIT (400) the
# seconds that one program may take, OPTIONS more options of PETSc, SIZE a number that divides all grids.
# MPI is the bundle's Open MPI, which copies halos through the host; with GPU_AWARE=1 it is the one that
# scripts/petsc-gpu --cuda-mpi has added, which copies from one GPU to another. MPI_HOME names another one of
# release 4 or 5, and GPU_AWARE=1 then says that it takes addresses on GPUs. Exit code: 1 if a part failed.

set -euo pipefail

usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

host=
while [[ ${1-} == -* ]]; do
    case $1 in
        --host) host=1 ;;
        --help | -h)
            usage
            exit 0
            ;;
        *)
            usage >&2
            exit 2
            ;;
    esac
    shift
done
(($# > 0)) || {
    usage >&2
    exit 2
}
out=$1
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR/../gpu-bundle-files source=common.sh
source "$here/common.sh"
unpack

cuda=$(mktemp -d)
temporary+=("$cuda")
toolkit "$cuda"
export LD_LIBRARY_PATH=$programs/lib:$cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if [[ -n ${MPI_HOME-} ]]; then
    LD_LIBRARY_PATH=$MPI_HOME/lib:$LD_LIBRARY_PATH
    mpirun=$MPI_HOME/bin/mpirun
else
    # Its configuration holds no path of this machine.
    mpi=$programs/openmpi
    [[ ${GPU_AWARE:-0} == 0 ]] || mpi=$programs/openmpi-cuda
    [[ -d $mpi ]] || {
        echo "run.sh: this folder has no Open MPI for addresses on GPUs: scripts/petsc-gpu --cuda-mpi, or MPI_HOME" >&2
        exit 1
    }
    export OPAL_PREFIX=$mpi PMIX_PREFIX=$mpi PRTE_PREFIX=$mpi
    LD_LIBRARY_PATH=$OPAL_PREFIX/lib:$LD_LIBRARY_PATH
    mpirun=$OPAL_PREFIX/bin/mpirun
    # Ranks of one machine.
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,sm
    [[ ${GPU_AWARE:-0} == 0 ]] || OMPI_MCA_btl=self,vader,smcuda
fi
# As root, with more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 \
    PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe \
    OMPI_MCA_rmaps_base_oversubscribe=1
export PETSC_OPTIONS="-use_gpu_aware_mpi ${GPU_AWARE:-0} ${OPTIONS-}"
missing=$(ldd "$programs/bin/timings" | sed -n 's/^\s*\(.*\) => not found.*/\1/p' | tr '\n' ' ')
if [[ -n $missing ]]; then
    echo "run.sh: this machine lacks $missing" >&2
    exit 1
fi

types=aijcusparse,aijtarsia
if [[ -n $host ]]; then
    types=aij,aijtarsia
    # Ranks may share cores.
    export OMPI_MCA_mpi_yield_when_idle=1
fi
turns=${TURNS:-9}
few=$(((turns + 2) / 3))
read -r -a ranks <<<"${RANKS:-1 2}"
failed=()
: >"$out.log"
header=(-header)
: >"$out"

# size N: the points in each direction of a grid that has N of them without SIZE and --host.
size() {
    if [[ -n $host ]]; then
        echo 12
    else
        echo $(($1 / ${SIZE:-1}))
    fi
}

# launch RANKS PROGRAM ARGUMENT...
launch() {
    local count=$1
    shift
    timeout "${LIMIT:-400}" "$mpirun" -n "$count" --bind-to none "$@" 2>>"$out.log"
}

# time_on RANKS ARGUMENT...: lines for the table.
time_on() {
    local count=$1 begin=$SECONDS
    shift
    echo "== $count ranks: $*" | tee -a "$out.log"
    if launch "$count" "$programs/bin/timings" -types "$types" ${header[@]+"${header[@]}"} "$@" >"$cuda/lines"; then
        header=()
    else
        failed+=("$count ranks: $*")
        echo "== failed, see $out.log"
    fi
    tee -a "$out" <"$cuda/lines"
    echo "== $((SECONDS - begin)) s"
}

part() {
    local count
    for count in "${ranks[@]}"; do
        case $1 in
            tests)
                echo "== $count ranks: operations"
                launch "$count" "$programs/bin/operations" -mat_tarsia_host ||
                    failed+=("$count ranks: operations on the host")
                [[ -n $host ]] || launch "$count" "$programs/bin/operations" ||
                    failed+=("$count ranks: operations on GPUs")
                ;;
            poisson) time_on "$count" -n "$(size 256)" -parts mult,jacobi -turns "$turns" ;;
            elasticity)
                time_on "$count" -problem elasticity -n "$(size 80)" -parts mult,jacobi -turns "$turns"
                ;;
            weak)
                ((count == 1)) || time_on "$count" -weak -n "$(size 256)" -parts mult,jacobi -turns "$turns"
                ;;
            gamg)
                time_on "$count" -n "$(size 128)" -parts gamg -turns "$few"
                time_on "$count" -problem elasticity -n "$(size 40)" -parts gamg -turns "$few"
                ;;
            gamg256) time_on "$count" -n "$(size 256)" -parts gamg -turns "$few" ;;
            ptap)
                time_on "$count" -n "$(size 128)" -parts ptap -turns "$few"
                time_on "$count" -problem elasticity -n "$(size 32)" -parts ptap -turns "$few"
                ;;
            *)
                echo "run.sh: there is no part $1" >&2
                exit 2
                ;;
        esac
    done
}

(($# > 0)) || set -- all
for name in "$@"; do
    if [[ $name == all ]]; then
        for each in tests poisson elasticity weak gamg ptap; do
            part "$each"
        done
    else
        part "$name"
    fi
done
if ((${#failed[@]})); then
    printf 'failed: %s\n' "${failed[@]}"
    exit 1
fi
