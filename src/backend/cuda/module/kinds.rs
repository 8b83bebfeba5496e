//! Kinds of kernels, which have a variant for each combination of some arguments. A kind is declared where
//! its kernels are launched, with the combinations that may be asked for, and a test compares these with the
//! lists of kernels/**/*.cu. All kinds of a file are declared in one place.

use std::marker::PhantomData;

use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::Kernel;
use crate::backend::cuda::operand::Widths;
use crate::error::Result;
use crate::types::IndexType;

/// Kernels of a file that differ by arguments only.
pub struct Kind<A> {
    pub file: &'static str,
    pub kind: &'static str,
    pub arguments: PhantomData<fn(A)>,
}

impl<A: Arguments> Kind<A> {
    /// Loads the variant with these arguments. The device's context must be current.
    pub fn load(&self, device: &Device, arguments: A) -> Result<Kernel> {
        device.modules().variant(self.file, self.kind, &arguments.texts())
    }
}

/// One argument of a kind, or two that belong together.
pub trait Argument {
    /// Adds the argument as the lists of kernels/**/*.cu spell it.
    fn write(&self, texts: &mut Vec<String>);
}

macro_rules! displayed {
    ($($ty:ty),*) => { $(
        impl Argument for $ty {
            fn write(&self, texts: &mut Vec<String>) {
                texts.push(self.to_string());
            }
        }
    )* };
}
displayed!(&str, String, usize);
#[cfg(test)]
displayed!(i32);

impl Argument for IndexType {
    fn write(&self, texts: &mut Vec<String>) {
        texts.push((8 * self.size()).to_string());
    }
}

impl Argument for [usize; 2] {
    fn write(&self, texts: &mut Vec<String>) {
        texts.extend(self.map(|number| number.to_string()));
    }
}

impl Argument for Widths {
    fn write(&self, texts: &mut Vec<String>) {
        self.offsets.write(texts);
        self.columns.write(texts);
    }
}

/// All arguments of a kind.
pub trait Arguments {
    /// Returns the arguments as the lists of kernels/**/*.cu spell them.
    fn texts(&self) -> Vec<String>;
}

macro_rules! tuples {
    ($(($($name:ident)+))*) => { $(
        impl<$($name: Argument),+> Arguments for ($($name,)+) {
            #[allow(non_snake_case)]
            fn texts(&self) -> Vec<String> {
                let mut texts = Vec::new();
                let ($($name,)+) = self;
                $($name.write(&mut texts);)+
                texts
            }
        }
    )* };
}
tuples! { (A) (A B) (A B C) (A B C D) }

/// Declares kinds as constants, with the combinations of arguments that may be asked for:
///
/// ```text
/// kernel_kinds! { "file" {
///     NAME(Type of the first argument, …) = "kind" for [values of the first, …], [more combinations, …];
/// } }
/// ```
///
/// The values are expressions that only tests evaluate; they may use `module::tests::domain`.
macro_rules! kernel_kinds {
    ($($file:literal { $(
        $(#[$meta:meta])*
        $vis:vis $name:ident($($argument:ty),+) = $kind:literal for $([$($values:expr),+]),+;
    )* })*) => {
        $($(
            $(#[$meta])*
            $vis const $name: $crate::backend::cuda::module::kinds::Kind<($($argument,)+)> =
                $crate::backend::cuda::module::kinds::Kind {
                    file: $file,
                    kind: $kind,
                    arguments: ::std::marker::PhantomData,
                };
        )*)*
        /// Asserts that the lists have the variants that may be asked for, and no others.
        #[cfg(test)]
        #[test]
        #[allow(unused_imports)]
        fn kinds_are_as_the_kernels_lists_have_them() {
            use $crate::backend::cuda::module::tests::{compare, cross, domain::*, Variant};
            $(
                let mut asked = std::collections::BTreeSet::new();
                $($(
                    let mut all = vec![Vec::new()];
                    $(cross(&mut all, $values);)+
                    asked.extend(all.into_iter().map(|arguments| Variant { kind: $kind, arguments }));
                )+)*
                compare($file, &asked);
            )*
        }
    };
}
pub(in crate::backend::cuda) use kernel_kinds;
