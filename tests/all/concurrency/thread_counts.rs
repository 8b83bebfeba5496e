//! Test that results have the same bits with any number of threads. It runs this executable again with other
//! numbers of threads, with one test only.

use client::{Plan, Session};
use matrices::SplitMix64;
use tarsia::facade::{
    pool_size, BackendKind, Effort, Format, IndexBase, Operation, Order, SpgemmAlg, SpmmAlg, SpmvAlg, TABLE,
};
use testkit::Number as _;

use super::{random, LongRows, N};
use crate::common::command_of;
use crate::common::dense::Dense;
use crate::common::number::{bits, Numbers, Value, Wide};
use crate::common::output::{Output, Target};
use crate::common::pattern::{Style, Widths};
use crate::common::staged::Staging;
use crate::common::with_types;

const HOST: BackendKind = BackendKind::Host;
/// Beginning of the lines of results in the child's output.
const LINE: &str = "bits of ";

#[test]
fn the_number_of_threads_changes_no_bit() {
    let test = format!("{}::print_bits", module_path!().split_once("::").expect("inside a crate").1);
    let answer = |threads: usize| {
        let output = command_of(std::env::current_exe().unwrap())
            .args(["--exact", &test, "--ignored", "--nocapture"])
            .env("TARSIA_NUM_THREADS", threads.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains(&format!("threads: {threads}\n")), "the library has other threads: {text}");
        text.lines().filter(|line| line.starts_with(LINE)).map(str::to_string).collect::<Vec<_>>()
    };
    let alone = answer(1);
    assert!(alone.len() > 40, "{alone:?}");
    for threads in [2, 5] {
        let answer = answer(threads);
        assert_eq!(answer.len(), alone.len());
        for (line, with_one) in answer.iter().zip(&alone) {
            assert_eq!(line, with_one, "with {threads} threads and with one");
        }
    }
}

/// Prints a hash of the bits of many results.
#[test]
#[ignore = "the test above runs it, in processes of its own"]
fn print_bits() {
    println!("\nthreads: {}", pool_size());
    for row in TABLE {
        for types in row.types {
            with_types!(*types, C => match row.op {
                tarsia::facade::OpKind::Spmv => spmv::<C>(),
                tarsia::facade::OpKind::Spmm => spmm::<C>(),
                tarsia::facade::OpKind::Spgemm => spgemm::<C>(),
            });
        }
    }
}

/// Prints a line with the hash of a result (FNV-1a of Fowler, Noll and Vo, 64 bits).
fn print(what: &str, types: tarsia::facade::Types, bits: &[u8]) {
    let hash = bits.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    println!("{LINE}{what}, {}: {hash:016x}", types.describe());
}

fn one<S: Value>() -> S {
    S::narrow(S::Wide::new(1.0, 0.0))
}

fn third<S: Value>() -> S {
    S::narrow(S::Wide::new(1.0 / 3.0, 0.5))
}

fn spmv<C: Numbers>() {
    let a = LongRows::<C::A>::new(Style::PLAIN, (5000, 4000), 20_000, 67_000);
    let stored = a.store(HOST);
    let (types, descr) = (C::TYPES, stored.open().unwrap());
    for op in [Operation::NonTranspose, Operation::ConjugateTranspose] {
        let session = Session::new(HOST).unwrap();
        let (values, alg) = ((types.x, types.y), SpmvAlg::Default);
        let plan = Plan::spmv(&session, op, &descr, values, types.compute, alg).unwrap();
        plan.set_effort(Effort::Quick).unwrap();
        plan.analyze(&session).unwrap();
        let (rows, cols) = op.shape(5000, 4000);
        let (x, mut y): (Vec<C::X>, Vec<C::Y>) = (random(cols as usize, 1), random(rows as usize, 2));
        plan.spmv(&session, third::<C::S>(), &x, one(), &mut y).unwrap();
        print(&format!("SpMV {}", op.c_name()), types, bits(&y));
    }
}

fn spmm<C: Numbers>() {
    let a = LongRows::<C::A>::new(Style::PLAIN, (900, 800), 8_000, 17_000);
    let stored = a.store(HOST);
    let (types, descr) = (C::TYPES, stored.open().unwrap());
    for op in [Operation::NonTranspose, Operation::Transpose] {
        for order in Order::ALL {
            let session = Session::new(HOST).unwrap();
            let (orders, pair, n) = ((*order, Order::Row), (types.x, types.y), 11);
            let alg = SpmmAlg::Default;
            let plan = Plan::spmm(&session, (op, N), &descr, orders, n, pair, types.compute, alg).unwrap();
            plan.analyze(&session).unwrap();
            let ((rows, cols), mut rng) = (op.shape(900, 800), SplitMix64::new(3));
            let mut b = Dense::<C::X>::new((cols as usize, n as usize), *order, 0);
            b.fill(|_, _| C::X::random(&mut rng));
            let mut c = Dense::<C::Y>::new((rows as usize, n as usize), Order::Row, 0);
            c.fill(|_, _| C::Y::random(&mut rng));
            plan.spmm(&session, third::<C::S>(), &b, one(), &mut c).unwrap();
            print(&format!("SpMM {} {}", op.c_name(), order.c_name()), types, bits(&c.values));
        }
    }
}

fn spgemm<C: Numbers>() {
    for format in [Format::Csr, Format::Csc] {
        let style = Style { format, ..Style::PLAIN };
        let a = LongRows::<C::A>::new(style, (3000, 1000), 6000, 300);
        let b = LongRows::<C::X>::new(style, (1000, 70_000), 6000, 2000);
        let (left, right) = (a.store(HOST), b.store(HOST));
        let (left, right) = (left.open().unwrap(), right.open().unwrap());
        let session = Session::new(HOST).unwrap();
        let plan =
            Plan::spgemm(&session, (N, N), &left, &right, C::TYPES.compute, SpgemmAlg::Default).unwrap();
        plan.analyze(&session).unwrap();
        let nnz = plan.symbolic(&session).unwrap() as usize;
        for target in [Format::Csr, Format::Csc] {
            let target = Target { format: target, widths: Widths::Narrow, base: IndexBase::Zero };
            let mut c = Output::<C::Y>::new(target, (3000, 70_000), nnz);
            c.compute(&session, &plan, third::<C::S>()).unwrap();
            let numbers = [c.offsets.to_vec(), c.indices.to_vec()].concat();
            let all = [bytemuck::cast_slice(&numbers), bits(&c.values)].concat();
            let what = format!("SpGEMM of {} into {}", format.short(), target.format.short());
            print(&what, C::TYPES, &all);
        }
    }
}
