//! The products of an older table of `tarsia sample`, for measuring some algorithms again.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::GzDecoder;

use super::cases::{Group, GROUPS};
use crate::Result;

/// Products of a matrix that are measured again.
pub struct Products {
    /// The matrix's number.
    pub number: i64,
    /// Name from which the gallery makes the matrix.
    pub matrix: String,
    /// Products that are measured.
    pub groups: Vec<Group>,
}

/// Number of fields of a line, and positions of some, in the order of `tarsia sample --help`.
const FIELDS: usize = 10;
const NUMBER: usize = 0;
const MATRIX: usize = 1;
const OP: usize = 5;
const PRECISION: usize = 6;
const COLUMNS: usize = 7;
const TIMES: usize = 9;

/// Reads the products in which one of these algorithms was measured, matrix by matrix.
pub fn products(table: &Path, algorithms: &[String]) -> Result<Vec<Products>> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", table.display());
    let file = File::open(table).map_err(|error| failed(&error))?;
    let lines: Box<dyn Read> = match table.extension().is_some_and(|ending| ending == "gz") {
        true => Box::new(GzDecoder::new(file)),
        false => Box::new(file),
    };
    let mut out: Vec<Products> = Vec::new();
    for line in BufReader::new(lines).lines() {
        let line = line.map_err(|error| failed(&error))?;
        let fields: Vec<&str> = line.split('\t').collect();
        if line.starts_with('#') || fields[NUMBER] == "number" {
            continue;
        }
        if fields.len() != FIELDS {
            return Err(failed(&format!("a line has {} fields instead of {FIELDS}", fields.len())).into());
        }
        let number: i64 =
            fields[NUMBER].parse().map_err(|_| failed(&format!("{} is no number", fields[NUMBER])))?;
        let has = |name: &String| {
            fields[TIMES].split(' ').any(|time| time.split(':').next().is_some_and(|first| first == name))
        };
        if !algorithms.iter().any(has) {
            continue;
        }
        let is_it = |group: &Group| {
            let (op, precision, n) = group.names();
            (op, precision) == (fields[OP], fields[PRECISION]) && n.to_string() == fields[COLUMNS]
        };
        let group = GROUPS.iter().map(|&(group, _)| group).find(is_it).ok_or_else(|| {
            let product = format!("{} {} {}", fields[OP], fields[PRECISION], fields[COLUMNS]);
            failed(&format!("{product} is no product that is measured"))
        })?;
        match out.last_mut() {
            Some(last) if (last.number, last.matrix.as_str()) == (number, fields[MATRIX]) => {
                last.groups.push(group);
            }
            _ => out.push(Products { number, matrix: fields[MATRIX].into(), groups: vec![group] }),
        }
    }
    Ok(out)
}
