//! What holds for every interpreter: nothing of the build or of another call is left in it, and every limit ends it.

use std::time::Duration;

use hotcell_budget::{Budget, Fuel, Limit};
use hotcell_cells::CellError;

/// The same task in each language: its extension and its source.
type Versions = [(&'static str, &'static str); 3];

async fn output(extension: &str, source: &str, env: &[(String, String)]) -> Option<String> {
    let report = crate::common::run(extension, source, "{}", env, None).await?;
    match report.result {
        Ok(text) => Some(text.trim_end().to_owned()),
        Err(error) => panic!("`{source}` in {extension}: {error}"),
    }
}

#[tokio::test]
async fn every_call_has_its_own_environment() {
    let versions: Versions = [
        ("js", "console.log(process.env.LLM_AGENT_VAR_A, Object.keys(process.env).length)"),
        ("py", "import os\nprint(os.environ['LLM_AGENT_VAR_A'], len(os.environ))"),
        ("sh", "echo \"$LLM_AGENT_VAR_A 2\""),
    ];
    for (extension, source) in versions {
        for value in ["first", "second"] {
            let env = [("LLM_AGENT_VAR_A".to_owned(), value.to_owned())];
            let Some(text) = output(extension, source, &env).await else { continue };
            assert_eq!(text, format!("{value} 2"), "{extension}");
        }
    }
}

#[tokio::test]
async fn random_numbers_differ_from_call_to_call() {
    let sources = [
        ("js", "console.log(Math.random())"),
        ("js", "console.log(require('crypto').randomUUID())"),
        ("py", "import random\nprint(random.random())"),
        ("py", "import uuid\nprint(uuid.uuid4())"),
        ("py", "import secrets\nprint(secrets.token_hex(8))"),
        ("sh", "echo $RANDOM$RANDOM$RANDOM"),
        ("sh", "mktemp -u"),
        ("sh", "printf '%s\\n' {1..50} | sort -R | tr '\\n' ' '"),
        ("sh", "seq 100 | shuf | tr '\\n' ' '"),
    ];
    for (extension, source) in sources {
        let Some(first) = output(extension, source, &[]).await else { continue };
        // The shell's `shuf` seeds itself with the clock, which it reads in milliseconds.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let second = output(extension, source, &[]).await;
        assert_ne!(Some(first), second, "{extension}: {source}");
    }
}

#[tokio::test]
async fn clocks_show_the_time_of_the_call() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    let sources = [
        ("js", "console.log(Math.floor(Date.now() / 1000))"),
        ("py", "import time\nprint(int(time.time()))"),
        ("py", "import datetime\nprint(int(datetime.datetime.now().timestamp()))"),
        ("sh", "date +%s"),
    ];
    for (extension, source) in sources {
        let Some(text) = output(extension, source, &[]).await else { continue };
        let shown: u64 = text.parse().expect("a number of seconds");
        assert!(shown.abs_diff(now) < 3600, "{extension} shows {shown} instead of {now}");
    }
    let moving = [
        ("js", "const a = performance.now(); setTimeout(() => console.log(performance.now() - a >= 15), 20)"),
        (
            "py",
            "import time\na = time.monotonic()\ntime.sleep(0.02)\nprint(str(time.monotonic() - a >= 0.015).lower())",
        ),
        ("sh", "sleep 0.02; (( SECONDS < 3600 )) && echo true"),
    ];
    for (extension, source) in moving {
        let Some(text) = output(extension, source, &[]).await else { continue };
        assert_eq!(text, "true", "{extension}");
    }
}

#[tokio::test]
async fn nothing_is_left_of_an_earlier_call() {
    let versions: Versions = [
        ("js", "globalThis.n = (globalThis.n || 0) + 1; Array.prototype.m = ([].m || 0) + 1; console.log(n + [].m)"),
        ("py", "import json\njson.n = getattr(json, 'n', 0) + 1\nprint(json.n + 1)"),
        ("sh", "echo x >> /tmp/f; n=$(( ${n:-0} + 1 )); echo $(( n + $(wc -l < /tmp/f) ))"),
    ];
    for (extension, source) in versions {
        for _ in 0..2 {
            let Some(text) = output(extension, source, &[]).await else { continue };
            assert_eq!(text, "2", "{extension}");
        }
    }
}

#[tokio::test]
async fn a_large_state_comes_by_file() {
    let state = format!("{{\"blob\":\"{}\",\"word\":\"ä\"}}", "x".repeat(1 << 20));
    let versions: Versions = [
        (
            "js",
            "const s = JSON.parse(require('fs').readFileSync(process.env.GRAPH_STATE_FILE, 'utf8'));\n\
             console.log(s.blob.length, s.word, process.env.GRAPH_STATE === undefined)",
        ),
        (
            "py",
            "import json, os\nwith open(os.environ['GRAPH_STATE_FILE'], encoding='utf-8') as f:\n    s = json.load(f)\n\
             print(len(s['blob']), s['word'], str('GRAPH_STATE' not in os.environ).lower())",
        ),
        (
            "sh",
            "s=$(jq -r '\"\\(.blob | length) \\(.word)\"' \"$GRAPH_STATE_FILE\")\n\
             [[ -z \"${GRAPH_STATE:-}\" ]] && echo \"$s true\"",
        ),
    ];
    for (extension, source) in versions {
        let Some(report) = crate::common::run(extension, source, &state, &[], None).await else { continue };
        assert_eq!(report.result.as_deref().map(str::trim_end), Ok("1048576 ä true"), "{extension}: {}", report.stderr);
    }
}

