//! Names of the library that the command line, the client, the drop-in for cuSPARSE and the tests use besides
//! the C functions. They are not part of the interface: any of them may change with every version. A test
//! (tests/all/house.rs) limits their number and requires a user of each.

// Enums of the C interface under their Rust names.
// Users: the client, the command line and the tests, for arguments and results.
pub use crate::types::enums::{
    BackendKind, ComputeType, DataType, Effort, IndexBase, IndexType, Operation, Order, PointerMode, Reorder,
    SpgemmAlg, SpmmAlg, SpmvAlg, Status,
};
// Users: the tests, for rows of the table of algorithms and for bad arguments.
pub use crate::types::enums::{Format, OpKind, Property};

// Types of arrays, and errors. Users: the client, the command line and the tests.
pub use crate::error::{Error, Result};
pub use crate::types::{Element, Index};

// The table of algorithms. Users: the command `sample`, which names algorithms, and tests, which walk all
// rows.
pub use crate::algorithm::{Algorithm, Query, Row, TABLE};
pub use crate::support::Types;

// Conversions between storage and compute types. Users: `bench` and `demo`.
pub use crate::types::{Accumulator, Storage};

// The library's thread pool. Users: the command line, to read and examine matrices, and tests of panics.
pub use crate::memory::pool::{run as run_in_pool, size as pool_size};

// The cost model for matrices that are not multiplied. Users: `inspect` and `sample`.
pub use crate::matrix::compressed::Pattern;
pub use crate::select::counted::CountedProblem;
pub use crate::select::learned::SENSIBLE;
pub use crate::select::spmm::SpmmStatistics;
pub use crate::select::spmv::statistics::SpmvStatistics;
pub use crate::select::Choice;

// Features for learned row orders, and matrices with reordered rows. Users: `inspect` and `sample`.
pub use crate::reorder::features::{is_drawn, FeatureSet};
pub use crate::reorder::policy::ordered_rows as order_rows;

// Timing on the device, and other vendors' libraries. User: `bench`.
pub use crate::backend::cuda::cublaslt::{CublasLt, Factor, Matmul, Sizes};
pub use crate::backend::cuda::device::{Device, Entered};
pub use crate::backend::cuda::timing::{driver_version, Stopwatch};
pub use crate::types::Address;

// Streams, graphs and kernels for tests of captures, of work in flight, and of products without a plan.
pub use crate::backend::cuda::testing::{fill, Gate, Graph, Stream};
pub use crate::backend::cuda::ONCE_WORKSPACE_BYTES;

// Products of arrays as other libraries' descriptors have them, a module with its operands: the drop-in for cuSPARSE.
pub use crate::direct;

// Number of devices. User: the drop-in for cuSPARSE.
pub use crate::backend::cuda::device::count as count_devices;

// Changing the bytes of decisions, for `sample`, tests and fuzzing; concurrent writers of a cache, for tests.
pub use crate::plan::decisions::bytes::seal as seal_decisions;
pub use crate::plan::PlanCache;
