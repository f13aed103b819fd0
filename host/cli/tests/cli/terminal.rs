//! Questions on a real terminal (a pseudo-terminal).
#![cfg(unix)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::desk::Desk;

const GRAPH: &str = r#"name: talk
version: "1.0"
start: name
nodes:
  name:
    type: input
    question: "Who asks?"
    default: somebody
    state_updates: { name: "{{input}}" }
    next: approve
  approve:
    type: approval
    question: "Send \e[31mit\e[0m for {{name}}?"
    options: ["yes", "no"]
    routes: { "yes": sent, "no": kept }
    on_other: kept
    state_updates: { why: "{{choice}}" }
  sent: { type: end, output: "sent for {{name}}" }
  kept: { type: end, output: "kept: {{why}}" }
"#;

/// A command on a terminal of its own; standard output is a pipe.
struct Talk {
    child: Child,
    keyboard: File,
    seen: Arc<Mutex<String>>,
}

impl Talk {
    fn start(desk: &Desk, arguments: &[&str]) -> Self {
        Self::with_output(desk, arguments, false)
    }

    /// The same with standard output on the terminal too, or not.
    fn with_output(desk: &Desk, arguments: &[&str], on_terminal: bool) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        // It is the terminal of the child, and must not become that of the tests.
        let no_control = OFlags::NOCTTY.bits().cast_signed();
        let terminal =
            File::options().read(true).write(true).custom_flags(no_control).open(name.to_str().unwrap()).unwrap();
        let child = desk
            .hotcell(arguments)
            .env("TERM", "xterm")
            .stdin(Stdio::from(OwnedFd::from(terminal.try_clone().unwrap())))
            .stdout(if on_terminal {
                Stdio::from(OwnedFd::from(terminal.try_clone().unwrap()))
            } else {
                Stdio::piped()
            })
            .stderr(Stdio::from(OwnedFd::from(terminal)))
            .spawn()
            .unwrap();
        let keyboard = File::from(controller);
        let mut screen = keyboard.try_clone().unwrap();
        let seen = Arc::new(Mutex::new(String::new()));
        let written = seen.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading fails when the last holder of the terminal is gone.
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                written.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        });
        Talk { child, keyboard, seen }
    }

    fn wait_for(&self, text: &str) {
        self.wait_until(text, |seen| seen.contains(text));
    }

    /// Waits for a text behind another. A key that is no text, such as Ctrl-D, only counts once the prompt is there.
    fn wait_for_behind(&self, before: &str, text: &str) {
        self.wait_until(text, |seen| seen.rsplit_once(before).is_some_and(|(_, behind)| behind.contains(text)));
    }

    fn wait_until(&self, text: &str, is_there: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        loop {
            let seen = self.seen.lock().unwrap().clone();
            if is_there(&seen) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "no `{text}` in:\n{seen}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses Ctrl-C until the command has ended. It does not count while a prompt is there that does not read yet.
    fn interrupt(&mut self) {
        let begun = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it goes on:\n{}", self.seen.lock().unwrap());
            // Writing fails when it ends just now.
            let _ = self.keyboard.write_all(b"\x03");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn end(self) -> (Option<i32>, String, String) {
        let output = self.child.wait_with_output().unwrap();
        let seen = self.seen.lock().unwrap().clone();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), seen)
    }
}

#[test]
fn options_are_chosen_and_texts_typed() {
    let desk = Desk::with(GRAPH, &[]);
    let mut talk = Talk::start(&desk, &["run", ".", "go"]);
    talk.wait_for("your answer [somebody]");
    talk.press("Ada\r");
    talk.wait_for("(type another answer)");
    talk.press("\r");
    let (code, stdout, seen) = talk.end();
    assert_eq!((code, stdout.as_str()), (Some(0), "sent for Ada\n"), "{seen}");
    assert!(seen.contains("Send \\u{1b}[31mit\\u{1b}[0m for Ada?"), "{seen}");
}

#[test]
fn an_own_answer_and_a_default() {
    let desk = Desk::with(GRAPH, &[]);
    let mut talk = Talk::start(&desk, &["run", ".", "go"]);
    talk.wait_for("your answer [somebody]");
    talk.press("\r");
    talk.wait_for("(type another answer)");
    // Down, down, and the text.
    talk.press("\u{1b}[B");
    talk.press("\u{1b}[B");
    talk.press("\r");
    talk.wait_for("\u{1b}[1myour answer\u{1b}[0m");
    talk.press("not today\r");
    let (code, stdout, seen) = talk.end();
    assert_eq!((code, stdout.as_str()), (Some(0), "kept: not today\n"), "{seen}");
}

