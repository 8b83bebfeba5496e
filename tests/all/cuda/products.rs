//! Products for the tests of streams and graphs: functions that create the plan, enqueue the product, and
//! compute the expected result.

use std::cell::RefCell;
use std::rc::Rc;

use client::{Array, Sparse};
use tarsia::facade::{DataType, Error};

use super::*;

const ROWS: usize = 1200;
const INNER: usize = 900;
const COLS: usize = 700;
/// Columns of B and C of SpMM.
const N_DENSE: usize = 9;

/// Function that enqueues a product with this array for the result.
type Enqueue<'a> = Box<dyn Fn(&Session, &Plan<'a>, &mut Array<'_, f64>) -> tarsia::facade::Result<()> + 'a>;

/// Function that returns the expected result of a product for these values of A.
type Expected<'a> = Box<dyn Fn(&[f64]) -> Vec<Sum<f64>> + 'a>;

/// Product that a plan computes.
pub struct DeviceProduct<'a> {
    pub name: &'static str,
    /// Function that creates a plan with value updates, analyzed and warmed up so that [`Self::enqueue`] only
    /// enqueues.
    pub plan: Box<dyn Fn(&Session) -> Plan<'a> + 'a>,
    run: Enqueue<'a>,
    /// Function that returns the expected result for these values of A.
    pub expected: Expected<'a>,
}

impl<'a> DeviceProduct<'a> {
    /// Enqueues the product, which must succeed.
    pub fn enqueue(&self, session: &Session, plan: &Plan<'a>, result: &mut Array<'_, f64>) {
        (self.run)(session, plan, result).unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    /// Enqueues the product, which must fail, and returns the error.
    pub fn refused(&self, session: &Session, plan: &Plan<'a>, result: &mut Array<'_, f64>) -> Error {
        (self.run)(session, plan, result).expect_err(self.name)
    }
}

/// Matrices of all products.
pub struct World {
    pub a: Problem<f64>,
    b: Problem<f64>,
    pub stored: Stored<f64>,
    b_stored: Stored<f64>,
    /// B of SpMM in row-major order, or x.
    dense: Vec<f64>,
    on_device: Array<'static, f64>,
}

impl World {
    pub fn new() -> Self {
        let a = Problem::new((ROWS, INNER), 12_000, 700);
        let b = Problem::new((INNER, COLS), 6000, 400);
        let dense = random(INNER * N_DENSE, 3);
        let (stored, b_stored, on_device) = (a.store(), b.store(), upload(CUDA, &dense));
        memory(CUDA).synchronize().unwrap();
        World { a, b, stored, b_stored, dense, on_device }
    }

    /// Returns all products whose values change by tarsiaPlan_updateValues.
    pub fn products(&self) -> Vec<DeviceProduct<'_>> {
        let spgemm = [("SpGEMM hash", SpgemmAlg::Hash), ("SpGEMM tile", SpgemmAlg::Tile)];
        let mut out =
            vec![self.spmv(), self.spmm("SpMM", SpmmAlg::Default), self.spmm("SpMM row", SpmmAlg::Row)];
        out.extend(spgemm.map(|(name, alg)| self.spgemm(name, alg)));
        out
    }

