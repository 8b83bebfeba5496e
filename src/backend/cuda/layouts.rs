//! Structures that are shared with kernels: when the library is compiled, their sizes and members' offsets
//! are compared with those of the kernels' structures, which the build has read (build/layouts.rs) and the
//! CUDA compiler has checked.

/// Layout of a structure in the kernels' files.
pub struct Layout {
    /// File and name of the structure.
    name: &'static str,
    size: usize,
    /// Names and offsets of the members.
    members: &'static [(&'static str, usize)],
}

include!(concat!(env!("OUT_DIR"), "/layouts.rs"));

/// Returns whether a structure has the layout of the kernels' structure `name` (`file name`).
pub const fn has_layout(name: &str, size: usize, members: &[(&str, usize)]) -> bool {
    let mut at = 0;
    while at < LAYOUTS.len() && !is_same(LAYOUTS[at].name, name) {
        at += 1;
    }
    if at == LAYOUTS.len() || LAYOUTS[at].size != size || LAYOUTS[at].members.len() != members.len() {
        return false;
    }
    let mut member = 0;
    while member < members.len() {
        let (name, offset) = LAYOUTS[at].members[member];
        if offset != members[member].1 || !is_same(name, members[member].0) {
            return false;
        }
        member += 1;
    }
    true
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// `kernel_structs! { struct Type = "file name" { member: type, … } … }` declares structures that kernels take as
/// parameters, and checks that their sizes and their members' offsets are those of the kernels' structures.
macro_rules! kernel_structs {
    ($(
        $(#[$about:meta])*
        $scope:vis struct $name:ident = $kernels:literal {
            $($(#[$about_member:meta])* $member_scope:vis $member:ident: $ty:ty),* $(,)?
        }
    )*) => { $(
        $(#[$about])*
        #[derive(Clone, Copy)]
        #[repr(C)]
        $scope struct $name {
            $($(#[$about_member])* $member_scope $member: $ty),*
        }
        $crate::backend::cuda::layouts::same_layout!($name = $kernels { $($member),* });
    )* };
}
pub(super) use kernel_structs;

/// `same_layout!(Type = "file name" { member, … })` declares that a structure is a kernel parameter, and makes
/// the checks of [`kernel_structs!`], for a structure that is declared elsewhere.
macro_rules! same_layout {
    ($name:ident = $kernels:literal { $($member:ident),* $(,)? }) => {
        $crate::backend::cuda::layouts::same_elements!($name = $kernels { $($member),* });
        // SAFETY: the structure has the size of the kernels' and the same members at the same offsets.
        unsafe impl $crate::backend::cuda::launch::Parameter for $name {}
    };
}
pub(super) use same_layout;

/// `same_elements!(Type = "file name" { member, … })` makes the check of [`same_layout!`] for a structure
/// that is an element of arrays and not a parameter of kernels.
macro_rules! same_elements {
    ($name:ty = $kernels:literal { $($member:ident),* $(,)? }) => {
        const _: () = assert!(
            $crate::backend::cuda::layouts::has_layout(
                $kernels,
                size_of::<$name>(),
                &[$((stringify!($member), std::mem::offset_of!($name, $member))),*],
            ),
            concat!(stringify!($name), " is not the kernels' ", $kernels),
        );
    };
}
pub(super) use same_elements;