#[test]
fn escape_leaves_the_question_for_later() {
    let desk = Desk::with(GRAPH, &[]);
    let mut talk = Talk::start(&desk, &["run", ".", "go", "--answer", "Ada"]);
    talk.wait_for("(type another answer)");
    talk.press("\u{1b}");
    let (code, stdout, seen) = talk.end();
    assert_eq!((code, stdout.as_str()), (Some(3), ""), "{seen}");
    assert!(seen.contains("hotcell runs answer"), "{seen}");
}

#[test]
fn ctrl_c_at_a_question_interrupts() {
    let desk = Desk::with(GRAPH, &[]);
    let mut talk = Talk::start(&desk, &["run", ".", "go"]);
    talk.wait_for("your answer [somebody]");
    talk.interrupt();
    let (code, _, seen) = talk.end();
    assert_eq!(code, Some(130), "{seen}");
    assert!(seen.contains("hotcell runs resume"), "{seen}");
}

#[test]
fn no_input_never_asks() {
    let desk = Desk::with(GRAPH, &[]);
    let (code, _, seen) = Talk::start(&desk, &["run", ".", "--no-input"]).end();
    assert_eq!(code, Some(3), "{seen}");
    assert!(!seen.contains("your answer"), "{seen}");
}

#[test]
fn without_a_prompt_each_message_runs_the_graph() {
    let graph = "name: parrot\nconversation_starters: [\"hello there\"]\nstart: done\nnodes:\n  done: { type: end, output: \"you said: {{initial_prompt}}\" }\n";
    let desk = Desk::with(graph, &[]);
    let mut talk = Talk::with_output(&desk, &["run", "."], true);
    talk.wait_for("Ctrl-D leaves");
    talk.press("first {{x}}\r");
    talk.wait_for("you said: first {{x}}");
    // A wrong command is named, a message that the author suggests is completed.
    talk.press("/hepl\r");
    talk.wait_for("did you mean /help?");
    talk.press("hel\t\r");
    talk.wait_for("you said: hello there");
    talk.press("/quit\r");
    let (code, _, seen) = talk.end();
    assert_eq!(code, Some(0), "{seen}");
}

#[test]
fn a_graph_that_changes_meanwhile_counts_from_the_next_message_on() {
    let graph =
        |word: &str| format!("name: x\nstart: done\nnodes:\n  done: {{ type: end, output: \"it is {word}\" }}\n");
    let desk = Desk::with(&graph("one"), &[]);
    let mut talk = Talk::with_output(&desk, &["run", "."], true);
    talk.wait_for("Ctrl-D leaves");
    talk.press("a\r");
    talk.wait_for("it is one");
    std::fs::write(desk.path("graph.yaml"), "name: [broken").unwrap();
    talk.press("b\r");
    talk.wait_for("is not closed");
    std::fs::write(desk.path("graph.yaml"), graph("two")).unwrap();
    talk.press("c\r");
    talk.wait_for_behind("it is two", "x> ");
    talk.press("\u{4}");
    assert_eq!(talk.end().0, Some(0));
}

#[test]
fn a_capability_is_granted_on_the_terminal_and_by_no_key_that_is_pressed_too_often() {
    let desk = crate::denials::desk();
    let mut talk = Talk::start(&desk, &["run", ".", "go"]);
    talk.wait_for("refuse: the run goes on without");
    talk.press("\r");
    let (code, stdout, seen) = talk.end();
    assert_eq!((code, stdout.as_str()), (Some(0), "lost\n"), "{seen}");
    assert!(seen.contains("`acme` asks for `ask`") && !seen.contains("(type another answer)"), "{seen}");

    let mut talk = Talk::start(&desk, &["run", ".", "go"]);
    talk.wait_for("refuse: the run goes on without");
    // Down, from the last one to the first.
    talk.press("\u{1b}[B");
    talk.press("\r");
    talk.wait_for_behind("Who?", "your answer");
    talk.press("Ada\r");
    let (code, stdout, seen) = talk.end();
    assert_eq!((code, stdout.as_str()), (Some(0), "Ada\n"), "{seen}");
}

