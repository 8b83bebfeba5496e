//! Data types, index types, operations, orders: the vocabulary that every
//! other module shares. Numbers are the ones of the C enums.

use std::ops::{Add, AddAssign, Mul};

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

/// Defines an enum whose values are the ones of a C enum, with the C name of
/// each, the list of all, and the conversion from an unchecked integer.
macro_rules! code_enum {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$vmeta:meta])* $variant:ident = $code:literal, $c_name:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i32)]
        pub enum $name { $($(#[$vmeta])* $variant = $code,)* }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The value with this number, if there is one.
            pub fn from_code(code: i32) -> Option<Self> {
                match code { $($code => Some($name::$variant),)* _ => None }
            }

            /// The number in the C enum.
            pub fn code(self) -> i32 { self as i32 }

            /// The name of the C enumerator.
            pub fn c_name(self) -> &'static str {
                match self { $($name::$variant => $c_name,)* }
            }
        }
    };
}
pub(crate) use code_enum;

code_enum! {
    /// Type of stored values; the numbers are those of `cudaDataType`.
    pub enum DataType {
        /// 32-bit real.
        R32F = 0, "TARSIA_R_32F";
        /// 64-bit real.
        R64F = 1, "TARSIA_R_64F";
        /// IEEE half.
        R16F = 2, "TARSIA_R_16F";
        /// 8-bit integer (no operation takes it yet).
        R8I = 3, "TARSIA_R_8I";
        /// Complex of two 32-bit reals.
        C32F = 4, "TARSIA_C_32F";
        /// Complex of two 64-bit reals.
        C64F = 5, "TARSIA_C_64F";
        /// 32-bit integer (no operation takes it yet).
        R32I = 10, "TARSIA_R_32I";
        /// bfloat16.
        R16BF = 14, "TARSIA_R_16BF";
    }
}

impl DataType {
    /// Bytes of one value.
    pub fn size(self) -> usize {
        match self {
            DataType::R8I => 1,
            DataType::R16F | DataType::R16BF => 2,
            DataType::R32F | DataType::R32I => 4,
            DataType::R64F | DataType::C32F => 8,
            DataType::C64F => 16,
        }
    }

    /// Alignment that a pointer to values must have, in bytes.
    pub fn align(self) -> usize {
        match self {
            DataType::C32F => 4,
            DataType::C64F => 8,
            other => other.size(),
        }
    }

    /// Whether values have an imaginary part.
    pub fn is_complex(self) -> bool {
        matches!(self, DataType::C32F | DataType::C64F)
    }

    /// Short name: `fp64`, `bf16`, `complex fp32` ….
    pub fn short(self) -> &'static str {
        match self {
            DataType::R32F => "fp32",
            DataType::R64F => "fp64",
            DataType::R16F => "fp16",
            DataType::R8I => "int8",
            DataType::C32F => "complex fp32",
            DataType::C64F => "complex fp64",
            DataType::R32I => "int32",
            DataType::R16BF => "bf16",
        }
    }
}

code_enum! {
    /// Type in which products are formed and summed, and of alpha and beta.
    pub enum ComputeType {
        /// 32-bit real.
        R32F = 0, "TARSIA_COMPUTE_32F";
        /// 64-bit real.
        R64F = 1, "TARSIA_COMPUTE_64F";
        /// Complex of two 32-bit reals.
        C32F = 4, "TARSIA_COMPUTE_C_32F";
        /// Complex of two 64-bit reals.
        C64F = 5, "TARSIA_COMPUTE_C_64F";
        /// 32-bit real whose factors may be rounded to TF32 (11 significant
        /// bits) before they are multiplied; sums are 32-bit.
        Tf32 = 100, "TARSIA_COMPUTE_TF32";
        /// [`R32F`](ComputeType::R32F) by IEEE operations of that type alone.
        R32FPedantic = 101, "TARSIA_COMPUTE_32F_PEDANTIC";
        /// [`R64F`](ComputeType::R64F) by IEEE operations of that type alone.
        R64FPedantic = 102, "TARSIA_COMPUTE_64F_PEDANTIC";
    }
}

