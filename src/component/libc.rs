//! The C symbols through which the standard library would reach WASI.
//!
//! Defined here, they win over those of the C library, and all `wasi:cli` and `wasi:io` imports go
//! away. That leans on the C library's internals, so `tests/imports.rs` checks the built component.
#![expect(
    unsafe_code,
    reason = "these are C functions, called with C's pointers and exported under C's names"
)]

use std::ffi::{c_char, c_int, c_void};

use super::bindings::decant::pruner::notices;

/// A part of what `writev` writes.
#[repr(C)]
struct IoVec {
    base: *const c_void,
    len: usize,
}

/// Has a panic told to the host in one notice, before it traps.
pub(super) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| report(panic.to_string())));
}

fn report(text: String) {
    let level = notices::Level::Error;
    notices::notify(&notices::Notice { level, text });
}

/// Passes what is printed on to the host: the engine prints nothing, but the library does when it
/// runs out of memory.
fn print(text: &[u8]) {
    let text = String::from_utf8_lossy(text).trim().to_owned();
    if !text.is_empty() {
        report(text);
    }
}

/// # Safety
/// As of C's `write`.
#[unsafe(no_mangle)]
unsafe extern "C" fn write(_file: c_int, text: *const c_void, len: usize) -> isize {
    // SAFETY: the caller vouches for `len` bytes behind `text`.
    print(unsafe { std::slice::from_raw_parts(text.cast(), len) });
    isize::try_from(len).unwrap_or(isize::MAX)
}

/// # Safety
/// As of C's `writev`.
#[unsafe(no_mangle)]
unsafe extern "C" fn writev(_file: c_int, parts: *const IoVec, n_parts: c_int) -> isize {
    let n_parts = usize::try_from(n_parts).unwrap_or(0);
    let mut text = Vec::new();
    // SAFETY: the caller vouches for `n_parts` parts, and for the bytes behind each of them.
    for part in unsafe { std::slice::from_raw_parts(parts, n_parts) } {
        text.extend_from_slice(unsafe { std::slice::from_raw_parts(part.base.cast(), part.len) });
    }
    print(&text);
    isize::try_from(text.len()).unwrap_or(isize::MAX)
}

/// There is no environment.
#[unsafe(no_mangle)]
extern "C" fn getenv(_name: *const c_char) -> *mut c_char {
    std::ptr::null_mut()
}

#[unsafe(no_mangle)]
extern "C" fn abort() -> ! {
    core::arch::wasm32::unreachable()
}

#[unsafe(no_mangle)]
extern "C" fn exit(_status: c_int) -> ! {
    core::arch::wasm32::unreachable()
}

#[unsafe(no_mangle)]
extern "C" fn _exit(_status: c_int) -> ! {
    core::arch::wasm32::unreachable()
}

#[unsafe(no_mangle)]
extern "C" fn _Exit(_status: c_int) -> ! {
    core::arch::wasm32::unreachable()
}
