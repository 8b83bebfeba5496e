//! Kernels of `row` (kernels/spmm/row.cu and the files for other rows of B and C), by types.

use std::collections::HashMap;
use std::sync::Arc;

use once_cell::sync::{Lazy, OnceCell};
use parking_lot::Mutex;

use super::columns::ColumnKernels;
use super::groups;
use super::merge::{ColumnMergeKernels, MergeKernels};
use super::schedule::Schedule;
use crate::backend::cuda::device::{Device, Relaxed};
use crate::backend::cuda::launch::Kernel;
use crate::backend::cuda::module::kinds::{kernel_kinds, Kind};
use crate::backend::cuda::{result_name, types_name};
use crate::error::Result;
use crate::select::spmm::row;
use crate::support::Types;
use crate::types::{DataType, IndexType};

kernel_kinds! { "spmm/row" {
    PACKS(String, IndexType, usize) = "packs" for [packed_types(), index_types(), row::GROUPS],
            [["c64"], index_types(), groups(16).to_vec()];
    SINGLE(String, IndexType) = "single" for [types(Algorithm::Row), index_types()];
    TWINS(String, IndexType) = "twins" for [["f64", "f32f64"], index_types()];
    PACK_LISTS(String, IndexType, usize) = "packlists" for [packed_types(), index_types(), row::GROUPS],
            [["c64"], index_types(), groups(16).to_vec()];
    SINGLE_LISTS(String, IndexType) = "singlelists" for [types(Algorithm::Row), index_types()];
    TWIN_LISTS(String, IndexType) = "twinlists" for [["f64", "f32f64"], index_types()];
    NARROW_LISTS(String, IndexType, usize) = "narrowlists" for [types(Algorithm::Row), index_types(), [4, 8]];
    NARROW_B(String, IndexType, usize, usize) = "narrow" for [types(Algorithm::Row), index_types(), [4, 8], [4, 16]];
    /// Stores C from sums in the workspace.
    pub(super) FINISH(String) = "finish" for [results(Algorithm::Row)];
    PACK(&'static str) = "pack" for [["2", "4", "8", "c32", "c64"]];
} }

/// Loads the kernel that copies op(B), with values of this type, into contiguous rows.
pub(super) fn pack_kernel(device: &Device, value_type: DataType) -> Result<Kernel> {
    let element = match value_type {
        DataType::C32F => "c32",
        DataType::C64F => "c64",
        real => match real.size() {
            2 => "2",
            4 => "4",
            _ => "8",
        },
    };
    PACK.load(device, (element,))
}

/// Kernels, for one combination of types, that multiply rows of either origin: the rows in lists that analysis has
/// made and those in no list, or the rows in lists that were made without a plan.
pub(super) struct RowKernels {
    /// Kernels for each size of group in [`groups`].
    packs: Vec<Kernel>,
    single: Kernel,
    /// Kernel with two packs per lane and groups of a whole warp; for doubles only.
    pub(super) twins: Option<Kernel>,
    /// Kernels for 4 and 8 columns, each with 4 and 16 lanes per row.
    narrow: [[Kernel; 2]; 2],
}

/// Kernels of `row` for one combination of types.
pub(super) struct Kernels {
    pub(super) rows: RowKernels,
    pub(super) finish: Kernel,
    pub(super) pack: Kernel,
    /// Kernels for lists that were made without a plan; empty until the first such product.
    pub(super) lists: OnceCell<RowKernels>,
    /// Kernels for rows of B and C that are aligned, each with its lanes per group and packs per lane; empty
    /// until the first plan whose lists are for them.
    groups: OnceCell<Vec<((usize, usize), Kernel)>>,
    /// Kernels for columns of B and C where they are; empty until the first product without a plan that may use
    /// them.
    columns: OnceCell<ColumnKernels>,
    /// Kernels without lists for products without a plan; empty until the first one.
    merge: OnceCell<MergeKernels>,
    /// Kernels without lists for products that read and write columns of B and C where they are; empty until the first one.
    column_merge: OnceCell<ColumnMergeKernels>,
}

/// Loaded kernels by the address of their device, which lives as long as the process, and by types. Each has a cell of
/// its own, so that nobody waits while others are loaded.
type Loaded = HashMap<(usize, Types, IndexType), Arc<OnceCell<Arc<Kernels>>>>;
static LOADED: Lazy<Mutex<Loaded>> = Lazy::new(Mutex::default);

impl Kernels {
    /// Returns the kernels for these types, which are loaded once in a process.
    pub(super) fn load(device: &Arc<Device>, types: Types, width: IndexType) -> Result<Arc<Self>> {
        let key = (Arc::as_ptr(device).addr(), types, width);
        let cell = Arc::clone(LOADED.lock().entry(key).or_default());
        cell.get_or_try_init(|| Self::load_uncached(device, types, width).map(Arc::new)).cloned()
    }

    fn load_uncached(device: &Device, types: Types, width: IndexType) -> Result<Self> {
        // The call may come during a capture.
        let _relaxed = Relaxed::enter();
        let narrow = |columns, lanes| NARROW_B.load(device, (types_name(types), width, columns, lanes));
        Ok(Kernels {
            rows: RowKernels::load(device, types, width, PACKS, [SINGLE, TWINS], narrow)?,
            finish: FINISH.load(device, (result_name(types),))?,
            pack: pack_kernel(device, types.x)?,
            lists: OnceCell::new(),
            groups: OnceCell::new(),
            columns: OnceCell::new(),
            merge: OnceCell::new(),
            column_merge: OnceCell::new(),
        })
    }

    /// Kernels for lists that are made before each product.
    pub(super) fn lists(&self, device: &Device, types: Types, width: IndexType) -> Result<&RowKernels> {
        self.lists.get_or_try_init(|| {
            let _relaxed = Relaxed::enter();
            Schedule::load_making(device)?;
            RowKernels::of_lists(device, types, width)
        })
    }

    /// Kernels for columns of B and C where they are.
    pub(super) fn columns(&self, device: &Device, types: Types, width: IndexType) -> Result<&ColumnKernels> {
        self.columns.get_or_try_init(|| ColumnKernels::load(device, types, width))
    }

    /// Kernels without lists for products without a plan.
    pub(super) fn merge(&self, device: &Device, types: Types, width: IndexType) -> Result<&MergeKernels> {
        self.merge.get_or_try_init(|| MergeKernels::load(device, types, width))
    }

    /// Kernels without lists for products without a plan with columns of B and C.
    pub(super) fn column_merge(
        &self,
        device: &Device,
        types: Types,
        width: IndexType,
    ) -> Result<&ColumnMergeKernels> {
        self.column_merge.get_or_try_init(|| ColumnMergeKernels::load(device, types, width))
    }

    /// Returns the loaded kernel for rows of B and C that are aligned, with these lanes per group and packs per lane.
    pub(super) fn group_kernel(&self, kind: (usize, usize)) -> Option<Kernel> {
        self.groups.get()?.iter().find(|known| known.0 == kind).map(|known| known.1)
    }

    /// Kernels for rows of B and C that are aligned.
    pub(super) fn groups(&self, device: &Device, types: Types) -> Result<&[((usize, usize), Kernel)]> {
        self.groups.get_or_try_init(|| groups::load(device, types)).map(Vec::as_slice)
    }
}

impl RowKernels {
    fn load(
        device: &Device,
        types: Types,
        width: IndexType,
        packs: Kind<(String, IndexType, usize)>,
        [single, twins]: [Kind<(String, IndexType)>; 2],
        narrow: impl Fn(usize, usize) -> Result<Kernel>,
    ) -> Result<Self> {
        let name = || types_name(types);
        let pack = |&group: &usize| packs.load(device, (name(), width, group));
        Ok(RowKernels {
            packs: groups(types.x.size()).iter().map(pack).collect::<Result<_>>()?,
            single: single.load(device, (name(), width))?,
            twins: match types.x {
                DataType::R64F => Some(twins.load(device, (name(), width))?),
                _ => None,
            },
            narrow: [[narrow(4, 4)?, narrow(4, 16)?], [narrow(8, 4)?, narrow(8, 16)?]],
        })
    }

    /// Loads the kernels for lists that were made without a plan; those for few columns have one number of
    /// lanes.
    fn of_lists(device: &Device, types: Types, width: IndexType) -> Result<Self> {
        let narrow = |columns, _| NARROW_LISTS.load(device, (types_name(types), width, columns));
        RowKernels::load(device, types, width, PACK_LISTS, [SINGLE_LISTS, TWIN_LISTS], narrow)
    }

    /// Returns the loaded kernel that a step has chosen, unless it is one for groups.
    pub(super) fn of(&self, kernel: row::Kernel) -> Kernel {
        match kernel {
            row::Kernel::Groups { .. } => unreachable!("the lists are not for groups"),
            row::Kernel::Packs(group) => self.packs[group],
            row::Kernel::Twins => self.twins.expect("doubles have it"),
            row::Kernel::Single => self.single,
            row::Kernel::Narrow { columns, lanes } => {
                self.narrow[usize::from(columns > 4)][usize::from(lanes > 4)]
            }
        }
    }
}
