//! Memory for the columns of C, which the symbolic phase fills and numeric phases read. Products with few
//! multiplications have their columns as they are. In others a row has 16-bit distances from its first column
//! where these suffice, since there memory that no one has touched before is as dear as finding the columns:
//!
//! ```text
//! row      first column (4 numbers of 16 bits), distances (1 number each)
//! wide row first column, bit 63 set; columns (2 or 4 numbers each)
//! ```

use std::ops::Range;

use super::places::Key;
use crate::backend::host::operand::Shared;
use crate::error::Result;
use crate::memory::{Buffer, Context};

/// Numbers in front of a row's columns.
const HEAD: usize = 4;

/// Mark of a row whose columns are not distances.
const WIDE: u64 = 1 << 63;

/// Numbers of a column that is not a distance.
pub const fn numbers<K: Key>() -> usize {
    size_of::<K>() / size_of::<u16>()
}

/// Returns the memory of numbers as that of columns.
pub fn columns<K: Key>(numbers: &mut [u16]) -> &mut [K] {
    let whole = numbers.len() / self::numbers::<K>() * self::numbers::<K>();
    if whole == 0 {
        // An empty slice need not be aligned.
        return &mut [];
    }
    bytemuck::cast_slice_mut(&mut numbers[..whole])
}

/// Returns the maximum number of 16-bit numbers that a row of `count` columns takes in a list.
pub fn most<K: Key>(count: usize) -> usize {
    if count == 0 {
        0
    } else {
        HEAD + count * numbers::<K>()
    }
}

/// Number of multiplications from which on columns are distances: with fewer, packing takes more time than it
/// saves.
const FAR: i64 = 1 << 24;

/// Form of the columns of a product.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// True if the columns of each row ascend.
    pub sorted: bool,
    /// True if columns are distances where these suffice.
    distances: bool,
}

impl Form {
    /// Returns the form of a product of this many multiplications.
    pub fn new(sorted: bool, products: i64) -> Self {
        Form { sorted, distances: products >= FAR }
    }

    /// Returns whether rows are written as they are, one behind the other.
    pub fn is_plain(self) -> bool {
        !self.distances
    }

    /// Returns the number that is added to distances of columns, so that none is negative: 0 if columns are sorted.
    fn bias(self) -> u16 {
        if self.sorted {
            0
        } else {
            1 << 15
        }
    }

    /// Writes a row of columns to `packed`, and returns how many numbers it takes.
    #[inline]
    pub fn pack<K: Key>(self, columns: &[K], packed: &mut [u16]) -> usize {
        let Some(&first) = columns.first() else { return 0 };
        let plain: &[u16] = bytemuck::cast_slice(columns);
        if !self.distances {
            packed[..plain.len()].copy_from_slice(plain);
            return plain.len();
        }
        let (head, rest) = packed.split_at_mut(HEAD);
        let (bias, mut all) = (self.bias(), 0);
        for (number, col) in rest[..columns.len()].iter_mut().zip(columns) {
            let apart = col.apart(first, bias);
            all |= apart;
            *number = apart as u16;
        }
        let narrow = all <= u32::from(u16::MAX);
        let mark = first.to_i64() as u64 | if narrow { 0 } else { WIDE };
        head.copy_from_slice(bytemuck::cast_slice(&[mark]));
        if narrow {
            return HEAD + columns.len();
        }
        rest[..plain.len()].copy_from_slice(plain);
        HEAD + plain.len()
    }
}

/// Columns of a row.
#[derive(Clone, Copy, Debug)]
pub enum Columns<'a, K> {
    /// The columns themselves.
    Plain(&'a [K]),
    /// First column, bias, and distances.
    Narrow(K, u16, &'a [u16]),
    /// Bytes of the columns, not aligned.
    Wide(&'a [u16]),
}

impl<K: Key> Columns<'_, K> {
    /// Returns a column.
    #[inline]
    pub fn get(&self, at: usize) -> i64 {
        let size = numbers::<K>();
        match self {
            Columns::Plain(columns) => columns[at].to_i64(),
            Columns::Narrow(first, bias, distances) => first.moved(distances[at], *bias).to_i64(),
            Columns::Wide(all) => {
                let bytes: &[u8] = bytemuck::cast_slice(&all[at * size..(at + 1) * size]);
                bytemuck::pod_read_unaligned::<K>(bytes).to_i64()
            }
        }
    }

    /// Writes all columns to `list`.
    #[inline(always)]
    pub fn unpack(&self, list: &mut [K]) {
        match self {
            Columns::Plain(columns) => list.copy_from_slice(columns),
            Columns::Narrow(first, bias, distances) => {
                for (col, &distance) in list.iter_mut().zip(*distances) {
                    *col = first.moved(distance, *bias);
                }
            }
            Columns::Wide(all) => bytemuck::cast_slice_mut(list).copy_from_slice(all),
        }
    }
}

/// Columns of the rows of an item that have not been read.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    rest: &'a [u16],
    form: Form,
}