#[tokio::test]
async fn a_megabyte_of_output_is_accepted() {
    let versions: Versions = [
        ("js", "process.stdout.write('y'.repeat(1048576))"),
        ("py", "import sys\nsys.stdout.write('y' * 1048576)"),
        ("sh", "head -c 1048576 /dev/zero | tr '\\0' y"),
    ];
    for (extension, source) in versions {
        let Some(report) = crate::common::run(extension, source, "{}", &[], None).await else { continue };
        let text = report.result.unwrap_or_else(|error| panic!("{extension}: {error}"));
        assert!(text.len() == 1 << 20 && text.bytes().all(|byte| byte == b'y'), "{extension}: {} bytes", text.len());
    }
}

async fn limited(extension: &str, source: &str, budget: Budget) -> Option<Option<Limit>> {
    let report = crate::common::run(extension, source, "{}", &[], Some(budget)).await?;
    match &report.result {
        Err(error) => Some(error.limit()),
        Ok(text) => panic!("{extension} ended by itself with {} bytes", text.len()),
    }
}

#[tokio::test]
async fn an_endless_loop_ends_by_fuel() {
    let versions: Versions =
        [("js", "while (true) {}"), ("py", "while True:\n    pass"), ("sh", "while true; do :; done")];
    for (extension, source) in versions {
        let budget = Budget { fuel: Fuel(300_000_000), ..Budget::interpreter() };
        let Some(limit) = limited(extension, source, budget).await else { continue };
        assert_eq!(limit, Some(Limit::OutOfFuel), "{extension}");
    }
}

#[tokio::test]
async fn a_long_sleep_ends_at_the_deadline() {
    let versions: Versions = [
        ("js", "setTimeout(() => console.log('late'), 3600000)"),
        ("py", "import time\ntime.sleep(3600)"),
        ("sh", "while true; do sleep 50; done"),
    ];
    for (extension, source) in versions {
        let budget = Budget { wall_clock: Duration::from_millis(300), ..Budget::interpreter() };
        let Some(limit) = limited(extension, source, budget).await else { continue };
        assert_eq!(limit, Some(Limit::Deadline), "{extension}");
    }
}

#[tokio::test]
async fn hoarding_memory_ends_the_call() {
    let sources = [
        ("js", "const hoard = []; while (true) hoard.push(new Uint8Array(8 << 20).fill(1))"),
        ("js", "let s = 'x'; while (true) s = s + s + 'y'.repeat(1 << 20)"),
        ("py", "hoard = []\nwhile True:\n    hoard.append(bytearray(8 << 20))"),
        ("sh", "s=x; while true; do s=$s$s; done"),
    ];
    for (extension, source) in sources {
        let Some(report) = crate::common::run(extension, source, "{}", &[], None).await else { continue };
        // An interpreter that is refused memory may still end in its own way, as Python does with `MemoryError`.
        let error = report.result.expect_err("memory is limited");
        let ended = matches!(&error, CellError::Exit { .. } | CellError::Trap { .. })
            || matches!(error.limit(), Some(Limit::OutOfMemory | Limit::OutOfFuel));
        assert!(ended, "{extension}: {error}");
        assert!(report.usage.peak_memory <= Budget::interpreter().memory, "{extension} used {:?}", report.usage);
    }
}

#[tokio::test]
async fn a_flood_of_output_ends_the_call() {
    let versions: Versions = [
        ("js", "const c = 'w'.repeat(1 << 20); for (let i = 0; i < 96; i += 1) process.stdout.write(c)"),
        ("py", "import sys\nc = 'w' * (1 << 20)\nfor i in range(96):\n    sys.stdout.write(c)"),
        ("sh", "while true; do echo wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww; done"),
    ];
    for (extension, source) in versions {
        let Some(limit) = limited(extension, source, Budget::interpreter()).await else { continue };
        assert_eq!(limit, Some(Limit::OutputTooLarge), "{extension}");
    }
}

#[tokio::test]
async fn endless_recursion_is_a_failure_of_the_call() {
    let versions: Versions = [
        ("js", "function f() { return [1].map(f).length + 1; }\nf();"),
        ("py", "import sys\nsys.setrecursionlimit(10**9)\ndef f(n):\n    return f(n + 1) + 1\nf(0)"),
        ("sh", "f() { f; }; f"),
    ];
    for (extension, source) in versions {
        let Some(report) = crate::common::run(extension, source, "{}", &[], None).await else { continue };
        let error = report.result.expect_err("no stack is endless");
        assert!(
            matches!(error, CellError::Exit { .. } | CellError::Trap { .. } | CellError::Limit { .. }),
            "{extension}: {error}"
        );
    }
}