impl ComputeType {
    /// Type of alpha and beta.
    pub fn scalar(self) -> DataType {
        match self {
            ComputeType::R32F | ComputeType::Tf32 | ComputeType::R32FPedantic => DataType::R32F,
            ComputeType::R64F | ComputeType::R64FPedantic => DataType::R64F,
            ComputeType::C32F => DataType::C32F,
            ComputeType::C64F => DataType::C64F,
        }
    }

    /// The type that kernels have: what is pedantic is a matter of which of them may be chosen.
    pub fn plain(self) -> Self {
        match self {
            ComputeType::R32FPedantic => ComputeType::R32F,
            ComputeType::R64FPedantic => ComputeType::R64F,
            other => other,
        }
    }

    /// The same by IEEE operations alone, for types that have it.
    pub fn pedantic(self) -> Option<Self> {
        match self.plain() {
            ComputeType::R32F => Some(ComputeType::R32FPedantic),
            ComputeType::R64F => Some(ComputeType::R64FPedantic),
            _ => None,
        }
    }

    /// Whether IEEE operations alone are asked for.
    pub fn is_pedantic(self) -> bool {
        self != self.plain()
    }

    /// Short name for tables.
    pub fn short(self) -> &'static str {
        match self {
            ComputeType::Tf32 => "tf32",
            ComputeType::R32FPedantic => "fp32 pedantic",
            ComputeType::R64FPedantic => "fp64 pedantic",
            other => other.scalar().short(),
        }
    }
}

code_enum! {
    /// Width of offsets and indices.
    pub enum IndexType {
        /// 16-bit unsigned (reserved: no user array has it).
        U16 = 1, "TARSIA_INDEX_16U";
        /// 32-bit signed.
        I32 = 2, "TARSIA_INDEX_32I";
        /// 64-bit signed.
        I64 = 3, "TARSIA_INDEX_64I";
    }
}

impl IndexType {
    /// Bytes of one index.
    pub fn size(self) -> usize {
        match self {
            IndexType::U16 => 2,
            IndexType::I32 => 4,
            IndexType::I64 => 8,
        }
    }

    /// Largest value that fits.
    pub fn max(self) -> i64 {
        match self {
            IndexType::U16 => u16::MAX as i64,
            IndexType::I32 => i32::MAX as i64,
            IndexType::I64 => i64::MAX,
        }
    }
}

code_enum! {
    /// Number of the first row and column.
    pub enum IndexBase {
        /// C's convention.
        Zero = 0, "TARSIA_INDEX_BASE_ZERO";
        /// Fortran's convention.
        One = 1, "TARSIA_INDEX_BASE_ONE";
    }
}

code_enum! {
    /// op(A).
    pub enum Operation {
        /// A.
        NonTranspose = 0, "TARSIA_OPERATION_NON_TRANSPOSE";
        /// A's transpose.
        Transpose = 1, "TARSIA_OPERATION_TRANSPOSE";
        /// A's conjugate transpose.
        ConjugateTranspose = 2, "TARSIA_OPERATION_CONJUGATE_TRANSPOSE";
    }
}

impl Operation {
    /// Whether rows and columns change places.
    pub fn transposes(self) -> bool {
        self != Operation::NonTranspose
    }

    /// Whether values are conjugated.
    pub fn conjugates(self) -> bool {
        self == Operation::ConjugateTranspose
    }

    /// What gives the transpose, but for conjugates.
    pub fn flipped(self) -> Operation {
        match self.transposes() {
            true => Operation::NonTranspose,
            false => Operation::Transpose,
        }
    }

    /// (rows, columns) of op(A) for A of this shape.
    pub fn shape(self, rows: i64, cols: i64) -> (i64, i64) {
        if self.transposes() {
            (cols, rows)
        } else {
            (rows, cols)
        }
    }
}

code_enum! {
    /// Storage order of dense matrices and of the values inside a BSR block.
    pub enum Order {
        /// Columns are contiguous.
        Col = 1, "TARSIA_ORDER_COL";
        /// Rows are contiguous.
        Row = 2, "TARSIA_ORDER_ROW";
    }
}