impl<'a> Packed<'a> {
    /// The columns of an item that has none.
    pub const EMPTY: Self = Packed { rest: &[], form: Form { sorted: true, distances: false } };

    /// Returns the next row, which has this many columns.
    #[inline(always)]
    pub fn next<K: Key>(&mut self, count: usize) -> Columns<'a, K> {
        if count == 0 {
            return Columns::Plain(&[]);
        }
        if !self.form.distances {
            let (columns, rest) = self.rest.split_at(count * numbers::<K>());
            self.rest = rest;
            return Columns::Plain(bytemuck::cast_slice(columns));
        }
        let (head, rest) = self.rest.split_at(HEAD);
        let mark: u64 = bytemuck::pod_read_unaligned(bytemuck::cast_slice(head));
        let narrow = mark & WIDE == 0;
        let (columns, rest) = rest.split_at(if narrow { count } else { count * numbers::<K>() });
        self.rest = rest;
        match narrow {
            true => Columns::Narrow(K::from_i64(mark as i64), self.form.bias(), columns),
            false => Columns::Wide(columns),
        }
    }
}

/// Columns of the product, row by row, without gaps within an item of rows.
#[derive(Debug)]
pub struct Lists {
    /// Memory, and the position of its first number.
    chunks: Vec<(usize, Buffer<u16>)>,
    /// Position of each item's first number; -1 for items without columns.
    starts: Buffer<i64>,
    /// Form of the columns.
    pub form: Form,
}

impl Lists {
    /// Creates lists of this many items, without any columns.
    pub fn new(cx: &Context, items: usize, form: Form) -> Result<Self> {
        let mut starts = Buffer::zeroed(&cx.allocator, items)?;
        starts.fill(-1);
        Ok(Lists { chunks: Vec::new(), starts, form })
    }

    /// Allocates room for `count` more numbers, and opens it for writing.
    pub fn grow(&mut self, cx: &Context, count: usize) -> Result<Room> {
        let first = self.chunks.last().map_or(0, |(first, chunk)| first + chunk.len());
        // SAFETY: only numbers that have been written are read ([`Self::item`]).
        let mut chunk = unsafe { Buffer::unset(&cx.allocator, count)? };
        let room =
            Room { first, count, numbers: Shared::new(&mut chunk), starts: Shared::new(&mut self.starts) };
        self.chunks.push((first, chunk));
        Ok(room)
    }

    /// Returns whether an item has no columns here.
    pub fn lacks(&self, item: usize) -> bool {
        self.starts[item] < 0
    }

    fn place(&self, item: usize) -> Option<(usize, usize)> {
        let start = usize::try_from(self.starts[item]).ok()?;
        let chunk = self.chunks.partition_point(|&(first, _)| first <= start) - 1;
        Some((chunk, start - self.chunks[chunk].0))
    }

    /// Returns the columns of the rows of an item.
    pub fn item(&self, item: usize) -> Packed<'_> {
        self.place(item).map_or(Packed::EMPTY, |(chunk, at)| Packed {
            rest: &self.chunks[chunk].1[at..],
            form: self.form,
        })
    }

    /// Sorts the columns of each row; `offsets` are those of the rows.
    pub fn sort<K: Key>(&mut self, cx: &Context, items: &[i64], offsets: &[i64]) -> Result<()> {
        let count = |row: usize| (offsets[row + 1] - offsets[row]) as usize;
        let longest = (0..offsets.len() - 1).map(count).max().unwrap_or(0);
        let mut list = Buffer::<K>::zeroed(&cx.allocator, longest)?;
        let form = Form { sorted: true, ..self.form };
        for item in 0..items.len() - 1 {
            let rows: Range<usize> = items[item] as usize..items[item + 1] as usize;
            let Some((chunk, mut from)) = self.place(item) else { continue };
            let (mut to, numbers) = (from, &mut self.chunks[chunk].1);
            for row in rows {
                let list = &mut list[..count(row)];
                let mut packed = Packed { rest: &numbers[from..], form: self.form };
                packed.next(list.len()).unpack(list);
                from = numbers.len() - packed.rest.len();
                list.sort_unstable();
                // A row takes no more than it did.
                to += form.pack(list, &mut numbers[to..from]);
            }
        }
        self.form = form;
        Ok(())
    }
}

