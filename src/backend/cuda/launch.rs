//! CUDA kernels and their launches.

use std::cell::Cell;
use std::ffi::c_void;
use std::fmt::Display;
use std::sync::OnceLock;

pub use super::driver::LaunchAttribute;
use super::driver::{self, check, Raw};
use super::libcuda;
use super::timing::driver_version;
use crate::error::{Error, Result, Status};
use crate::types::Address;

/// Most parameters that a kernel may have; a launch keeps them on the stack.
const MAX_PARAMETERS: usize = 24;

thread_local! {
    /// Number of works that this thread has enqueued.
    static ENQUEUED: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of kernels, copies and fills that this thread has enqueued so far. A call that fails has
/// begun if the number has grown since.
pub fn enqueued() -> u64 {
    ENQUEUED.get()
}

/// Counts a work that was enqueued.
pub fn note_enqueued() {
    ENQUEUED.set(ENQUEUED.get() + 1);
}

/// Turns the driver's answer to a call that enqueues work into a result, and counts the work if there is no error.
pub fn taken(code: u32, what: &str) -> Result<()> {
    check(code, what)?;
    note_enqueued();
    Ok(())
}

/// A kernel of a loaded module.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    function: Address,
    /// Sizes of its parameters; `None` with drivers before CUDA 12.4 (R550), which do not tell: nothing is
    /// checked then.
    parameters: Option<Parameters>,
    /// Compute capability for which it was compiled, 90 for 9.0. A kernel that runs from PTX on a newer
    /// device cannot use the features that only that device has.
    compiled_for: i32,
}

/// Sizes of a kernel's parameters, in bytes.
#[derive(Clone, Copy, Debug)]
struct Parameters {
    sizes: [u16; MAX_PARAMETERS],
    count: u8,
}

impl Parameters {
    /// Reads the sizes of all parameters. `size_of(index)` answers like `cuFuncGetParamInfo`: a code of the
    /// driver, 0 if there is such a parameter, and its size in bytes.
    fn read(size_of: impl Fn(usize) -> (u32, usize)) -> Result<Option<Self>> {
        let mut read = Parameters { sizes: [0; MAX_PARAMETERS], count: 0 };
        loop {
            let index = usize::from(read.count);
            match size_of(index) {
                (libcuda::SYMBOL_NOT_FOUND, _) => return Ok(None),
                (0, _) if index == MAX_PARAMETERS => {
                    return Err(Error::new(Status::InternalError, "a kernel has too many parameters"));
                }
                (0, size) => read.sizes[index] = size as u16,
                _ => return Ok(Some(read)),
            }
            read.count += 1;
        }
    }
}

/// A value that a kernel takes as a parameter.
///
/// # Safety
/// The first [`Self::bytes`] bytes of a value must be laid out as the kernel's parameter, padding included.
pub unsafe trait Parameter: Copy {
    /// Number of bytes that the kernel's parameter has.
    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

macro_rules! parameters {
    ($($ty:ty),*) => { $(
        // SAFETY: plain numbers have the same layout in CUDA C++.
        unsafe impl Parameter for $ty {}
    )* };
}
parameters!(i32, u32, i64, u64, f32, f64);
// SAFETY: an address is as large as a pointer; device addresses are 64-bit on every host that CUDA supports.
unsafe impl Parameter for Address {}

/// Checks a number of blocks as the x size of a grid; an error with the text `too_many` if one launch takes
/// fewer.
pub fn blocks_of_grid(blocks: impl TryInto<u32>, too_many: impl Display) -> Result<u32> {
    match blocks.try_into() {
        Ok(blocks) if blocks <= i32::MAX as u32 => Ok(blocks),
        _ => Err(Error::unsupported(too_many.to_string())),
    }
}

/// Address and size of a parameter of a launch.
pub struct Argument {
    pointer: *const c_void,
    size: usize,
}

impl Argument {
    /// Refers to a value that must outlive the launch call.
    pub fn new<T: Parameter>(value: &T) -> Self {
        Argument { pointer: (value as *const T).cast(), size: value.bytes() }
    }
}

impl LaunchAttribute {
    /// Blocks may begin while the preceding kernel of the stream ends: the kernel must wait
    /// (griddepcontrol.wait) before it reads what others wrote. Only for kernels that
    /// [can](Kernel::can_begin_early).
    pub const EARLY: Self = Self::new(6, 1);
    /// All blocks run at the same time; an error if they do not fit.
    pub const COOPERATIVE: Self = Self::new(2, 1);

