//! The enums of the C API. The build writes them from the list in src/types/enums.rs, since cbindgen does not
//! see enums that a macro makes. No function receives one as a Rust enum: arguments are `MaybeUninit` and
//! pass through `boundary::check_enum`.

use crate::types;

/// A C enum that stands for an enum of the library.
pub trait CEnum {
    /// The library's enum.
    type Value: Copy;
    /// Name of the C type.
    const C_NAME: &'static str;
    /// Returns the library's value for an integer of the C enum.
    fn from_code(code: i32) -> Option<Self::Value>;
    /// Returns the C enum's integer for a value of the library.
    fn code(value: Self::Value) -> i32;
}

/// Implements the conversions between C enums and the library's enums, whose enumerators have other names.
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

        /// Returns every C enum as its name and its (enumerator, value) pairs, as the library defines them.
        /// Tests compare the header and the Fortran module with it.
        pub fn all() -> Vec<(&'static str, Vec<(&'static str, i32)>)> {
            vec![$((
                stringify!($c_type),
                types::$name::ALL.iter().map(|value| (value.c_name(), value.code())).collect(),
            ),)*]
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/c_enums.rs"));
