//! A folder with graphs and a journal of its own, and the command run in it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use futures::executor::block_on;
use hotcell_journal::{Completed, Entry, Fact, RunId, RunQuery, RunRecord, RunStore, RunSummary, SqliteStore};
use tempfile::TempDir;

/// Where a test works.
pub(crate) struct Desk {
    folder: TempDir,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Desk { folder: tempfile::tempdir().unwrap() }
    }

    /// A desk with one graph, `graph.yaml`, and its scripts.
    pub(crate) fn with(graph: &str, scripts: &[(&str, &str)]) -> Self {
        let desk = Desk::new();
        desk.write("graph.yaml", graph);
        for (name, text) in scripts {
            desk.write(&format!("scripts/{name}"), text);
        }
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The command with these arguments, in this folder, knowing nothing of the machine but a cache that all tests
    /// share.
    pub(crate) fn hotcell(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotcell"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env("HOTCELL_JOURNAL", self.path("runs.db"))
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.hotcell(arguments).output().unwrap()
    }

    /// The exit code, and what is written to standard output and standard error.
    pub(crate) fn said(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.output(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Runs the command and describes what came of it, with everything that differs from run to run replaced.
    pub(crate) fn told(&self, arguments: &[&str]) -> String {
        self.describe(&self.output(arguments))
    }

    /// The same with text on standard input.
    pub(crate) fn told_with_input(&self, arguments: &[&str], input: &str) -> String {
        let mut child = self
            .hotcell(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        self.describe(&child.wait_with_output().unwrap())
    }

    pub(crate) fn describe(&self, output: &Output) -> String {
        let folder = self.folder.path().canonicalize().unwrap();
        let tidy = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).replace(&*folder.to_string_lossy(), "[FOLDER]");
            replace_changing(&text.replace(&*self.folder.path().to_string_lossy(), "[FOLDER]"))
        };
        format!(
            "exit code: {}\n--- stdout\n{}--- stderr\n{}",
            output.status.code().map_or("none".into(), |code| code.to_string()),
            tidy(&output.stdout),
            tidy(&output.stderr)
        )
    }

    /// Starts the command in the background, its standard error to be read.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.hotcell(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn journal(&self) -> SqliteStore {
        SqliteStore::open(&self.path("runs.db")).unwrap()
    }

    /// All runs in the journal, the newest first.
    pub(crate) fn runs(&self) -> Vec<RunSummary> {
        let query = RunQuery { limit: 1_000, ..RunQuery::default() };
        block_on(self.journal().list(&query)).unwrap().runs
    }

    pub(crate) fn record(&self, run: &str) -> RunRecord {
        block_on(self.journal().find(run)).unwrap()
    }

    /// A run that another process works on, once it has ended.
    pub(crate) fn ended(&self, run: &RunId) -> RunRecord {
        let mut looks = 0;
        loop {
            let record = self.record(run.as_str());
            if record.status.is_final() {
                return record;
            }
            looks += 1;
            assert!(looks < 3_000, "it is {}", record.status);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    pub(crate) fn entries(&self, run: &RunId) -> Vec<Entry> {
        block_on(self.journal().history(run)).unwrap().whole().unwrap()
    }

    /// The only run in the journal.
    pub(crate) fn only_run(&self) -> RunId {
        let runs = self.runs();
        assert_eq!(runs.len(), 1);
        runs[0].id.clone()
    }
}

/// The completed turns among entries.
pub(crate) fn completed(entries: &[Entry]) -> Vec<(&str, &Completed)> {
    entries
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::Completed(completed) => Some((entry.place.as_str(), completed)),
            _ => None,
        })
        .collect()
}

/// Names of runs, times, and amounts.
fn replace_changing(text: &str) -> String {
    static FILTERS: OnceLock<Vec<(regex::Regex, &str)>> = OnceLock::new();
    let filters = FILTERS.get_or_init(|| {
        const RUN: &str = "[2-9abcdefghjkmnpqrstvwxyz]{8}";
        [
            (format!(r"\b((run|answer|resume|show) `?){RUN}\b"), "$1[RUN]"),
            (format!(r#""run":"{RUN}""#), r#""run":"[RUN]""#),
            (format!(r"(?m)^(run +){RUN}$"), "$1[RUN]"),
            (format!(r"(?m)^{RUN}  "), "[RUN]  "),
            (r#""(elapsed_ms|fuel|wall_clock_us|peak_memory|stderr|output)":\d+(\.\d+)?"#.into(), r#""$1":[NUMBER]"#),
            (r#""(created|updated)":"[^"]*""#.into(), r#""$1":"[TIME]""#),
            (r#""digest":"[^"]*""#.into(), r#""digest":"[DIGEST]""#),
            (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \([a-z0-9 ]+\)".into(), "[TIME]"),
            (r"\b\d+(\.\d+)? ?(µs|ms|s)\b".into(), "[DURATION]"),
            (r"\b\d+(\.\d+)? ([MG] )?fuel\b".into(), "[FUEL]"),
            (r"\b\d+(\.\d+)? (bytes|[KMG]iB)\b".into(), "[BYTES]"),
            // Where an error was thrown inside the interpreter.
            (r"(?m)^ +at .*\n".into(), ""),
        ]
        .into_iter()
        .map(|(pattern, with)| (regex::Regex::new(&pattern).unwrap(), with))
        .collect()
    });
    let replaced =
        filters.iter().fold(text.to_owned(), |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned());
    // Columns of a table are as wide as what stands in them; a source line is not touched.
    let line =
        |line: &str| if line.contains('|') { line.to_owned() } else { columns().replace_all(line, "$1  ").into() };
    replaced.split('\n').map(line).collect::<Vec<String>>().join("\n")
}

fn columns() -> &'static regex::Regex {
    static COLUMNS: OnceLock<regex::Regex> = OnceLock::new();
    COLUMNS.get_or_init(|| regex::Regex::new(r"(\S) {2,}").unwrap())
}

/// A program that needs a moment and then writes a random number under its node's name.
pub(crate) fn slow_script(node: usize, milliseconds: u32) -> String {
    format!(
        "const begun = Date.now();\n\
         while (Date.now() - begun < {milliseconds});\n\
         console.log(JSON.stringify({{ node_{node}: Math.random() }}));\n"
    )
}

/// A chain of `count` nodes, each running a slow script of its own, and an end that shows what all of them wrote.
pub(crate) fn chain(count: usize, milliseconds: u32) -> Desk {
    let mut graph = String::from("name: chain\nversion: \"1.0\"\nstart: step_0\nnodes:\n");
    let desk = Desk::new();
    for node in 0..count {
        let next = if node + 1 == count { "done".into() } else { format!("step_{}", node + 1) };
        graph.push_str(&format!("  step_{node}: {{ type: script, script: scripts/step_{node}.js, next: {next} }}\n"));
        desk.write(&format!("scripts/step_{node}.js"), &slow_script(node, milliseconds));
    }
    let all: Vec<String> = (0..count).map(|node| format!("{{{{node_{node}}}}}")).collect();
    graph.push_str(&format!("  done: {{ type: end, output: \"{}\" }}\n", all.join(" ")));
    desk.write("graph.yaml", &graph);
    desk
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// What is written to standard output and standard error.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
