//! The exported functions of cuSPARSE.
//!
//! Each is a jump. It saves the registers that may hold arguments, asks [`enter`] where the call goes,
//! restores the registers and jumps there, so that the function gets the arguments, the stack and the return
//! address of the program's call. This needs no signature, and no signature would be right for all versions:
//! `cusparseSpMVOp_createDescr` has 8 arguments in 12.7.2, 9 in 12.7.10 and 10 in 12.9.4, and calls to
//! versions that are not known yet must reach cuSPARSE with all arguments, too. A call that is taken, or
//! that no cuSPARSE can answer, goes to [`answer`], which returns the status that [`enter`] has set.

use std::ffi::{c_int, c_void};

use crate::arguments::Frame;
use crate::catch;
use crate::decision;
use crate::functions::{with_functions, Function};
use crate::real::{self, Missing};

/// `CUSPARSE_STATUS_NOT_INITIALIZED`
const NOT_INITIALIZED: c_int = 1;
/// `CUSPARSE_STATUS_NOT_SUPPORTED`
const NOT_SUPPORTED: c_int = 10;

/// Where an intercepted call continues, and the status to return there: two words, which [`enter`] returns in rax
/// and rdx, or x0 and x1.
#[repr(C)]
pub struct Next {
    address: *const c_void,
    /// Status that [`answer`] returns; other functions ignore it.
    status: usize,
}

impl Next {
    fn answer(status: c_int) -> Self {
        Next { address: answer as *const c_void, status: status as u32 as usize }
    }
}

/// Returns the status that `route` has left in a register to the program.
#[unsafe(naked)]
extern "C" fn answer() {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("endbr64", "ret");
    // `hint #34` is `bti c`, a landing pad of indirect calls, in the form that every assembler takes.
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("hint #34", "mov w0, w17", "ret");
}

/// Defines the exported functions, each of which jumps to [`route`] with its number in a register.
macro_rules! export {
    ($($name:ident: $role:expr,)*) => {
        $(
            #[unsafe(naked)]
            #[no_mangle]
            #[allow(non_snake_case)]
            #[doc(hidden)]
            pub extern "C" fn $name() {
                // rax and r11, x16 and x17 hold no arguments of functions that are not variadic: the
                // linker's own jumps use them between a call and its function.
                #[cfg(target_arch = "x86_64")]
                std::arch::naked_asm!(
                    "endbr64",
                    "mov r11d, {function}",
                    "jmp {route}",
                    function = const Function::$name as usize,
                    route = sym route,
                );
                #[cfg(target_arch = "aarch64")]
                std::arch::naked_asm!(
                    "hint #34", // bti c
                    "mov w17, #{function}",
                    "b {route}",
                    function = const Function::$name as usize,
                    route = sym route,
                );
            }
        )*
    };
}
with_functions!(export);

/// Jumps to where [`enter`] sends the call of the function whose number is in r11.
///
/// Six registers hold integers and pointers. Eight registers hold floating-point numbers, of which
/// cuSPARSE's arguments use at most the lower 64 bits (System V ABI for x86-64, section 3.2.3). At entry rsp
/// is 8 below a multiple of 16.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub extern "C" fn route() {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "sub rsp, 112",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rcx",
        "mov [rsp + 32], r8",
        "mov [rsp + 40], r9",
        "movsd [rsp + 48], xmm0",
        "movsd [rsp + 56], xmm1",
        "movsd [rsp + 64], xmm2",
        "movsd [rsp + 72], xmm3",
        "movsd [rsp + 80], xmm4",
        "movsd [rsp + 88], xmm5",
        "movsd [rsp + 96], xmm6",
        "movsd [rsp + 104], xmm7",
        "mov rdi, r11",
        "mov rsi, rsp",
        "call {enter}",
        "mov r11, rax",
        "mov rax, rdx",
        "movsd xmm7, [rsp + 104]",
        "movsd xmm6, [rsp + 96]",
        "movsd xmm5, [rsp + 88]",
        "movsd xmm4, [rsp + 80]",
        "movsd xmm3, [rsp + 72]",
        "movsd xmm2, [rsp + 64]",
        "movsd xmm1, [rsp + 56]",
        "movsd xmm0, [rsp + 48]",
        "mov r9, [rsp + 40]",
        "mov r8, [rsp + 32]",
        "mov rcx, [rsp + 24]",
        "mov rdx, [rsp + 16]",
        "mov rsi, [rsp + 8]",
        "mov rdi, [rsp]",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "jmp r11",
        ".cfi_endproc",
        enter = sym enter,
    )
}

/// Jumps to where [`enter`] sends the call of the function whose number is in w17.
///
/// x0 to x7 hold integers and pointers, d0 to d7 floating-point numbers (Procedure Call Standard for AArch64,
/// section 6.8.2).
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub extern "C" fn route() {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "hint #34", // bti c
        "stp x29, x30, [sp, #-144]!",
        ".cfi_def_cfa_offset 144",
        ".cfi_offset x29, -144",
        ".cfi_offset x30, -136",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "stp d0, d1, [sp, #80]",
        "stp d2, d3, [sp, #96]",
        "stp d4, d5, [sp, #112]",
        "stp d6, d7, [sp, #128]",
        "mov w0, w17",
        "mov x1, sp",
        "bl {enter}",
        "mov x16, x0",
        "mov x17, x1",
        "ldp d6, d7, [sp, #128]",
        "ldp d4, d5, [sp, #112]",
        "ldp d2, d3, [sp, #96]",
        "ldp d0, d1, [sp, #80]",
        "ldp x6, x7, [sp, #64]",
        "ldp x4, x5, [sp, #48]",
        "ldp x2, x3, [sp, #32]",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #144",
        ".cfi_restore x29",
        ".cfi_restore x30",
        ".cfi_def_cfa_offset 0",
        "br x16",
        ".cfi_endproc",
        enter = sym enter,
    )
}

/// Returns where the call of function `number` continues; `saved` is the save area of `route`. A panic is
/// caught here, and the call is then forwarded if possible.
extern "C" fn enter(number: usize, saved: *const u64) -> Next {
    let function = Function::ALL[number];
    let real = catch(|| real::find(function)).unwrap_or(Err(Missing::Library));
    // SAFETY: `route` keeps its save area until this returns. Only arguments that the function has are read.
    let frame = unsafe { Frame::new(saved) };
    if let Some(Some(status)) = catch(|| decision::decide(function, real, frame)) {
        return Next::answer(status);
    }
    match real {
        Ok(address) => Next { address: address.as_ptr(), status: 0 },
        Err(Missing::Library) => Next::answer(NOT_INITIALIZED),
        Err(Missing::Function) => Next::answer(NOT_SUPPORTED),
    }
}
