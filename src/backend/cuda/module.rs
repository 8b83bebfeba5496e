//! Embedded images of kernels, loaded per device when they are first needed, and the names of all kernels.
//! The names come from the lists of kernels/**/*.cu and are here in every build, with images or without.

pub mod kinds;
#[cfg(test)]
pub(super) mod tests;

use std::ffi::CString;

use once_cell::sync::OnceCell;

use super::driver::{self, check, Raw};
use super::launch::Kernel;
use crate::error::{Error, Result, Status};
use crate::types::Address;

/// List of the kernels of a kernels/**/*.cu file.
#[derive(Debug)]
pub struct KernelFile {
    /// Path of the file without the folder `kernels` and the extension, such as `spmv/csr`.
    pub name: &'static str,
    pub kernels: &'static [NamedKernel],
}

/// A kernel in the list of its file.
#[derive(Debug)]
pub struct NamedKernel {
    /// Full name of the kernel, as a profiler prints it.
    pub name: &'static str,
    /// Kind of which the kernel is a variant; its own name where it has no variants.
    pub kind: &'static str,
    pub arguments: &'static [&'static str],
    /// Number of its image in the list of all images.
    pub image: usize,
}

mod named {
    use super::{KernelFile, NamedKernel};
    include!(concat!(env!("OUT_DIR"), "/kernel_names.rs"));
}

/// A kernels/**/*.cu file, or its kernels with the same first argument, as compiled by nvcc.
#[derive(Debug)]
pub struct EmbeddedModule {
    /// Name of the image: that of the file as in [`KernelFile::name`], and the first argument if there is an image for
    /// each.
    pub name: &'static str,
    /// Contents of the fatbin.
    pub image: &'static [u8],
}

#[cfg(tarsia_kernels)]
mod embedded {
    use super::EmbeddedModule;
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
#[cfg(not(tarsia_kernels))]
mod embedded {
    use super::EmbeddedModule;
    pub const MODULES: &[EmbeddedModule] = &[];
}

/// Returns an error that says why if this build has no kernels.
pub fn available() -> Result<()> {
    if embedded::MODULES.is_empty() {
        let reason = option_env!("TARSIA_KERNELS_MISSING").unwrap_or("no kernels were compiled");
        return Err(Error::unsupported(format!(
            "backend: this library was built without CUDA kernels: {reason}"
        )));
    }
    Ok(())
}

/// Finds a kernel in the lists: the number of its file, and its number in the list of that file.
fn find(file: &str, kind: &str, arguments: &[String]) -> Result<(usize, usize)> {
    let of_file = named::FILES.iter().position(|named| named.name == file);
    let found = of_file.and_then(|at| {
        let is_meant = |kernel: &NamedKernel| kernel.kind == kind && kernel.arguments == arguments;
        Some((at, named::FILES[at].kernels.iter().position(is_meant)?))
    });
    found.ok_or_else(|| {
        let asked = [&[kind.to_string()], arguments].concat().join(", ");
        Error::new(Status::InternalError, format!("kernels/{file}.cu has no kernel ({asked})"))
    })
}

/// Modules of one context.
pub struct Modules {
    /// Modules of the images, in the order of `named::IMAGES`.
    images: Vec<OnceCell<Address>>,
    /// Kernels of each file, in the order of `named::FILES`.
    kernels: Vec<Vec<OnceCell<Kernel>>>,
}

impl Modules {
    /// Prepares loading for a device of compute capability `capability`, 90 for 9.0; loads nothing.
    pub fn new(capability: i32) -> Result<Self> {
        // Oldest architecture for which the kernels are compiled to PTX.
        const OLDEST: i32 = 80;
        if capability < OLDEST {
            return Err(Error::unsupported(format!(
                "device: its compute capability is {}.{}; the kernels need {}.{} or newer",
                capability / 10,
                capability % 10,
                OLDEST / 10,
                OLDEST % 10
            )));
        }
        let images = named::IMAGES.iter().map(|_| OnceCell::new()).collect();
        let none = |file: &KernelFile| file.kernels.iter().map(|_| OnceCell::new()).collect();
        Ok(Modules { images, kernels: named::FILES.iter().map(none).collect() })
    }

    /// Loads the kernel `name` of a file, which has no variants. A context must be current.
    pub fn kernel(&self, file: &str, name: &str) -> Result<Kernel> {
        self.variant(file, name, &[])
    }

    /// Loads a variant of a kind of kernels of a file. A context must be current.
    fn variant(&self, file: &str, kind: &str, arguments: &[String]) -> Result<Kernel> {
        let (at, number) = find(file, kind, arguments)?;
        let NamedKernel { name, image, .. } = named::FILES[at].kernels[number];
        let load = || {
            let module = *self.images[image].get_or_try_init(|| load(named::IMAGES[image]))?;
            let text = CString::new(name).expect("names are identifiers");
            let mut function: Raw = std::ptr::null_mut();
            // SAFETY: `function` is valid for a write, the module is loaded.
            let code =
                unsafe { driver::cuModuleGetFunction(&mut function, driver::raw(module), text.as_ptr()) };
            check(code, &format!("kernel {name}"))?;
            Kernel::new(Address::new(function))
        };
        self.kernels[at][number].get_or_try_init(load).copied()
    }
}

/// Loads the module of an image. It calls the driver directly and not through cust, whose enum of results might
/// not have the code that a newer driver returns for an image.
fn load(image: &str) -> Result<Address> {
    available()?;
    let embedded = embedded::MODULES.iter().find(|embedded| embedded.name == image);
    let embedded = embedded.ok_or_else(|| {
        Error::new(Status::InternalError, format!("the kernels of {image} are not in the library"))
    })?;
    let _relaxed = super::device::Relaxed::enter();
    let mut module: Raw = std::ptr::null_mut();
    // SAFETY: the image is a complete fatbin that is never freed.
    let code = unsafe { driver::cuModuleLoadData(&mut module, embedded.image.as_ptr().cast()) };
    check(code, &format!("loading the kernels of {image}"))?;
    Ok(Address::new(module))
}