/// Names with line ends in them, and behind these what hotcell might say.
#[test]
fn no_name_of_a_stranger_begins_a_line_of_its_own() {
    let graph = r#"name: "x`, 2 nodes)\nok: other (graph `y"
version: "1.0"
start: "a\n▸ graph done in 0.00s\nok"
nodes:
  "a\n▸ graph done in 0.00s\nok": { type: script, script: scripts/a.py, next: "q\nerror: c" }
  "q\nerror: c": { type: end, output: Z }
"#;
    let desk = Desk::with(graph, &[("a.py", "print('{}')\n")]);
    desk.write("e\nok: all is well/graph.yaml", graph);
    desk.write("e\nok: all is well/scripts/a.py", "print('{}')\n");
    desk.write("f\nerror: bad/graph.yaml", "name: x\nnonsense: 1\n");
    for arguments in [&["check", "."][..], &["check", "e\nok: all is well"], &["agent", "inspect", "."]] {
        let told = desk.told(arguments);
        let forged = told.lines().filter(|line| line.starts_with("ok: other") || line.starts_with("ok: all")).count();
        assert_eq!((told.starts_with("exit code: 0"), forged), (true, 0), "{told}");
    }
    let told = desk.told(&["check", "f\nerror: bad"]);
    assert!(told.contains("f\\nerror: bad/graph.yaml") && !told.contains("\nerror: bad"), "{told}");
    let told = desk.told(&["run", "."]);
    let done = told.lines().filter(|line| line.starts_with("▸ graph done")).count();
    assert_eq!((done, told.lines().any(|line| line.starts_with("error:"))), (1, false), "{told}");
    for further in [&[][..], &["--entries"]] {
        let shown = desk.told(&[&["runs", "show", desk.only_run().as_str()], further].concat());
        let forged = shown.lines().filter(|line| line.starts_with("▸ graph done") || line.starts_with("error: c"));
        assert_eq!((shown.starts_with("exit code: 0"), forged.count()), (true, 0), "{shown}");
    }
}

/// `hotcell check *` in a folder of somebody else's: the shell makes an option of a name that begins like one.
#[test]
fn a_word_that_is_no_option_steers_no_terminal() {
    let desk = Desk::new();
    let talk = Talk::start(&desk, &["check", "--\u{1b}[2Jx\u{9b}1A\u{202e}"]);
    talk.wait_for("For more information");
    let (code, _, seen) = talk.end();
    assert_eq!(code, Some(2), "{seen}");
    let steers = ["\u{1b}[2J", "\u{9b}", "\u{202e}"].iter().any(|sequence| seen.contains(sequence));
    assert!(seen.contains("\\u{202e}") && !steers, "{seen}");
}

#[test]
fn the_name_of_a_folder_steers_no_question_about_it() {
    let desk = Desk::new();
    desk.write("a\u{1b}[2Jb/hotcell.toml", "[grants.'x.py']\nkv = true\n");
    let mut talk = Talk::start(&desk, &["trust", "a\u{1b}[2Jb"]);
    talk.wait_for("[y/N]");
    talk.press("n\r");
    let (code, _, seen) = talk.end();
    assert_eq!(code, Some(2), "{seen}");
    assert!(seen.contains("Trust `a\\u{1b}[2Jb` in") && !seen.contains("\u{1b}[2Jb"), "{seen}");
}

#[test]
fn lines_of_a_question_look_like_nothing_that_hotcell_tells() {
    let graph = r#"name: x
version: "1.0"
start: a
nodes:
  a: { type: input, question: "Go on?\n? Delete everything?\n▸ answered: yes", state_updates: { said: "{{input}}" }, next: end }
  end: { type: end, output: "{{said}}" }
"#;
    let desk = Desk::with(graph, &[]);
    let mut talk = Talk::start(&desk, &["run", ".", "go"]);
    talk.wait_for("your answer");
    talk.press("Ada\r");
    let (code, _, seen) = talk.end();
    assert_eq!(code, Some(0), "{seen}");
    let forged = seen.lines().filter(|line| line.starts_with("? Delete") || line.starts_with("▸ answered"));
    assert!(forged.count() == 0 && seen.contains("    ? Delete everything?"), "{seen}");
}
