//! What the command line, the client, the drop-in for cuSPARSE and the tests use of the library beside its
//! C functions. It is no part of the interface: anything here may change with every version. A test counts the names
//! (tests/all/house.rs), and looks for a user of each.

// The enums of the C functions, by the names that the library has for them.
// The client, the command line and the tests: arguments and answers.
pub use crate::types::enums::{
    BackendKind, ComputeType, DataType, Effort, IndexBase, IndexType, Operation, Order, PointerMode, Reorder,
    SpgemmAlg, SpmmAlg, SpmvAlg, Status,
};
// The tests: rows of the table of what is supported, and bad arguments.
pub use crate::types::enums::{Format, OpKind, Property};

// The client, the command line and the tests: types of arrays, and errors.
pub use crate::error::{Error, Result};
pub use crate::types::{Element, Index};

// The table of what is supported. The command line `sample`, which names algorithms, and the tests, which walk all rows.
pub use crate::algorithm::{Algorithm, Query, Row, TABLE};
pub use crate::support::Types;

// Numbers as the kernels take them: `bench` and `demo`.
pub use crate::types::{Accumulator, Storage};

// The library's threads: reading files and looking at matrices in the command line, tests of panics.
pub use crate::memory::pool::{run as run_in_pool, size as pool_size};

// The cost model, of matrices that are never multiplied: `inspect` and `sample`.
pub use crate::matrix::compressed::Pattern;
pub use crate::select::counted::CountedProblem;
pub use crate::select::learned::SENSIBLE;
pub use crate::select::spmm::Survey as SpmmSurvey;
pub use crate::select::spmv::survey::Survey;
pub use crate::select::Choice;

// The features that orders are learned by, and matrices with their rows in an order: `inspect` and `sample`.
pub use crate::reorder::features::{is_drawn, FeatureSet};
pub use crate::reorder::policy::ordered_rows as order_rows;

// The device: timing and other vendors' libraries in `bench`.
pub use crate::backend::cuda::cublaslt::{CublasLt, Factor, Matmul, Sizes};
pub use crate::backend::cuda::device::{Device, Entered};
pub use crate::backend::cuda::timing::{driver_version, Stopwatch};
pub use crate::types::Address;

// The device: tests of captures, of work in flight, and of products without a plan.
pub use crate::backend::cuda::testing::{fill, Gate, Graph, Stream};
pub use crate::backend::cuda::ONCE_WORKSPACE_BYTES;

// Products of arrays as other libraries' descriptors have them, a module with its operands: the drop-in for cuSPARSE.
pub use crate::direct;

// Whether there is a device at all: the drop-in for cuSPARSE.
pub use crate::backend::cuda::device::count as count_devices;

// Decisions that were changed: `sample`, tests and fuzzing. Files that others write at the time: tests.
pub use crate::plan::decisions::bytes::seal as seal_decisions;
pub use crate::plan::PlanCache;
