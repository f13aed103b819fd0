//! The arithmetic of an encoder on slices of numbers.
//!
//! Why this exists: an encoder needs a product of matrices and four functions of rows. They are written so that the
//! compiler makes vector instructions of them; the product is that of the crate `matrixmultiply`, which chooses the best
//! instructions of the processor.
//!
//! What it must not do: hide a number that is none. It stays to the end, where it is refused.

/// Sums are added up in so many parts, side by side.
const LANES: usize = 16;

/// A matrix in a slice: where its rows and columns are.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) data: &'a [f32],
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// From one row to the next.
    pub(super) row_step: usize,
    /// From one column to the next.
    pub(super) column_step: usize,
}

impl<'a> Matrix<'a> {
    /// Rows one after the other.
    pub(super) fn of_rows(data: &'a [f32], columns: usize) -> Self {
        Self { data, rows: data.len() / columns.max(1), columns, row_step: columns, column_step: 1 }
    }

    pub(super) fn transposed(self) -> Self {
        Self { rows: self.columns, columns: self.rows, row_step: self.column_step, column_step: self.row_step, ..self }
    }
}

/// How many numbers a slice must have for so many rows and columns with these steps.
fn span(rows: usize, columns: usize, row_step: usize, column_step: usize) -> usize {
    let (row, column) = (rows.saturating_sub(1), columns.saturating_sub(1));
    row.saturating_mul(row_step).saturating_add(column.saturating_mul(column_step)).saturating_add(1)
}

/// `out = keep * out + scale * left * right`; the rows of `out` are `step` apart.
///
/// # Panics
///
/// The matrices do not fit each other or are not within their slices, which is a mistake of the caller.
pub(super) fn multiply(scale: f32, left: Matrix<'_>, right: Matrix<'_>, keep: f32, out: &mut [f32], step: usize) {
    let (rows, inner, columns) = (left.rows, left.columns, right.columns);
    if rows == 0 || inner == 0 || columns == 0 {
        return;
    }
    let within = |matrix: &Matrix<'_>| {
        span(matrix.rows, matrix.columns, matrix.row_step, matrix.column_step) <= matrix.data.len()
    };
    assert!(right.rows == inner && within(&left) && within(&right), "matrices of other sizes");
    assert!(step >= columns && span(rows, columns, step, 1) <= out.len(), "no room for a product");
    // SAFETY: the three matrices are within their slices, as was checked just now, so no step is greater than what an
    // `isize` holds unless it is never taken. `out` is borrowed alone, and as its rows are at least as far apart as they
    // are long, no two of its elements are at one place.
    unsafe {
        matrixmultiply::sgemm(
            rows,
            inner,
            columns,
            scale,
            left.data.as_ptr(),
            left.row_step as isize,
            left.column_step as isize,
            right.data.as_ptr(),
            right.row_step as isize,
            right.column_step as isize,
            keep,
            out.as_mut_ptr(),
            step as isize,
            1,
        );
    }
}

