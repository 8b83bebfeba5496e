//! What the command line, the client, the drop-in for cuSPARSE and the tests use of the library beside its
//! C functions. It is no part of the interface: anything here may change with every version.

// Everybody: the enums of the C functions, types of values, and errors.
pub use crate::error::{Error, Result};
pub use crate::types::enums::*;
pub use crate::types::{Element, Index};

// The table of what is supported: `inspect`, `sample` and the tests; its text is in docs/formats-and-types.md.
pub use crate::algorithm::{find as find_rows, markdown as support_table, Algorithm, Query, Row, TABLE};
pub use crate::support::Types;

// Numbers as the kernels take them: `bench` and `demo`.
pub use crate::types::{Accumulator, Storage};

// The library's threads: reading files and looking at matrices in the command line, tests of panics.
pub use crate::memory::pool::{run as run_in_pool, size as pool_size};

// The cost model, of matrices that are never multiplied: `inspect` and `sample`.
pub use crate::matrix::compressed::Pattern;
pub use crate::select::counted::CountedProblem;
pub use crate::select::spmm::Survey as SpmmSurvey;
pub use crate::select::spmv::survey::Survey;
pub use crate::select::Choice;

// What is learned from measurements, and matrices with their rows in an order: `sample`.
pub use crate::reorder::features::{FeatureSet, NAMES as FEATURE_NAMES, VERSION as FEATURES_VERSION};
pub use crate::reorder::policy::ordered_rows as order_rows;
pub use crate::select::learned::{
    spmm as learned_spmm, SENSIBLE, SPMM as LEARNED_SPMM, VERSION as LEARNED_VERSION,
};

// Numbers about a matrix: `inspect` and `sample`.
pub use crate::reorder::features::is_drawn;

// The device: timing and other vendors' libraries in `bench`, tests of captures and of work in flight.
pub use crate::backend::cuda::cublaslt::{CublasLt, Factor, Matmul, Sizes};
pub use crate::backend::cuda::device::{Device, Entered};
pub use crate::backend::cuda::testing::{fill, Gate, Graph, Stream};
pub use crate::backend::cuda::timing::{driver_version, Stopwatch};
pub use crate::backend::cuda::ONCE_WORKSPACE_BYTES;
pub use crate::types::Address;

// Whether there is a device at all: the drop-in for cuSPARSE.
pub use crate::backend::cuda::device::count as count_devices;

// Tests and fuzzing of decisions that were changed, and tests of files that others write at the time.
pub use crate::plan::decisions::bytes::seal as seal_decisions;
pub use crate::plan::PlanCache;
