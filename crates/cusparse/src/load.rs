//! What the loader runs when the library is loaded and when the process exits.

use crate::{catch, handles, settings, summary};

#[used]
#[link_section = ".init_array"]
static LOADED: extern "C" fn() = {
    extern "C" fn loaded() {
        catch(settings::settings);
        extern "C" fn forked() {
            catch(summary::forget);
            catch(handles::forked);
        }
        // SAFETY: the function may run in a child, as it only stores to atomics, and it stays where it is: the library
        // is linked with -z nodelete. Where there is no memory for it a child's summary counts its parent's calls.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    }
    loaded
};

/// Behind the program's own functions for exit, so that the calls that those make are counted.
#[used]
#[link_section = ".fini_array"]
static EXITS: extern "C" fn() = {
    extern "C" fn exits() {
        catch(summary::tell);
    }
    exits
};
