# Sourced by the run scripts, which set $here: unpacks the programs, once, and sets $programs.
# shellcheck shell=bash disable=SC2154,SC2034

# Tests that need a compiler or the source tree.
skip=(--skip abi:: --skip cpp:: --skip driver:: --skip examples:: --skip fortran:: --skip generated::
    --skip install:: --skip process:: --skip kernels::every_kernel_file_has_a_report --skip house::
    --skip kernels::compiled_kernels_are_those_of_the_lists
    --skip support::every_algorithm_has_a_file_of_kernels --skip support::every_algorithm_has_a_page --skip docs::)

# Folders that go when the script ends.
temporary=()
trap '((${#temporary[@]} == 0)) || rm -rf "${temporary[@]}"' EXIT

decompress() {
    # The bundle's own is there if it could be built; the others come with most systems.
    if [[ -x $here/unxz ]]; then
        "$here/unxz"
    elif command -v xz >/dev/null; then
        xz -dc
    elif command -v python3 >/dev/null; then
        python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.stdin.buffer), sys.stdout.buffer)'
    else
        echo "neither unxz in the bundle, nor xz, nor python3: $here/programs.tar.xz stays packed" >&2
        return 1
    fi
}

unpack() {
    programs=$here/programs
    [[ ! -d $programs ]] || return 0
    # Next to the archive, to stay; where nothing can be written there, for this run.
    local part
    if part=$(mktemp -d "$here/unpacking.XXXXXX" 2>/dev/null); then
        chmod 755 "$part"
    else
        part=$(mktemp -d)
        programs=$part
        temporary+=("$part")
    fi
    decompress <"$here/programs.tar.xz" | tar -x -f - -C "$part"
    if [[ $programs != "$part" ]] && ! mv -T "$part" "$programs" 2>/dev/null; then
        # Another run was faster.
        rm -rf "$part"
        [[ -d $programs ]]
    fi
}

# Folders of NVIDIA's Python packages, whose names depend on the version of CUDA.
packages() {
    python3 - <<'PYTHON' 2>/dev/null || true
import glob, os, site, sys
for base in site.getsitepackages() + [site.getusersitepackages()] + sys.path:
    for folder in sorted(glob.glob(os.path.join(base, "nvidia", "*"))):
        print(folder)
PYTHON
}

# Where headers and libraries of CUDA may be, the first first.
cuda_folders() {
    local nvcc
    printf '%s\n' "${CUDA_HOME:-/nowhere}" "${CUDA_PATH:-/nowhere}" /usr/local/cuda
    nvcc=$(command -v nvcc || true)
    [[ -z $nvcc ]] || dirname "$(dirname "$(realpath "$nvcc")")"
    packages
}

# Makes a folder with include and lib64 of links to all that cuda_folders has: toolkits of machines may lack libraries
# that Python packages have, which in turn have no names without a version.
toolkit() {
    local folder file name
    [[ ! -e $1/lib64 ]] || return 0
    mkdir -p "$1"/{include,lib64}
    while IFS= read -r folder; do
        for file in "$folder"/include/* "$folder"/targets/x86_64-linux/include/*; do
            [[ ! -e $file || -e $1/include/${file##*/} ]] || ln -s "$(realpath "$file")" "$1/include/"
        done
        for file in "$folder"/{lib64,lib,targets/x86_64-linux/lib}/lib*.{so,so.*,a}; do
            name=${file##*/}
            [[ ! -e $file || -e $1/lib64/$name ]] || ln -s "$(realpath "$file")" "$1/lib64/$name"
            [[ ! -e $file || $name != *.so.* || -e $1/lib64/${name%%.so.*}.so ]] ||
                ln -s "$(realpath "$file")" "$1/lib64/${name%%.so.*}.so"
        done
    done < <(cuda_folders)
}
