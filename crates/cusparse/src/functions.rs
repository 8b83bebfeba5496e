//! The functions of cuSPARSE that the drop-in intercepts.

/// Kind of product, as `TARSIA_CUSPARSE_TAKE` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sparse matrix times dense vector.
    Spmv,
    /// Sparse matrix times dense matrix.
    Spmm,
    /// Sparse matrix times sparse matrix.
    Spgemm,
}

impl Operation {
    /// All kinds of products.
    pub const ALL: [Operation; 3] = [Operation::Spmv, Operation::Spmm, Operation::Spgemm];

    /// Returns the word for the operation in `TARSIA_CUSPARSE_TAKE`.
    pub fn word(self) -> &'static str {
        match self {
            Operation::Spmv => "spmv",
            Operation::Spmm => "spmm",
            Operation::Spgemm => "spgemm",
        }
    }
}

/// Role of a function in the drop-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Step of a product that the drop-in may compute.
    Step(Operation),
    /// Function that cuSPARSE always gets: it destroys or changes an object that products use, or belongs to
    /// an interface that only cuSPARSE has.
    Cusparse,
}

/// Calls a macro with the names and roles of all intercepted functions.
macro_rules! with_functions {
    ($then:ident) => {
        $then! {
            cusparseSpMV: SPMV,
            cusparseSpMV_bufferSize: SPMV,
            cusparseSpMV_preprocess: SPMV,
            cusparseSpMVOp: SPMV,
            cusparseSpMVOp_bufferSize: SPMV,
            cusparseSpMVOp_createDescr: SPMV,
            cusparseSpMVOp_createPlan: SPMV,
            cusparseSpMVOp_destroyDescr: SPMV,
            cusparseSpMVOp_destroyPlan: SPMV,
            cusparseSpMVOp_setGlobalUserData: SPMV,
            cusparseSpMM: SPMM,
            cusparseSpMM_bufferSize: SPMM,
            cusparseSpMM_preprocess: SPMM,
            cusparseSpGEMM_createDescr: SPGEMM,
            cusparseSpGEMM_destroyDescr: SPGEMM,
            cusparseSpGEMM_workEstimation: SPGEMM,
            cusparseSpGEMM_getNumProducts: SPGEMM,
            cusparseSpGEMM_estimateMemory: SPGEMM,
            cusparseSpGEMM_compute: SPGEMM,
            cusparseSpGEMM_copy: SPGEMM,
            cusparseSpGEMMreuse_workEstimation: Role::Cusparse,
            cusparseSpGEMMreuse_nnz: Role::Cusparse,
            cusparseSpGEMMreuse_copy: Role::Cusparse,
            cusparseSpGEMMreuse_compute: Role::Cusparse,
            cusparseDestroy: Role::Cusparse,
            cusparseDestroySpMat: Role::Cusparse,
            cusparseCsrSetPointers: Role::Cusparse,
            cusparseCscSetPointers: Role::Cusparse,
            cusparseSpMatSetValues: Role::Cusparse,
        }
    };
}
pub(crate) use with_functions;

macro_rules! functions {
    ($($name:ident: $role:expr,)*) => {
        /// Intercepted function of cuSPARSE, by its own name.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Function {
            $($name,)*
        }

        impl Function {
            /// All functions, in the order of their numbers.
            pub const ALL: &[Function] = &[$(Function::$name,)*];

            /// Returns the name of the function, with C's terminating zero.
            pub fn c_name(self) -> &'static str {
                const NAMES: &[&str] = &[$(concat!(stringify!($name), "\0"),)*];
                NAMES[self as usize]
            }

            /// Returns the name of the function.
            pub fn name(self) -> &'static str {
                self.c_name().trim_end_matches('\0')
            }

            /// Returns the role of the function in the drop-in.
            pub fn role(self) -> Role {
                const ROLES: &[Role] = &[$($role,)*];
                ROLES[self as usize]
            }
        }
    };
}

const SPMV: Role = Role::Step(Operation::Spmv);
const SPMM: Role = Role::Step(Operation::Spmm);
const SPGEMM: Role = Role::Step(Operation::Spgemm);

with_functions!(functions);