    /// Successive blocks are in clusters of this many. Only for kernels that are [`Kernel::is_of_90`].
    pub const fn cluster(blocks: u32) -> Self {
        Self::new(4, blocks)
    }

    /// `id` is a CUlaunchAttributeID; the value is a number, or for a cluster its blocks in x, y and z.
    const fn new(id: u32, number: u32) -> Self {
        let mut value = [0; 16];
        (value[0], value[1], value[2]) = (number, 1, 1);
        LaunchAttribute { id, padding: 0, value }
    }
}

impl Kernel {
    /// Makes a kernel of a loaded function and reads which parameters it takes.
    pub(super) fn new(function: Address) -> Result<Self> {
        let parameters = Parameters::read(|index| {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the function is loaded, both answers are valid for writes.
            let code =
                unsafe { driver::cuFuncGetParamInfo(driver::raw(function), index, &mut offset, &mut size) };
            (code, size)
        })?;
        // CU_FUNC_ATTRIBUTE_PTX_VERSION
        const PTX_VERSION: i32 = 5;
        let mut compiled_for = 0;
        // SAFETY: the function is loaded, the answer is valid for writes.
        let code =
            unsafe { driver::cuFuncGetAttribute(&mut compiled_for, PTX_VERSION, driver::raw(function)) };
        check(code, "the compute capability that a kernel was compiled for")?;
        Ok(Kernel { function, parameters, compiled_for })
    }

    /// Returns whether the kernel can have blocks in clusters: true if it was compiled for compute capability
    /// 9.0 or newer, which the device then has.
    pub fn is_of_90(&self) -> bool {
        self.compiled_for >= 90
    }

    /// Returns whether the kernel can begin before the preceding kernel of its stream ends, in captures, too:
    /// true if it [`is_of_90`](Self::is_of_90) and the driver is of CUDA 12.3, the first whose graphs have
    /// such edges, or newer.
    pub fn can_begin_early(&self) -> bool {
        const GRAPHS_HAVE_EARLY_EDGES: i32 = 12_030;
        static DRIVER: OnceLock<i32> = OnceLock::new();
        self.is_of_90() && *DRIVER.get_or_init(|| driver_version().unwrap_or(0)) >= GRAPHS_HAVE_EARLY_EDGES
    }