code_enum! {
    /// Format of a sparse matrix descriptor.
    pub enum Format {
        /// Compressed sparse rows.
        Csr = 1, "TARSIA_FORMAT_CSR";
        /// Compressed sparse columns.
        Csc = 2, "TARSIA_FORMAT_CSC";
        /// Coordinates.
        Coo = 3, "TARSIA_FORMAT_COO";
        /// Blocked compressed sparse rows.
        Bsr = 6, "TARSIA_FORMAT_BSR";
        /// Sparse tiles that the library owns.
        Tile = 100, "TARSIA_FORMAT_TILE";
    }
}

impl Format {
    /// `CSR`, `CSC` ….
    pub fn short(self) -> &'static str {
        match self {
            Format::Csr => "CSR",
            Format::Csc => "CSC",
            Format::Coo => "COO",
            Format::Bsr => "BSR",
            Format::Tile => "tile",
        }
    }
}

code_enum! {
    /// Where alpha and beta live.
    pub enum PointerMode {
        /// In host memory.
        Host = 0, "TARSIA_POINTER_MODE_HOST";
        /// In device memory.
        Device = 1, "TARSIA_POINTER_MODE_DEVICE";
    }
}

code_enum! {
    /// Who executes.
    pub enum BackendKind {
        /// CUDA where there is a device, else the host.
        Auto = 0, "TARSIA_BACKEND_AUTO";
        /// Threads of the CPU.
        Host = 1, "TARSIA_BACKEND_HOST";
        /// An NVIDIA GPU.
        Cuda = 2, "TARSIA_BACKEND_CUDA";
        /// One thread, obviously right, slow: the oracle of the tests.
        Reference = 3, "TARSIA_BACKEND_REFERENCE";
    }
}

code_enum! {
    /// How much analysis may cost.
    pub enum Effort {
        /// Choose by the cost model.
        Default = 0, "TARSIA_EFFORT_DEFAULT";
        /// Convert nothing where the format allows it, look at shapes alone.
        Quick = 1, "TARSIA_EFFORT_QUICK";
        /// Build and time the best candidates.
        Tuned = 2, "TARSIA_EFFORT_TUNED";
    }
}

code_enum! {
    /// Row reordering policy.
    pub enum Reorder {
        /// The library decides.
        Auto = 0, "TARSIA_REORDER_AUTO";
        /// Keep the user's order.
        None = 1, "TARSIA_REORDER_NONE";
        /// Longest rows first, by warp load.
        PlainSort = 2, "TARSIA_REORDER_PLAIN_SORT";
        /// The same, every second group of 32 rows backwards.
        FlippedSort = 3, "TARSIA_REORDER_FLIPPED_SORT";
        /// Longest processing time: each row to the warp with the least load so far.
        Lpt = 4, "TARSIA_REORDER_LPT";
        /// Rows of like columns 32 positions apart.
        WarpAware = 5, "TARSIA_REORDER_WARP_AWARE";
        /// Rows of like columns next to each other.
        CtaAware = 6, "TARSIA_REORDER_CTA_AWARE";
        /// Longest rows first, of equal ones those of like columns next to each other.
        Hybrid1 = 7, "TARSIA_REORDER_HYBRID_1";
        /// CTA-aware; of equally near rows that of like load.
        Hybrid21 = 8, "TARSIA_REORDER_HYBRID_2_1";
        /// CTA-aware; of equally near rows that nearest to the row 32 positions before.
        Hybrid22 = 9, "TARSIA_REORDER_HYBRID_2_2";
        /// Warp-aware; of equally near rows that of like load.
        Hybrid23 = 10, "TARSIA_REORDER_HYBRID_2_3";
        /// Densified CSR: rows with entries before those without.
        Dcsr = 11, "TARSIA_REORDER_DCSR";
        /// Reverse Cuthill-McKee.
        Rcm = 12, "TARSIA_REORDER_RCM";
        /// Ascending in Gray code of the blocks of 32 columns.
        GrayCode = 13, "TARSIA_REORDER_GRAY_CODE";
    }
}

impl Reorder {
    /// Whether it says which order, and does not leave that to the library.
    pub fn is_named(self) -> bool {
        !matches!(self, Reorder::Auto | Reorder::None)
    }
}

