//! The enums of the C API. The build writes them, from the list in src/types/enums.rs, since cbindgen sees
//! no enum that a macro makes. No function receives one as a Rust enum: arguments are `MaybeUninit` and pass
//! `boundary::check_enum`.

use crate::types;

/// An enum of the C API and what it stands for inside.
pub trait CEnum {
    /// The inner enum.
    type Value: Copy;
    /// Name of the C type.
    const C_NAME: &'static str;
    /// Inner value of an integer.
    fn from_code(code: i32) -> Option<Self::Value>;
    /// Integer of an inner value.
    fn code(value: Self::Value) -> i32;
}

/// Converts between C enums and the library's, whose values have other names.
macro_rules! bind {
    ($($c_type:ident => $name:ident { $($c_name:ident => $value:ident,)* })*) => {
        $(impl CEnum for $c_type {
            type Value = types::$name;
            const C_NAME: &'static str = stringify!($c_type);
            fn from_code(code: i32) -> Option<types::$name> { types::$name::from_code(code) }
            fn code(value: types::$name) -> i32 { value.code() }
        }

        impl From<types::$name> for $c_type {
            fn from(value: types::$name) -> Self {
                match value { $(types::$name::$value => Self::$c_name,)* }
            }
        })*

        /// Every C enum: its name and its (enumerator, value) pairs as the
        /// inside of the library knows them. Tests compare the header and the
        /// Fortran module with it.
        pub fn all() -> Vec<(&'static str, Vec<(&'static str, i32)>)> {
            vec![$((
                stringify!($c_type),
                types::$name::ALL.iter().map(|value| (value.c_name(), value.code())).collect(),
            ),)*]
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/c_enums.rs"));