    /// Enqueues the kernel: `grid` blocks of `block` threads with `shared` bytes of dynamic shared memory.
    /// The number and sizes of the arguments are checked against the kernel's parameters. A context must be
    /// current.
    ///
    /// # Safety
    /// Addresses among the arguments must refer to the arrays that the kernel's description requires, until
    /// the stream has run the kernel.
    pub unsafe fn launch(
        &self,
        (grid_x, grid_y): (u32, u32),
        block: u32,
        shared: u32,
        stream: Address,
        arguments: &[Argument],
    ) -> Result<()> {
        if grid_x == 0 || grid_y == 0 {
            return Ok(());
        }
        let mut pointers = self.parameters(arguments)?;
        let function: Raw = driver::raw(self.function);
        // SAFETY: the function is loaded; every pointer is to a value of the
        // size that the kernel takes; the rest is the caller's promise.
        let code = unsafe {
            driver::cuLaunchKernel(
                function,
                grid_x,
                grid_y,
                1,
                block,
                1,
                1,
                shared,
                driver::raw(stream),
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        taken(code, "launching a kernel")
    }

    /// Enqueues the kernel like [`Kernel::launch`], with attributes of the launch.
    ///
    /// # Safety
    /// The requirements of [`Kernel::launch`].
    pub unsafe fn launch_with(
        &self,
        (grid_x, grid_y): (u32, u32),
        block: u32,
        shared: u32,
        stream: Address,
        attributes: &mut [LaunchAttribute],
        arguments: &[Argument],
    ) -> Result<()> {
        if attributes.is_empty() || grid_x == 0 || grid_y == 0 {
            // SAFETY: the caller's promise.
            return unsafe { self.launch((grid_x, grid_y), block, shared, stream, arguments) };
        }
        let mut pointers = self.parameters(arguments)?;
        let config = driver::LaunchConfig {
            grid: [grid_x, grid_y, 1],
            block: [block, 1, 1],
            shared_bytes: shared,
            stream: driver::raw(stream),
            attributes: attributes.as_mut_ptr(),
            attribute_count: attributes.len() as u32,
        };
        let function = driver::raw(self.function);
        // SAFETY: as above.
        let code = unsafe {
            driver::cuLaunchKernelEx(&config, function, pointers.as_mut_ptr(), std::ptr::null_mut())
        };
        taken(code, "launching a kernel")
    }

    /// Returns pointers to the arguments, after checking that their number and sizes are the kernel's.
    fn parameters(&self, arguments: &[Argument]) -> Result<[*mut c_void; MAX_PARAMETERS]> {
        let given = arguments.iter().map(|a| a.size);
        let taken = self.parameters.as_ref().map(|taken| &taken.sizes[..usize::from(taken.count)]);
        let fits = match taken {
            Some(taken) => given.clone().eq(taken.iter().map(|&size| usize::from(size))),
            None => arguments.len() <= MAX_PARAMETERS,
        };
        if !fits {
            let (given, taken): (Vec<_>, _) = (given.collect(), taken.unwrap_or_default());
            return Err(Error::new(
                Status::InternalError,
                format!("a kernel takes parameters of {taken:?} bytes and was given {given:?}"),
            ));
        }
        let mut pointers = [std::ptr::null_mut::<c_void>(); MAX_PARAMETERS];
        for (pointer, argument) in pointers.iter_mut().zip(arguments) {
            *pointer = argument.pointer.cast_mut();
        }
        Ok(pointers)
    }

    /// Returns how many blocks of `block` threads and `shared` bytes of dynamic shared memory a
    /// multiprocessor runs at the same time.
    pub fn blocks_of_multiprocessor(&self, block: u32, shared: u32) -> Result<u32> {
        let mut blocks = 0;
        // SAFETY: the function is loaded, the answer is valid for writes.
        let code = unsafe {
            driver::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                driver::raw(self.function),
                block as i32,
                shared as usize,
            )
        };
        check(code, "the occupancy of a kernel")?;
        Ok(blocks as u32)
    }

    /// Allows blocks this much dynamic shared memory; the driver requires it above 48 KiB.
    pub fn allow_shared(&self, bytes: u32) -> Result<()> {
        // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        const MAX_DYNAMIC_SHARED: i32 = 8;
        // SAFETY: the function is loaded.
        let code = unsafe {
            driver::cuFuncSetAttribute(driver::raw(self.function), MAX_DYNAMIC_SHARED, bytes as i32)
        };
        check(code, "the shared memory of a kernel")
    }

    /// Asks for the largest share of the first-level cache as shared memory, so that as many blocks as
    /// possible fit on a multiprocessor.
    pub fn prefer_shared(&self) -> Result<()> {
        // CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, per cent.
        const CARVEOUT: i32 = 9;
        // SAFETY: the function is loaded.
        let code = unsafe { driver::cuFuncSetAttribute(driver::raw(self.function), CARVEOUT, 100) };
        check(code, "the shared memory of a kernel")
    }
}

/// `launch!(kernel, grid, block, shared, stream; argument, …)` calls [`Kernel::launch`], so it must stand in
/// an unsafe block. A grid is a number of blocks or a pair.
macro_rules! launch {
    ($kernel:expr, ($x:expr, $y:expr), $block:expr, $shared:expr, $stream:expr; $($argument:expr),* $(,)?) => {
        $kernel.launch(
            ($x, $y),
            $block,
            $shared,
            $stream,
            &[$($crate::backend::cuda::launch::Argument::new(&$argument)),*],
        )
    };
    ($kernel:expr, $grid:expr, $block:expr, $shared:expr, $stream:expr; $($argument:expr),* $(,)?) => {
        launch!($kernel, ($grid, 1), $block, $shared, $stream; $($argument),*)
    };
}
pub(super) use launch;

/// Launches like [`launch`], by [`Kernel::launch_with`]: attributes are an array, or what of it is wanted.
macro_rules! launch_with {
    ([$($attribute:expr),+] $([$wanted:expr])?, $kernel:expr, $grid:expr, $block:expr, $shared:expr,
     $stream:expr; $($argument:expr),* $(,)?) => {
        // Not `let`: arguments that are made here must live until the launch.
        match ([$($crate::backend::cuda::launch::Argument::new(&$argument)),*], &mut [$($attribute),+]) {
            (arguments, attributes) => {
                let attributes = &mut attributes$([$wanted])?[..];
                $kernel.launch_with($grid, $block, $shared, $stream, attributes, &arguments)
            }
        }
    };
}
pub(super) use launch_with;

/// Launches like [`launch`] a kernel that waits for the preceding kernel of the stream itself: where that is wanted
/// (`$wanted`) and the kernel [can](Kernel::can_begin_early), with [`LaunchAttribute::EARLY`]. The grid is a pair.
macro_rules! launch_early {
    ($wanted:expr, $kernel:expr, $grid:expr, $block:expr, $shared:expr, $stream:expr; $($argument:expr),* $(,)?) => {{
        use $crate::backend::cuda::launch::{launch_with, LaunchAttribute};
        let is_early = $wanted && $kernel.can_begin_early();
        launch_with!([LaunchAttribute::EARLY][..usize::from(is_early)], $kernel, $grid, $block, $shared, $stream;
            $($argument),*)
    }};
}
pub(super) use launch_early;

/// Launches like [`launch`] a kernel that computes a product, early where it can be: such kernels begin with
/// `begin_product` (kernels/ptx/launch.cuh), which waits for the preceding kernel of the stream. What a
/// launch costs is then hidden behind the end of that kernel.
macro_rules! launch_product {
    ($kernel:expr, ($x:expr, $y:expr), $block:expr, $shared:expr, $stream:expr; $($argument:expr),* $(,)?) => {
        $crate::backend::cuda::launch::launch_early!(
            true, $kernel, ($x, $y), $block, $shared, $stream; $($argument),*)
    };
    ($kernel:expr, $grid:expr, $block:expr, $shared:expr, $stream:expr; $($argument:expr),* $(,)?) => {
        launch_product!($kernel, ($grid, 1), $block, $shared, $stream; $($argument),*)
    };
}
pub(super) use launch_product;

/// Sequence of kernels on a stream that are independent of each other but depend on all work before the
/// first. Each begins when the last block of the preceding kernel has begun, and ends after it, so that work
/// behind the last kernel waits for all of them. The kernels do both by instructions of their own
/// (`let_next_begin` and `end_after_previous` in kernels/ptx/launch.cuh).
pub struct Overlap {
    is_wanted: bool,
    has_begun: Cell<bool>,
}

impl Overlap {
    /// Begins an empty sequence. If it is not wanted that kernels overlap, they run one after another; so does each
    /// kernel that cannot begin early ([`launch_overlapping`] tests that).
    pub fn new(is_wanted: bool) -> Self {
        Overlap { is_wanted, has_begun: Cell::new(false) }
    }