code_enum! {
    /// SpMV algorithm.
    pub enum SpmvAlg {
        /// The library chooses.
        Default = 0, "TARSIA_SPMV_ALG_DEFAULT";
        /// CSR, several lanes a row or nonzero-balanced.
        Csr = 1, "TARSIA_SPMV_ALG_CSR";
        /// Slices of rows sorted by length (SELL-C-σ), 16-bit columns.
        Sell = 2, "TARSIA_SPMV_ALG_SELL";
        /// Equal tiles of nonzeros (merge path, CSR5), 16-bit columns.
        Stream = 3, "TARSIA_SPMV_ALG_STREAM";
        /// Rows in classes by length, in blocks for matrix units (DASP).
        Dasp = 4, "TARSIA_SPMV_ALG_DASP";
        /// Blocks of 8 or 4 rows × 4 columns with bit masks and packed values.
        MaskBlock = 5, "TARSIA_SPMV_ALG_MASK_BLOCK";
    }
}

code_enum! {
    /// SpMM algorithm.
    pub enum SpmmAlg {
        /// The library chooses.
        Default = 0, "TARSIA_SPMM_ALG_DEFAULT";
        /// CSR rows, tiles over N.
        Row = 1, "TARSIA_SPMM_ALG_ROW";
        /// Windows of rows with the columns that they have, for matrix units.
        Window = 2, "TARSIA_SPMM_ALG_WINDOW";
        /// Dense blocks at multiples of their width, for matrix units (SMaT).
        Smat = 3, "TARSIA_SPMM_ALG_SMAT";
        /// All of op(A), zeros and all, by a product of dense matrices.
        Dense = 4, "TARSIA_SPMM_ALG_DENSE";
        /// Slices of sorted rows, for few columns.
        Sell = 5, "TARSIA_SPMM_ALG_SELL";
        /// Sorted columns in blocks as wide as a warp, with segment sums (Swift).
        Swift = 6, "TARSIA_SPMM_ALG_SWIFT";
        /// CSR rows dealt out to the warps of a block, lanes along the entries.
        Csr = 7, "TARSIA_SPMM_ALG_CSR";
    }
}

code_enum! {
    /// SpGEMM algorithm.
    pub enum SpgemmAlg {
        /// The library chooses.
        Default = 0, "TARSIA_SPGEMM_ALG_DEFAULT";
        /// Gustavson's row products with hash or dense accumulators.
        Hash = 1, "TARSIA_SPGEMM_ALG_HASH";
        /// Sparse tiles of 16 × 16 (TileSpGEMM).
        Tile = 2, "TARSIA_SPGEMM_ALG_TILE";
    }
}

code_enum! {
    /// What a plan computes.
    pub enum OpKind {
        /// Sparse matrix times dense vector.
        Spmv = 1, "TARSIA_OP_SPMV";
        /// Sparse matrix times dense matrix.
        Spmm = 2, "TARSIA_OP_SPMM";
        /// Sparse matrix times sparse matrix.
        Spgemm = 3, "TARSIA_OP_SPGEMM";
    }
}

impl OpKind {
    /// `SpMV`, `SpMM`, `SpGEMM`.
    pub fn short(self) -> &'static str {
        match self {
            OpKind::Spmv => "SpMV",
            OpKind::Spmm => "SpMM",
            OpKind::Spgemm => "SpGEMM",
        }
    }
}

