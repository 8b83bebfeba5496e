//! cust's build script calls [`include_cuda`] to find a toolkit and to link
//! libcuda. Tarsia opens libcuda at run time (src/backend/cuda/libcuda.rs), so
//! there is nothing to find and nothing to link.

use std::path::PathBuf;

/// Does nothing: no search path, no `-lcuda`.
pub fn include_cuda() {}

/// No toolkit is needed.
pub fn find_cuda_root() -> Option<PathBuf> {
    None
}

/// No folder is searched.
pub fn find_cuda_lib_dirs() -> Vec<PathBuf> {
    Vec::new()
}
