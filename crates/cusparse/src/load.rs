//! Functions that the loader runs when the library is loaded and when the process exits.

use crate::{catch, handles, settings, summary};

/// Function that the loader runs when the library is loaded: reads the settings and registers the handler for
/// `fork`.
#[used]
#[link_section = ".init_array"]
static LOADED: extern "C" fn() = {
    extern "C" fn loaded() {
        catch(settings::settings);
        extern "C" fn forked() {
            catch(summary::forget);
            catch(handles::forked);
        }
        // SAFETY: the function may run in a child, since it only stores to atomics and tries locks, and it is
        // never unloaded, since the library is linked with -z nodelete. If the registration fails for lack of
        // memory, a child's summary counts its parent's calls, too.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    }
    loaded
};

/// Function that prints the summary at exit. It runs after the program's own exit functions, so that calls
/// that those make are counted.
#[used]
#[link_section = ".fini_array"]
static EXITS: extern "C" fn() = {
    extern "C" fn exits() {
        catch(summary::tell);
    }
    exits
};