code_enum! {
    /// Layout that analysis chose.
    pub enum LayoutKind {
        /// Nothing chosen yet (the plan is not analyzed).
        None = 0, "TARSIA_LAYOUT_NONE";
        /// CSR: the user's own arrays, or sorted rows with 32-bit columns.
        Csr = 1, "TARSIA_LAYOUT_CSR";
        /// A list of (row, column, value), read by the reference backend.
        Triplets = 2, "TARSIA_LAYOUT_TRIPLETS";
        /// Slices of rows sorted by length (SELL-C-σ), columns of 16 bits where they fit.
        Sell = 3, "TARSIA_LAYOUT_SELL";
        /// Equal tiles of nonzeros, columns of 16 bits where they fit.
        Stream = 4, "TARSIA_LAYOUT_STREAM";
        /// Rows in classes by length, in blocks for matrix units (DASP).
        Dasp = 5, "TARSIA_LAYOUT_DASP";
        /// Blocks of 8 or 4 rows × 4 columns with bit masks and packed values.
        MaskBlock = 6, "TARSIA_LAYOUT_MASK_BLOCK";
        /// Windows of rows with the columns that they have, in dense tiles or packed.
        Window = 7, "TARSIA_LAYOUT_WINDOW";
        /// Dense blocks of 16 rows at multiples of their width (SMaT).
        Bcsr = 8, "TARSIA_LAYOUT_BCSR";
        /// All of op(A), zeros and all, by rows.
        Dense = 9, "TARSIA_LAYOUT_DENSE";
        /// Sparse tiles of 16 × 16 with bit masks (TileSpGEMM).
        Tile = 10, "TARSIA_LAYOUT_TILE";
        /// Columns sorted by length, in blocks as wide as a warp (Swift).
        Swift = 11, "TARSIA_LAYOUT_SWIFT";
    }
}

code_enum! {
    /// Parts of the version number.
    pub enum Property {
        /// Major version.
        Major = 0, "TARSIA_PROPERTY_MAJOR_VERSION";
        /// Minor version.
        Minor = 1, "TARSIA_PROPERTY_MINOR_VERSION";
        /// Patch level.
        Patch = 2, "TARSIA_PROPERTY_PATCH_LEVEL";
    }
}

code_enum! {
    /// Weight of a log line.
    pub enum LogLevel {
        /// A call failed.
        Error = 1, "TARSIA_LOG_ERROR";
        /// Something works but not as well as it could.
        Warning = 2, "TARSIA_LOG_WARNING";
        /// What analysis chose and why.
        Info = 3, "TARSIA_LOG_INFO";
    }
}

/// A plain value of one of the data types.
pub trait Element: Pod + Send + Sync + Default + PartialEq + std::fmt::Debug {
    /// Its code.
    const TYPE: DataType;
    /// Complex conjugate; a real number is its own.
    #[inline(always)]
    fn conjugate(self) -> Self {
        self
    }
}

/// A type in which sums are formed.
pub trait Accumulator: Element + Add<Output = Self> + Mul<Output = Self> + AddAssign + Storage<Self> {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
}

/// A storage type that widens to, and is rounded once from, accumulator `Acc`.
pub trait Storage<Acc>: Element {
    /// Exact conversion to the accumulator.
    fn widen(self) -> Acc;
    /// One rounding (to nearest, ties to even) to the storage type.
    fn round(acc: Acc) -> Self;
}

macro_rules! elements {
    ($($ty:ty => $code:ident;)*) => { $(impl Element for $ty { const TYPE: DataType = DataType::$code; })* };
}
elements! { f32 => R32F; f64 => R64F; f16 => R16F; bf16 => R16BF; }

macro_rules! complex_elements {
    ($($ty:ty => $code:ident;)*) => { $(impl Element for $ty {
        const TYPE: DataType = DataType::$code;
        #[inline(always)]
        fn conjugate(self) -> Self { self.conj() }
    })* };
}
complex_elements! { Complex32 => C32F; Complex64 => C64F; }

macro_rules! real {
    ($acc:ty, $($storage:ty, $widen:expr, $round:expr;)*) => {
        impl Accumulator for $acc {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
        }
        $(impl Storage<$acc> for $storage {
            #[inline(always)]
            fn widen(self) -> $acc { ($widen)(self) }
            #[inline(always)]
            fn round(acc: $acc) -> Self { ($round)(acc) }
        })*
    };
}
real! { f64, f64, |v| v, |v| v; f32, f64::from, |v: f64| v as f32; }
real! { f32, f32, |v| v, |v| v; f16, widen_half, f16::from_f32; bf16, bf16::to_f32, bf16::from_f32; }

