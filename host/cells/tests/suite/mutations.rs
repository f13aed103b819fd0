//! Guests that were damaged at random: reading, loading and running them ends with an error or a result, never with
//! the host. The numbers are the same in every run; `HOTCELL_MUTATIONS` asks for more of them.

use std::time::Duration;

use crate::support::{TestResult, cells, command, script, tools, wasm};
use hotcell_budget::{Budget, Bytes, Fuel};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// Damaged guests that are read, unless the environment asks for more.
const ROUNDS: u64 = 20_000;
/// Of those that can be read still, one of so many is loaded and run.
const RUN_ONE_OF: u64 = 40;
/// Bytes of which a wrong one does most harm: ends of numbers, sections, counts.
const NASTY: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, 0x0b, 0x40, 0x60];

fn rounds() -> u64 {
    std::env::var("HOTCELL_MUTATIONS").ok().and_then(|number| number.parse().ok()).unwrap_or(ROUNDS)
}

/// Damages `bytes` in one to eight places.
fn damage(bytes: &mut Vec<u8>, random: &mut SmallRng) {
    for _ in 0..random.random_range(1..=8) {
        if bytes.is_empty() {
            return;
        }
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..6) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = NASTY[random.random_range(0..NASTY.len())],
            2 => bytes.truncate(at),
            3 => bytes.insert(at, random.random()),
            4 => {
                let end = (at + random.random_range(1..64)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                let end = (at + random.random_range(1..64)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.random_range(0..bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
}

#[tokio::test]
async fn damaged_guests_harm_nobody() -> TestResult {
    let guests = [
        tools("", "(func $call (param i32 i32 i32 i32) (result i32) (call $ok (i32.const 1024) (i32.const 2)))"),
        script("", "(table 8 funcref) (func $run (result i32) (call $ok (i32.const 1024) (i32.const 2)))"),
        command("", "(func $start (drop (memory.grow (i32.const 1))))"),
        wasm("(component (component (core module (func))) (import \"wasi:cli/environment@0.2.0\" (instance)))"),
    ];
    let cells = cells();
    let mut random = SmallRng::seed_from_u64(80);
    let (mut readable, mut ran) = (0_u64, 0_u64);
    for round in 0..rounds() {
        let mut bytes = guests[(round % guests.len() as u64) as usize].clone();
        damage(&mut bytes, &mut random);
        if hotcell_cells::survey(&bytes).is_err() {
            continue;
        }
        readable += 1;
        if !readable.is_multiple_of(RUN_ONE_OF) {
            continue;
        }
        let Ok(cell) = cells.load("damaged.wasm", &bytes) else { continue };
        let budget = Budget {
            fuel: Fuel(1_000_000),
            wall_clock: Duration::from_secs(1),
            memory: Bytes::mib(4),
            ..Budget::default()
        };
        let _ = crate::support::run(&cells, &cell, budget).await;
        ran += 1;
    }
    assert!(readable > 0 && (ran > 0 || rounds() < ROUNDS), "{readable} could be read and {ran} were run");
    Ok(())
}

#[test]
fn damaged_descriptions_are_errors() {
    let description = r#"{"contract":"0.2.0","name":"acme:test","version":"1.0.0","description":"\u00e9","tools":[
        {"name":"tool","description":"A tool","parameters":{"type":"object","properties":{"a":{"type":"number"}}}}],
        "capabilities":{"http":["https://api.example.org"],"secret":[{"name":"KEY"}],"kv":true,"tool":["*"]}}"#;
    let body = "(func $call (param i32 i32 i32 i32) (result i32) (unreachable))";
    let guest = crate::support::tools_described("", body, None);
    let mut random = SmallRng::seed_from_u64(61);
    let mut taken = 0;
    for _ in 0..rounds() {
        let mut text = description.as_bytes().to_vec();
        damage(&mut text, &mut random);
        let mut bytes = guest.clone();
        crate::support::append_custom_section(&mut bytes, "hotcell:description", &text);
        match hotcell_cells::survey(&bytes) {
            Ok(survey) => taken += usize::from(survey.description.is_some()),
            Err(error) => assert!(error.to_string().len() < 2_000, "{error}"),
        }
    }
    assert!(taken > 0, "no description was left whole");
}