/// Room for columns, in which threads write those of their items.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Position of the first number.
    first: usize,
    /// Numbers for which there is room.
    pub count: usize,
    numbers: Shared<u16>,
    starts: Shared<i64>,
}

impl Room {
    /// Writes the columns of an item from the place `at` on; there must be room for them.
    ///
    /// # Safety
    /// No other thread writes there or has this item, and the lists live and are not used otherwise.
    pub unsafe fn write(&self, item: usize, at: usize, packed: &[u16]) {
        // SAFETY: the caller's promise.
        unsafe {
            self.numbers.part(at..at + packed.len()).copy_from_slice(packed);
            self.starts.set(item, (self.first + at) as i64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packs<K: Key>(rows: &[&[i64]], form: Form) -> usize {
        let lists: Vec<Vec<K>> =
            rows.iter().map(|row| row.iter().map(|&col| K::from_i64(col)).collect()).collect();
        let mut packed = vec![7; lists.iter().map(|list| most::<K>(list.len())).sum()];
        let used = lists.iter().fold(0, |at, list| at + form.pack(list, &mut packed[at..]));
        let mut rest = Packed { rest: &packed[..used], form };
        for list in &lists {
            let columns = rest.next::<K>(list.len());
            let mut found = vec![K::NONE; list.len()];
            columns.unpack(&mut found);
            assert_eq!(&found, list);
            assert!(list.iter().enumerate().all(|(at, col)| columns.get(at) == col.to_i64()));
        }
        assert!(rest.rest.is_empty());
        used
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let far = i64::from(i32::MAX);
        let [found, sorted] = [false, true].map(|sorted| Form::new(sorted, FAR));
        let narrow: [&[i64]; 5] =
            [&[3], &[], &[70_000, 70_000 - (1 << 15), 70_000 + (1 << 15) - 1], &[5, 1, 4], &[far]];
        let wide: [&[i64]; 4] = [&[70_000, 70_000 - (1 << 15) - 1], &[0, 1 << 15], &[far, 0, far], &[0, far]];
        assert_eq!(packs::<i32>(&narrow, found), 4 * HEAD + 8);
        assert_eq!(packs::<i64>(&narrow, found), 4 * HEAD + 8);
        assert_eq!(packs::<i32>(&wide, found), 4 * HEAD + 2 * 9);
        assert_eq!(packs::<i64>(&wide, found), 4 * HEAD + 4 * 9);
        let (narrow, wide): (&[i64], &[i64]) = (&[2, 3, 2 + 65_535], &[2, 2 + 65_536]);
        assert_eq!(packs::<i32>(&[narrow], sorted), HEAD + 3);
        assert_eq!(packs::<i32>(&[wide, narrow], sorted), 2 * HEAD + 4 + 3);
        packs::<i64>(&[&[1 << 40, (1 << 40) - 3], &[1 << 50, 7, 1 << 33], &[]], found);
        let plain = Form::new(false, FAR - 1);
        assert_eq!(packs::<i32>(&[&[5, 1, 4], &[], &[70_000]], plain), 8);
        assert_eq!(packs::<i64>(&[&[5, 1, 4], &[], &[1 << 40]], plain), 16);
    }

    fn sorts(form: Form) {
        let cx = super::super::tests::unlimited();
        let rows: [&[i32]; 5] = [&[9, 70_000, 8], &[], &[5, 1, 4], &[40_000, 10_000, 70_000], &[1, 0]];
        let (items, offsets) = ([0, 3, 5], [0, 3, 3, 6, 9, 11]);
        let mut lists = Lists::new(&cx, 2, form).unwrap();
        for (item, rows) in [&rows[..3], &rows[3..]].into_iter().enumerate() {
            let mut packed = [0; 100];
            let used = rows.iter().fold(0, |at, row| at + form.pack(row, &mut packed[at..]));
            let room = lists.grow(&cx, used).unwrap();
            assert!(lists.lacks(item));
            // SAFETY: there is one thread.
            unsafe { room.write(item, 0, &packed[..used]) };
            assert!(!lists.lacks(item));
        }
        lists.sort::<i32>(&cx, &items, &offsets).unwrap();
        assert!(lists.form.sorted);
        for (item, rows) in [&rows[..3], &rows[3..]].into_iter().enumerate() {
            let mut packed = lists.item(item);
            for row in rows {
                let (mut found, mut sorted) = (vec![0; row.len()], row.to_vec());
                packed.next::<i32>(row.len()).unpack(&mut found);
                sorted.sort();
                assert_eq!(found, sorted);
            }
        }
    }

    #[test]
    fn rows_are_sorted_where_they_are() {
        sorts(Form::new(false, 1));
        sorts(Form::new(false, FAR));
    }
}
