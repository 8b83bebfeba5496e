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