    fn spmv(&self) -> DeviceProduct<'_> {
        DeviceProduct {
            name: "SpMV",
            plan: Box::new(move |session| spmv_plan::<F64>(session, &self.stored, Effort::Default)),
            run: Box::new(move |session, plan, y| {
                plan.run_spmv(session, 1.0, self.on_device.part(0..INNER), 0.0, y)
            }),
            expected: Box::new(move |values| {
                dense_product(&factor(&self.a.entries, values, N), (ROWS, 1), |k, _| self.dense[k])
            }),
        }
    }

    fn spmm(&self, name: &'static str, alg: SpmmAlg) -> DeviceProduct<'_> {
        let shape = |rows: usize| Dense::<f64>::new((rows, N_DENSE), Order::Row, 0).shape;
        DeviceProduct {
            name,
            plan: Box::new(move |session| {
                let (a, orders) = (self.stored.open().unwrap(), (Order::Row, Order::Row));
                let (types, n) = ((F64::TYPES.x, F64::TYPES.y), N_DENSE as i64);
                let plan =
                    Plan::spmm(session, (N, N), &a, orders, n, types, F64::TYPES.compute, alg).unwrap();
                plan.set_value_updates(true).unwrap();
                plan.analyze(session).unwrap();
                plan
            }),
            run: Box::new(move |session, plan, c| {
                let (b, c) = ((&self.on_device, shape(INNER)), (c, shape(ROWS)));
                plan.run_spmm(session, 1.0, b, 0.0, c)
            }),
            expected: Box::new(move |values| {
                let a = factor(&self.a.entries, values, N);
                dense_product(&a, (ROWS, N_DENSE), |k, j| self.dense[k * N_DENSE + j])
            }),
        }
    }

    fn spgemm(&self, name: &'static str, alg: SpgemmAlg) -> DeviceProduct<'_> {
        self.spgemm_of(name, move |session| {
            let (a, b) = (self.stored.open().unwrap(), self.b_stored.open().unwrap());
            Plan::spgemm(session, (N, N), &a, &b, F64::TYPES.compute, alg).unwrap()
        })
    }

    /// Returns the product of A and B in tiles, which are made with the plan. If `alone`, the plan's
    /// descriptors are destroyed at once; otherwise the second result keeps those of the last plan until it
    /// is cleared.
    pub fn of_tiles(&self, alone: bool) -> (DeviceProduct<'_>, Rc<RefCell<Vec<Sparse<'static>>>>) {
        let kept = Rc::<RefCell<Vec<Sparse<'static>>>>::default();
        let keep = Rc::clone(&kept);
        let product = self.spgemm_of("SpGEMM of tiles", move |session| {
            let tiles =
                [(&self.stored, (ROWS, INNER)), (&self.b_stored, (INNER, COLS))].map(|(of, (rows, cols))| {
                    let made = Sparse::tile(session, (rows as i64, cols as i64), DataType::R64F).unwrap();
                    made.take(session, &of.open().unwrap()).unwrap();
                    made
                });
            let plan =
                Plan::spgemm(session, (N, N), &tiles[0], &tiles[1], F64::TYPES.compute, SpgemmAlg::Tile)
                    .unwrap();
            // Analysis uses the values that the tiles have then.
            plan.set_value_updates(true).unwrap();
            plan.analyze(session).unwrap();
            keep.borrow_mut().clear();
            if !alone {
                keep.borrow_mut().extend(tiles);
            }
            plan
        });
        (product, kept)
    }

    fn spgemm_of<'a>(
        &'a self,
        name: &'static str,
        make: impl Fn(&Session) -> Plan<'a> + 'a,
    ) -> DeviceProduct<'a> {
        let expected = move |values: &[f64]| {
            let a = factor(&self.a.entries, values, N);
            sparse_product(&a, &self.b.factor()).into_values().collect::<Vec<_>>()
        };
        let nnz = expected(&self.a.values).len();
        let pattern = (upload(CUDA, &[-1_i32; ROWS + 1]), upload(CUDA, &vec![-1_i32; nnz]));
        memory(CUDA).synchronize().unwrap();
        let pattern = Rc::new(RefCell::new(pattern));
        let numeric = move |session: &Session, plan: &Plan<'a>, values: &mut Array<'_, f64>| {
            let (offsets, indices) = &mut *pattern.borrow_mut();
            let shape = (ROWS as i64, COLS as i64);
            plan.numeric_csr(session, 1.0, shape, offsets, indices, values, C_TARGET.base)
        };
        let first = numeric.clone();
        DeviceProduct {
            name,
            plan: Box::new(move |session| {
                let plan = make(session);
                if plan.info().unwrap().analyzed == 0 {
                    plan.set_value_updates(true).unwrap();
                    plan.analyze(session).unwrap();
                }
                assert_eq!(plan.symbolic(session).unwrap() as usize, nnz);
                // The first numeric phase stores what later ones need.
                let mut values = session.upload(&vec![f64::NAN; nnz]).unwrap();
                first(session, &plan, &mut values).unwrap();
                session.synchronize().unwrap();
                plan
            }),
            run: Box::new(numeric),
            expected: Box::new(expected),
        }
    }
}