/// Gives each row the mean 0 and the variance 1, then `weight` and `bias`.
pub(super) fn norm(rows: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
    let size = weight.len() as f32;
    for row in rows.chunks_exact_mut(weight.len().max(1)) {
        let mean = sum(row, |number| number) / size;
        let variance = sum(row, |number| (number - mean) * (number - mean)) / size;
        let factor = 1.0 / (variance + epsilon).sqrt();
        for ((number, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
            *number = (*number - mean) * factor * weight + bias;
        }
    }
}

/// Makes shares of each row that together are 1.
pub(super) fn shares(rows: &mut [f32], columns: usize) {
    for row in rows.chunks_exact_mut(columns.max(1)) {
        let greatest = row.iter().fold(f32::NEG_INFINITY, |most, &number| if number > most { number } else { most });
        for number in row.iter_mut() {
            *number = exp(*number - greatest);
        }
        let factor = 1.0 / sum(row, |number| number);
        for number in row {
            *number *= factor;
        }
    }
}

/// The function GELU as it is defined, with the error function.
pub(super) fn gelu(numbers: &mut [f32]) {
    for number in numbers {
        *number *= (erf(*number * std::f32::consts::FRAC_1_SQRT_2) + 1.0) * 0.5;
    }
}

/// What was used for GELU before the error function was to be had everywhere.
pub(super) fn gelu_by_tanh(numbers: &mut [f32]) {
    for number in numbers {
        let x = *number;
        let inner = (2.0 / std::f32::consts::PI).sqrt() * x * (1.0 + 0.044715 * x * x);
        *number = 0.5 * x * (1.0 + inner.tanh());
    }
}

/// Nothing below zero.
pub(super) fn relu(numbers: &mut [f32]) {
    for number in numbers {
        // Not `max`, which makes a number of what is none.
        *number = if *number < 0.0 { 0.0 } else { *number };
    }
}

/// The sum of `term` over `numbers`.
pub(super) fn sum(numbers: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let (blocks, rest) = numbers.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for block in blocks {
        for (sum, &number) in sums.iter_mut().zip(block) {
            *sum += term(number);
        }
    }
    sums.iter().sum::<f32>() + rest.iter().map(|&number| term(number)).sum::<f32>()
}

/// The error function, wrong by at most 5e-7: a quotient of polynomials, the one that Eigen and XLA use.
fn erf(x: f32) -> f32 {
    let s = x * x;
    let over =
        ((((-2.726_142_3e-10 * s + 2.770_681_4e-8) * s - 2.101_024e-6) * s - 5.692_506_4e-5) * s - 7.349_906_3e-4) * s;
    let over = ((over - 2.954_6e-3) * s - 1.609_603_3e-2) * x;
    let under = (((-1.456_607_2e-5 * s - 2.133_740_6e-4) * s - 1.682_827e-3) * s - 7.373_329_2e-3) * s - 1.426_473_9e-2;
    // From there on it is 1 in single precision.
    if s > 3.92 * 3.92 { 1_f32.copysign(x) } else { over / under }
}

/// The exponential function of what is not above zero, right to the last place but one. Below -87 it is no less than there.
fn exp(x: f32) -> f32 {
    /// Added to a small number, leaves its whole part in the last bits.
    const WHOLE: f32 = 12_582_912.0;
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + WHOLE;
    let power = shifted - WHOLE;
    // The logarithm of 2 in two parts, the first of few bits, so that the product with it is exact.
    let r = x - power * 0.693_359_4 + power * 2.121_944_4e-4;
    let p = ((((1.987_569_1e-4 * r + 1.398_199_9e-3) * r + 8.333_452e-3) * r + 4.166_579_6e-2) * r + 0.166_666_65) * r;
    let power = shifted.to_bits().wrapping_sub(WHOLE.to_bits()).wrapping_add(127) << 23;
    ((p + 0.5) * r * r + r + 1.0) * f32::from_bits(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_of_mathematics() {
        let close = |got: f32, expected: f64, by: f64| {
            assert!((f64::from(got) - expected).abs() <= by, "{got} is not {expected}");
        };
        for (x, expected) in [
            (0.0, 0.0),
            (0.1, 0.112_462_916_018_284_9),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
            (3.9, 0.999_999_965_207_751_4),
            (50.0, 1.0),
        ] {
            close(erf(x), expected, 5e-7);
            close(erf(-x), -expected, 5e-7);
        }
        for step in 0..8700 {
            let x = -(step as f32) / 100.0;
            let expected = f64::from(x).exp();
            close(exp(x), expected, expected * 2e-7);
        }
        assert!(erf(f32::NAN).is_nan() && exp(f32::NAN).is_nan());
        // The first numbers are those of PyTorch.
        type Function = fn(&mut [f32]);
        for (function, expected) in [
            (gelu as Function, [-0.045_500_264, -0.158_655_26, 0.345_731_23, 2.995_950_3]),
            (gelu_by_tanh, [-0.045_402_348, -0.158_808, 0.345_714, 2.996_362_7]),
            (relu, [0.0, 0.0, 0.5, 3.0]),
        ] {
            let mut numbers = [-2.0, -1.0, 0.5, 3.0, -40.0, f32::NAN];
            function(&mut numbers);
            numbers.iter().zip(expected).for_each(|(&got, expected)| close(got, expected, 1e-6));
            assert!(numbers[4] == 0.0 && numbers[5].is_nan());
        }
    }

    #[test]
    fn rows_are_scaled() {
        let mut rows: Vec<f32> = (0..40).map(|number| (number * number % 17) as f32).collect();
        norm(&mut rows, &[2.0; 20], &[1.0; 20], 0.0);
        for row in rows.chunks(20) {
            let mean = sum(row, |number| number) / 20.0;
            assert!((mean - 1.0).abs() < 1e-5 && (sum(row, |x| (x - mean) * (x - mean)) / 20.0 - 4.0).abs() < 1e-4);
        }
        let mut rows = [1e30, 0.0, 0.0, 0.0, f32::NAN, 0.0];
        shares(&mut rows, 2);
        assert_eq!((rows[0], rows[2], rows[3]), (1.0, 0.5, 0.5));
        assert!(rows[1] < 1e-30 && rows[4].is_nan() && rows[5].is_nan());
    }

    #[test]
    fn products_of_parts_of_slices() {
        let left: Vec<f32> = (0..12).map(|number| number as f32).collect();
        // Two rows of three numbers out of rows of four, times two rows of three out of rows of three, transposed.
        let left = Matrix { columns: 3, ..Matrix::of_rows(&left[4..], 4) };
        let right = Matrix::of_rows(&[1.0, 0.0, 0.0, 0.0, 1.0, 2.0], 3).transposed();
        let mut out = [1.0; 6];
        multiply(2.0, left, right, 1.0, &mut out, 4);
        assert_eq!(out, [9.0, 35.0, 1.0, 1.0, 17.0, 59.0]);
        let wrong = std::panic::catch_unwind(|| multiply(1.0, left, right, 0.0, &mut [0.0; 5], 4));
        assert!(wrong.is_err());
    }
}