    /// Counts the next kernel, of so many blocks, and returns whether it should begin before the preceding one
    /// ends.
    pub fn next(&self, blocks: u32) -> bool {
        blocks > 0 && self.has_begun.replace(true) && self.is_wanted
    }
}

/// Launches the next kernel of an [`Overlap`] like [`launch`]; the grid is a number of blocks, or a pair of
/// that and the blocks per cluster.
macro_rules! launch_overlapping {
    ($overlap:expr, $kernel:expr, ($grid:expr, $cluster:expr), $block:expr, $shared:expr, $stream:expr; $($argument:expr),* $(,)?) => {{
        use $crate::backend::cuda::launch::{launch_with, LaunchAttribute};
        let (grid, cluster): (u32, u32) = ($grid, $cluster);
        // Devices before 9.0 have no clusters, not even of one block.
        let wanted = usize::from(cluster == 1)..1 + usize::from($overlap.next(grid) && $kernel.can_begin_early());
        launch_with!([LaunchAttribute::cluster(cluster), LaunchAttribute::EARLY][wanted], $kernel, (grid, 1),
            $block, $shared, $stream; $($argument),*)
    }};
    ($overlap:expr, $kernel:expr, $grid:expr, $block:expr, $shared:expr, $stream:expr; $($argument:expr),* $(,)?) => {{
        launch_overlapping!($overlap, $kernel, ($grid, 1), $block, $shared, $stream; $($argument),*)
    }};
}
pub(super) use launch_overlapping;

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(parameters: Option<Parameters>) -> Kernel {
        Kernel { function: Address::NULL, parameters, compiled_for: 90 }
    }

