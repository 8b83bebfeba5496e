//! Kernels: embedded images, loaded per device when they are first needed.

use std::collections::HashMap;
use std::ffi::CString;

use once_cell::sync::OnceCell;
use parking_lot::Mutex;

use super::driver::{self, check, Raw};
use super::launch::Kernel;
use crate::error::{Error, Result, Status};
use crate::types::Address;

/// A kernels/**/*.cu file as nvcc has compiled it.
#[derive(Debug)]
pub struct EmbeddedModule {
    /// Its path without folder `kernels` and ending: `spmv/csr`.
    pub name: &'static str,
    /// The fatbin.
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

/// Whether this build has kernels; if not, why.
pub fn available() -> Result<()> {
    if embedded::MODULES.is_empty() {
        let reason = option_env!("TARSIA_KERNELS_MISSING").unwrap_or("no kernels were compiled");
        return Err(Error::unsupported(format!(
            "backend: this library was built without CUDA kernels: {reason}"
        )));
    }
    Ok(())
}

/// The modules of one context.
pub struct Modules {
    loaded: Vec<OnceCell<Loaded>>,
}

struct Loaded {
    module: Address,
    kernels: Mutex<HashMap<String, Kernel>>,
}

impl Modules {
    /// `capability` is the device's, 90 for 9.0.
    pub fn new(capability: i32) -> Result<Self> {
        // The oldest architecture that the kernels' PTX is for.
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
        Ok(Modules { loaded: embedded::MODULES.iter().map(|_| OnceCell::new()).collect() })
    }

    /// The kernel `name` of the file `module`. A context must be current.
    pub fn kernel(&self, module: &str, name: &str) -> Result<Kernel> {
        let Some(at) = embedded::MODULES.iter().position(|embedded| embedded.name == module) else {
            available()?;
            return Err(Error::new(Status::InternalError, format!("there is no kernel file {module}")));
        };
        let loaded = self.loaded[at].get_or_try_init(|| load(&embedded::MODULES[at]))?;
        let mut kernels = loaded.kernels.lock();
        if let Some(kernel) = kernels.get(name) {
            return Ok(*kernel);
        }
        let text = CString::new(name)
            .map_err(|_| Error::new(Status::InternalError, "a kernel's name has a zero byte"))?;
        let mut function: Raw = std::ptr::null_mut();
        // SAFETY: `function` is valid for a write, the module is loaded.
        let code =
            unsafe { driver::cuModuleGetFunction(&mut function, driver::raw(loaded.module), text.as_ptr()) };
        check(code, &format!("kernel {name} of {module}"))?;
        let kernel = Kernel::new(Address::new(function))?;
        kernels.insert(name.to_string(), kernel);
        Ok(kernel)
    }
}

/// The driver's own function and not cust's: its enum of results would be
/// asked to hold whatever a newer driver says of an image.
fn load(embedded: &EmbeddedModule) -> Result<Loaded> {
    let _relaxed = super::device::Relaxed::enter();
    let mut module: Raw = std::ptr::null_mut();
    // SAFETY: the image is a complete fatbin that is never freed.
    let code = unsafe { driver::cuModuleLoadData(&mut module, embedded.image.as_ptr().cast()) };
    check(code, &format!("loading the kernels of {}", embedded.name))?;
    Ok(Loaded { module: Address::new(module), kernels: Mutex::default() })
}
