//! Vectors as bytes, and how close they are.
//!
//! All vectors of a knowledge base are looked at for each question. That is exact, needs no index to be kept, and for a
//! hundred thousand chunks takes about as long as embedding the question.

use std::{cmp::Reverse, collections::BinaryHeap};

use rusqlite::Connection;

/// How many products are summed side by side, so that the processor does several at once.
const LANES: usize = 16;

/// `vector` with length one, so that the product of two is the cosine of their angle. A vector of zeros stays as it is.
pub(super) fn normalised(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|&number| f64::from(number).powi(2)).sum::<f64>().sqrt();
    if length == 0.0 {
        return vector.to_vec();
    }
    vector.iter().map(|&number| (f64::from(number) / length) as f32).collect()
}

pub(super) fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The product of a vector and one in bytes; `None` if they differ in length.
fn product(vector: &[f32], bytes: &[u8]) -> Option<f32> {
    if bytes.len() != vector.len() * 4 {
        return None;
    }
    let number = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes);
    let (numbers, _) = bytes.as_chunks::<4>();
    let (left, left_rest) = vector.as_chunks::<LANES>();
    let (right, right_rest) = numbers.as_chunks::<LANES>();
    let mut sums = [0_f32; LANES];
    for (left, right) in left.iter().zip(right) {
        for lane in 0..LANES {
            sums[lane] += left[lane] * number(&right[lane]);
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(left, right)| left * number(right)).sum();
    Some(sums.iter().sum::<f32>() + rest)
}

/// A chunk and how close it is; the order is by closeness, then by the lower number.
#[derive(PartialEq)]
struct Close(f32, i64);

impl Eq for Close {}

impl PartialOrd for Close {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Close {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(other.1.cmp(&self.1))
    }
}

/// The `count` chunks that are closest to `query`, closest first. `query` has length one.
pub(super) fn closest(connection: &Connection, query: &[f32], count: usize) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare_cached("SELECT chunk, vector FROM vectors")?;
    let mut rows = statement.query([])?;
    let mut best: BinaryHeap<Reverse<Close>> = BinaryHeap::with_capacity(count + 1);
    while let Some(row) = rows.next()? {
        let Some(closeness) = product(query, row.get_ref(1)?.as_blob()?) else { continue };
        let close = Close(closeness, row.get(0)?);
        if best.len() < count {
            best.push(Reverse(close));
        } else if best.peek().is_some_and(|worst| close > worst.0) {
            best.pop();
            best.push(Reverse(close));
        }
    }
    // Ascending order of what is reversed is closest first.
    Ok(best.into_sorted_vec().into_iter().map(|Reverse(Close(_, chunk))| chunk).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition() {
        for length in [1, 3, 16, 37, 384] {
            let left: Vec<f32> = (0..length).map(|at| (at as f32 * 0.7).sin()).collect();
            let right: Vec<f32> = (0..length).map(|at| (at as f32 * 0.3).cos()).collect();
            let expected: f64 = left.iter().zip(&right).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            let got = product(&left, &to_bytes(&right)).map(f64::from).unwrap_or_default();
            assert!((got - expected).abs() < 1e-4, "{length}: {got} {expected}");
        }
        assert_eq!(product(&[1.0, 2.0], &to_bytes(&[1.0])), None);
        assert_eq!((normalised(&[3.0, 4.0]), normalised(&[0.0, 0.0])), (vec![0.6, 0.8], vec![0.0, 0.0]));
    }

    #[test]
    fn the_closest_come_first_and_ties_by_number() {
        let connection = Connection::open_in_memory().expect("SQLite");
        connection.execute_batch("CREATE TABLE vectors (chunk INTEGER PRIMARY KEY, vector BLOB)").expect("a table");
        for (chunk, vector) in [(1, [0.0, 1.0]), (2, [1.0, 0.0]), (3, [0.6, 0.8]), (4, [1.0, 0.0]), (5, [-1.0, 0.0])] {
            let row = (chunk, to_bytes(&vector));
            connection.execute("INSERT INTO vectors VALUES (?1, ?2)", row).expect("a row");
        }
        let closest = |count| closest(&connection, &[1.0, 0.0], count).expect("chunks");
        assert_eq!((closest(3), closest(0), closest(9)), (vec![2, 4, 3], vec![], vec![2, 4, 3, 1, 5]));
    }
}