    #[test]
    fn what_the_driver_takes_is_counted_by_thread() {
        let before = enqueued();
        assert!(taken(0, "a kernel").is_ok() && taken(700, "a kernel").is_err());
        note_enqueued();
        assert_eq!(enqueued() - before, 2);
        assert_eq!(std::thread::spawn(enqueued).join().unwrap(), 0);
    }

    #[test]
    fn grids_that_are_too_large_are_errors() {
        let most = i64::from(i32::MAX);
        assert_eq!(
            [blocks_of_grid(0i64, ""), blocks_of_grid(most, "")].map(Result::unwrap),
            [0, i32::MAX as u32]
        );
        for blocks in [most + 1, i64::from(u32::MAX) + 1, i64::MAX, -1] {
            let error = blocks_of_grid(blocks, format_args!("A: {} is too many", "this")).unwrap_err();
            assert!(error.to_string().contains("A: this is too many"), "{error}");
        }
        assert!(blocks_of_grid(usize::MAX, "").is_err());
    }

    #[test]
    fn arguments_are_checked_where_the_driver_knows_parameters() {
        // Answers of drivers from R550 on for a kernel of two parameters.
        let read = |index| if index < 2 { (0, [4, 8][index]) } else { (1, 0) };
        let kernel = kernel(Parameters::read(read).unwrap());
        let (a, b) = (1i32, 2i64);
        assert!(kernel.parameters(&[Argument::new(&a), Argument::new(&b)]).is_ok());
        let error = kernel.parameters(&[Argument::new(&b), Argument::new(&b)]).unwrap_err();
        assert!(error.to_string().contains("[4, 8] bytes and was given [8, 8]"), "{error}");
        assert!(kernel.parameters(&[Argument::new(&a)]).is_err());
    }

    #[test]
    fn a_driver_that_cannot_tell_parameters_launches_kernels_too() {
        // Drivers before R550 have no cuFuncGetParamInfo: the stub in its slot answers.
        let kernel = kernel(Parameters::read(|_| (libcuda::SYMBOL_NOT_FOUND, 0)).unwrap());
        let (a, b) = (1i32, 2i64);
        let pointers = kernel.parameters(&[Argument::new(&a), Argument::new(&b)]).unwrap();
        assert_eq!(pointers[0].cast_const(), (&raw const a).cast());
        assert_eq!(pointers[1].cast_const(), (&raw const b).cast());
    }

    #[test]
    fn more_parameters_than_a_launch_keeps_are_an_error() {
        assert!(Parameters::read(|_| (0, 4)).is_err());
    }
}
