//! Rates of machines.

use super::{Kernel, Rates};

/// An H100.
pub const H100: Rates = Rates {
    row: [
        [
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 2.0e-12,
                unit: 2.0e-11,
            },
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 2.0e-12,
                unit: 2.0e-11,
            },
        ],
        [
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 2.0e-12,
                unit: 2.0e-11,
            },
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 2.0e-12,
                unit: 2.0e-11,
            },
        ],
        [
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 2.0e-12,
                unit: 2.0e-11,
            },
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 2.0e-12,
                unit: 2.0e-11,
            },
        ],
    ],
    sell: [
        [
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 2.0e-12,
                unit: 2.0e-11,
            },
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 2.0e-12,
                unit: 2.0e-11,
            },
        ],
        [
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 2.0e-12,
                unit: 2.0e-11,
            },
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 2.0e-12,
                unit: 2.0e-11,
            },
        ],
        [
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 2.0e-12,
                unit: 2.0e-11,
            },
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 2.0e-12,
                unit: 2.0e-11,
            },
        ],
    ],
    window: [
        [
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
        ],
        [
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
        ],
        [
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
        ],
        [
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
        ],
    ],
    smat: [
        [
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
        ],
        [
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
        ],
        [
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
            Kernel {
                start: 6.0e-6,
                serial: 0.0,
                memory: 2.5e12,
                fetch: 5.5e12,
                work: 1.0e-11,
                unit: 1.0e-10,
            },
        ],
    ],
    dense: [
        [
            Kernel { start: 6.0e-6, serial: 0.0, memory: 2.5e12, fetch: 5.5e12, work: 1.0e-12, unit: 0.0 },
            Kernel { start: 6.0e-6, serial: 0.0, memory: 2.5e12, fetch: 5.5e12, work: 1.0e-12, unit: 0.0 },
        ],
        [
            Kernel { start: 6.0e-6, serial: 0.0, memory: 2.5e12, fetch: 5.5e12, work: 1.0e-12, unit: 0.0 },
            Kernel { start: 6.0e-6, serial: 0.0, memory: 2.5e12, fetch: 5.5e12, work: 1.0e-12, unit: 0.0 },
        ],
        [
            Kernel { start: 6.0e-6, serial: 0.0, memory: 2.5e12, fetch: 5.5e12, work: 1.0e-12, unit: 0.0 },
            Kernel { start: 6.0e-6, serial: 0.0, memory: 2.5e12, fetch: 5.5e12, work: 1.0e-12, unit: 0.0 },
        ],
        [
            Kernel { start: 6.0e-6, serial: 0.0, memory: 2.5e12, fetch: 5.5e12, work: 1.0e-12, unit: 0.0 },
            Kernel { start: 6.0e-6, serial: 0.0, memory: 2.5e12, fetch: 5.5e12, work: 1.0e-12, unit: 0.0 },
        ],
    ],
};