/// As `f16::to_f32`, which calls a function per value, in a form that inlines and
/// vectorises (F. Giesen, half_to_float). No subnormal f32 is touched on the
/// way, so that a caller's flush-to-zero mode changes nothing.
#[inline(always)]
fn widen_half(half: f16) -> f32 {
    const SHIFT: u32 = f32::MANTISSA_DIGITS - 11;
    const EXPONENT: u32 = 0x7c00 << SHIFT;
    // The exponent's bias is 127 in f32 and 15 in f16.
    const REBIAS: u32 = (127 - 15) << 23;
    let bits = u32::from(half.to_bits());
    let magnitude = (bits & 0x7fff) << SHIFT;
    // All ones where it holds: arithmetic, since a compiler may make branches
    // of selects.
    let mask = |holds: bool| u32::from(holds).wrapping_neg();
    let (tiny, special) = (mask(magnitude < 1 << 23), mask(magnitude >= EXPONENT));
    let rebiased = magnitude + REBIAS;
    // 1.m · 2^-14 − 1 · 2^-14 = 0.m · 2^-14
    let subnormal = (f32::from_bits(rebiased + (1 << 23)) - f32::from_bits(REBIAS + (1 << 23))).to_bits();
    // Inf and NaN keep the largest exponent.
    let normal = rebiased + (REBIAS & special);
    f32::from_bits((subnormal & tiny) | (normal & !tiny) | (bits & 0x8000) << 16)
}

macro_rules! complex {
    ($($ty:ty),*) => { $(
        impl Accumulator for $ty {
            const ZERO: Self = <$ty>::new(0.0, 0.0);
            const ONE: Self = <$ty>::new(1.0, 0.0);
        }
        impl Storage<$ty> for $ty {
            #[inline(always)]
            fn widen(self) -> $ty { self }
            #[inline(always)]
            fn round(acc: $ty) -> Self { acc }
        }
    )* };
}
complex!(Complex32, Complex64);

/// A signed index as the user stores it.
pub trait Index: Pod + Send + Sync + Ord + std::fmt::Debug {
    /// Its code.
    const TYPE: IndexType;
    /// Exact conversion.
    fn to_i64(self) -> i64;
    /// Conversion from a value that is known to fit.
    fn from_i64(value: i64) -> Self;
}

impl Index for i32 {
    const TYPE: IndexType = IndexType::I32;
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self as i64
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        debug_assert!(i32::try_from(value).is_ok());
        value as i32
    }
}

impl Index for i64 {
    const TYPE: IndexType = IndexType::I64;
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        value
    }
}

/// An address in the memory of a backend. Only backends turn it back into a
/// pointer; everything else passes it on, so it is `Send`, `Sync` and safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Address(usize);

impl Address {
    /// The NULL address.
    pub const NULL: Address = Address(0);

    /// The address of a pointer.
    pub fn new<T: ?Sized>(pointer: *const T) -> Self {
        Address(pointer.cast::<u8>().expose_provenance())
    }

    /// The pointer again.
    pub fn as_ptr<T>(self) -> *const T {
        std::ptr::with_exposed_provenance(self.0)
    }

    /// The pointer again, for writing.
    pub fn as_mut_ptr<T>(self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.0)
    }

    /// Whether it is NULL.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The number.
    pub fn value(self) -> usize {
        self.0
    }

    /// The address this many bytes further.
    pub fn offset(self, bytes: usize) -> Address {
        Address(self.0 + bytes)
    }

    /// The address this many bytes before, of an array whose first elements are not there: what is
    /// read begins `bytes` further. (NULL stays NULL.)
    pub fn rebased(self, bytes: usize) -> Address {
        Address(if self.0 == 0 { 0 } else { self.0.wrapping_sub(bytes) })
    }

    /// Whether it is a multiple of `align`.
    pub fn is_aligned(self, align: usize) -> bool {
        self.0 % align == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_widens_exactly() {
        for bits in 0..=u16::MAX {
            let half = f16::from_bits(bits);
            let (found, expected) = (Storage::<f32>::widen(half), half.to_f32());
            if half.is_nan() {
                assert!(found.is_nan());
            } else {
                assert_eq!(found.to_bits(), expected.to_bits(), "{bits:#x}");
            }
        }
    }
}
