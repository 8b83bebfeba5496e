//! cuSPARSE's functions that come this way.

/// What a product is called in `TARSIA_CUSPARSE_TAKE`.
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
    /// All of them.
    pub const ALL: [Operation; 3] = [Operation::Spmv, Operation::Spmm, Operation::Spgemm];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Operation::Spmv => "spmv",
            Operation::Spmm => "spmm",
            Operation::Spgemm => "spgemm",
        }
    }
}

/// What a function is to the drop-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A step of a product that the drop-in is for.
    Step(Operation),
    /// A call that cuSPARSE always gets: it ends or changes an object that products are computed with, or belongs
    /// to a way of computing them that only cuSPARSE has.
    Cusparse,
}

/// Calls a macro with all functions: their names, and what they are to the drop-in.
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
            cusparseSpMatSetValues: Role::Cusparse,
        }
    };
}
pub(crate) use with_functions;

macro_rules! functions {
    ($($name:ident: $role:expr,)*) => {
        /// A function of cuSPARSE, by its own name.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Function {
            $($name,)*
        }

        impl Function {
            /// All of them; the place of each is its number.
            pub const ALL: &[Function] = &[$(Function::$name,)*];

            /// Its name, with the zero that ends it in C.
            pub fn c_name(self) -> &'static str {
                const NAMES: &[&str] = &[$(concat!(stringify!($name), "\0"),)*];
                NAMES[self as usize]
            }

            /// Its name.
            pub fn name(self) -> &'static str {
                self.c_name().trim_end_matches('\0')
            }

            /// What it is to the drop-in.
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
