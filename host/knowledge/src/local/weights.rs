//! The numbers in `model.safetensors`.
//!
//! Why this exists: a file of weights comes from somewhere else. What is taken from it has the shape that `config.json`
//! says, before any memory is had for it.
//!
//! What it must not do: have memory for more numbers than the file has, or read one at a place that the file names without
//! a check. The check of places is that of the crate `safetensors`.

use safetensors::{Dtype, SafeTensors};

/// The tensor that tells how the names of all others begin.
const FIRST: &str = "embeddings.word_embeddings.weight";

/// The tensors of a file. Errors are what is wrong with the file.
pub(super) struct Weights<'a> {
    tensors: SafeTensors<'a>,
    /// What stands before each name: nothing, or what the whole has as a part of another model.
    prefix: &'static str,
}

impl<'a> Weights<'a> {
    pub(super) fn new(file: &'a [u8]) -> Result<Self, String> {
        let tensors = SafeTensors::deserialize(file).map_err(|error| error.to_string())?;
        let prefix = ["", "bert."].into_iter().find(|prefix| tensors.tensor(&format!("{prefix}{FIRST}")).is_ok());
        let prefix = prefix.ok_or_else(|| format!("it has no tensor `{FIRST}`"))?;
        Ok(Self { tensors, prefix })
    }

    /// The numbers of a tensor, row by row.
    pub(super) fn get(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let name = format!("{}{name}", self.prefix);
        let tensor = self.tensors.tensor(&name).map_err(|_| format!("it has no tensor `{name}`"))?;
        if tensor.shape() != shape {
            let got = tensor.shape();
            return Err(format!("its tensor `{name}` has the shape {got:?}; by `config.json` it is {shape:?}"));
        }
        let data = tensor.data();
        Ok(match tensor.dtype() {
            Dtype::F32 => numbers(data, f32::from_le_bytes),
            Dtype::F16 => numbers(data, |bytes| from_half(u16::from_le_bytes(bytes))),
            Dtype::BF16 => numbers(data, |bytes| f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)),
            Dtype::F64 => numbers(data, |bytes| f64::from_le_bytes(bytes) as f32),
            other => return Err(format!("its tensor `{name}` has numbers of the type {other}; known are F16 to F64")),
        })
    }

    /// The weights of a norm: what it multiplies with and what it adds. In old files they have other names.
    pub(super) fn norm(&self, name: &str, size: usize) -> Result<(Vec<f32>, Vec<f32>), String> {
        let get = |new: &str, old: &str| {
            let old = format!("{name}.{old}");
            let is_old = self.tensors.tensor(&format!("{}{old}", self.prefix)).is_ok();
            self.get(&if is_old { old } else { format!("{name}.{new}") }, &[size])
        };
        Ok((get("weight", "gamma")?, get("bias", "beta")?))
    }
}

fn numbers<const N: usize>(data: &[u8], number: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    let (numbers, _) = data.as_chunks::<N>();
    numbers.iter().map(|&bytes| number(bytes)).collect()
}

/// A number of half precision.
fn from_half(bits: u16) -> f32 {
    let (exponent, fraction) = (u32::from((bits >> 10) & 0x1f), u32::from(bits & 0x3ff));
    let size = match exponent {
        // Smaller than what has a leading 1: steps of 2^-24.
        0 => fraction as f32 * 2_f32.powi(-24),
        0x1f => f32::from_bits(0x7f80_0000 | (fraction << 13)),
        _ => f32::from_bits(((exponent + 112) << 23) | (fraction << 13)),
    };
    if bits >> 15 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves() {
        for (bits, number) in [
            (0x0000, 0.0),
            (0x8000, -0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65_504.0),
            (0x0400, 6.103_515_6e-5),
            (0x03ff, 6.097_555e-5),
            (0x8001, -5.960_464_5e-8),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            assert_eq!(from_half(bits).to_bits(), f32::to_bits(number), "{bits:x}");
        }
        assert!(from_half(0x7e00).is_nan());
    }
}
