//! Files that are none: whatever lies in the place of one is refused at once and by name, and nothing waits for it.

use crate::desk::Desk;

const GRAPH: &str = "name: a\nstart: done\nnodes:\n  done:\n    type: end\n    output: fine\n";

fn desk() -> Desk {
    Desk::with(GRAPH, &[])
}

fn put(desk: &Desk, file: &str, what: &str) {
    let path = desk.path(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = std::fs::remove_file(&path);
    match what {
        "device" => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
        "pipe" => rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap(),
        "directory" => std::fs::create_dir(&path).unwrap(),
        // Nothing of it is on the disk.
        _ => std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap(),
    }
}

#[test]
fn files_of_a_folder_that_are_no_files_are_refused_at_once() {
    for (what, expected) in [
        ("device", "it is a device, not a regular file"),
        ("pipe", "it is a pipe, not a regular file"),
        ("directory", "it is a directory, not a regular file"),
        ("huge", "and at most"),
    ] {
        for file in ["graph.yaml", "hotcell.toml", "hotcell.lock", "mcp.json"] {
            let desk = desk();
            put(&desk, file, what);
            let told = desk.told(&["check", "."]);
            // A link to a device leads out of the folder, and that is what is seen first.
            let is_named = told.contains(expected) || (what == "device" && told.contains("leads out of"));
            assert!(told.starts_with("exit code: 2") && is_named, "{what} as {file}: {told}");
        }
    }
}

#[test]
fn a_recording_that_is_no_file_is_refused_at_once() {
    for (what, expected) in [("device", "it is a device"), ("pipe", "it is a pipe"), ("huge", "and at most")] {
        let desk = desk();
        put(&desk, "recording", what);
        let told = desk.told(&["run", ".", "hi", "--replay", "recording"]);
        assert!(told.starts_with("exit code: 2") && told.contains(expected), "{what}: {told}");
    }
}

#[test]
fn a_plugin_that_is_dear_to_compile_is_refused_by_name() {
    let changes: String = (0..300).map(|local| format!("(local.set {local} (i32.const 1))")).collect();
    let dear = format!(
        "(module (memory (export \"memory\") 1) (func (export \"_start\") (local {}) {} {changes} {}))",
        "i32 ".repeat(300),
        "(loop ".repeat(150),
        "(br_if 0 (local.get 0)))".repeat(150)
    );
    let graph = "name: a\nstart: dear\nnodes:\n  dear:\n    type: script\n    script: scripts/dear.wasm\n    next: done\n  done:\n    type: end\n    output: fine\n";
    let desk = Desk::with(graph, &[]);
    desk.write("scripts/notes.txt", "");
    std::fs::write(desk.path("scripts/dear.wasm"), wat::parse_str(&dear).unwrap()).unwrap();
    let told = desk.told(&["check", "."]);
    let expected =
        "cannot load `scripts/dear.wasm`: it has 101 loops in each other, more than the 100 that are accepted";
    assert!(told.starts_with("exit code: 2") && told.contains(expected), "{told}");
}

#[test]
fn a_folder_without_a_file_of_the_usual_name_says_which_agents_are_in_it() {
    let desk = Desk::new();
    let told = desk.told(&["check", "."]);
    let expected = "there is no `graph.yaml`, `config.yaml` or `agent.yaml` in `.`";
    let help = "give the folder that holds an agent, or its file itself";
    assert!(told.starts_with("exit code: 2") && told.contains(expected) && told.contains(help), "{told}");
    let mesh = "agents:\n  a: {agent_type: human}\nentry_points:\n  - {name: e, target: a}\n";
    desk.write("mesh.yaml", mesh);
    desk.write("notes.yaml", "colour: blue\n");
    assert!(desk.told(&["check", "."]).contains("give the file itself: `./mesh.yaml`"));
    desk.write("deeper/graph.yaml", GRAPH);
    let told = desk.told(&["run", "."]);
    assert!(told.contains("one of its agents: `./mesh.yaml`, `./deeper`"), "{told}");
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_the_work_and_one_that_can_stays_as_it_is() {
    let desk = Desk::new();
    desk.write("mesh.yaml", "agents:\n  a: {agent_type: human}\nentry_points:\n  - {name: e, target: a}\n");
    desk.write("kept.json", "kept");
    std::fs::create_dir(desk.path("folder")).unwrap();
    std::os::unix::fs::symlink(desk.path("kept.json"), desk.path("link.mmd")).unwrap();
    for command in [&["mesh", "evolve"][..], &["convert"], &["graph"]] {
        // There is nothing at all that could be worked on.
        for (file, reason) in [("missing/out.mmd", "No such file"), ("folder", "it is a directory")] {
            let told = desk.told(&[command, &["nothing.yaml", "--output", file]].concat());
            let expected = format!("`{file}` cannot be written: {reason}");
            assert!(told.starts_with("exit code: 1") && told.contains(&expected), "{told}");
        }
    }
    // A mesh without scenarios is refused, and nothing was written for it.
    for file in ["new.json", "kept.json", "link.mmd"] {
        let told = desk.told(&["mesh", "evolve", "mesh.yaml", "--output", file]);
        assert!(told.starts_with("exit code: 2") && told.contains("the mesh has no scenarios"), "{told}");
    }
    assert!(!desk.path("new.json").exists());
    assert_eq!(std::fs::read_to_string(desk.path("kept.json")).unwrap(), "kept");
    assert_eq!(desk.told(&["graph", "mesh.yaml", "--output", "link.mmd"]).lines().next(), Some("exit code: 0"));
    assert!(std::fs::read_to_string(desk.path("kept.json")).unwrap().contains("flowchart"));
}

/// Advice about the path of a file helps where the file is not found, and misleads where it was read.
#[test]
fn replies_that_are_no_json_are_no_matter_of_their_path() {
    let desk = Desk::new();
    desk.output(&["new", "hello", "--lang", "agentloom"]);
    desk.write("hello/replies.json", "{");
    let (code, told, _) = desk.said(&["check", "hello/workflow.yaml"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("it is not JSON") && !told.contains("paths are relative"), "{told}");
    std::fs::remove_file(desk.path("hello/replies.json")).unwrap();
    let (_, told, _) = desk.said(&["check", "hello/workflow.yaml"]);
    assert!(told.contains("paths are relative to the file that contains them"), "{told}");
}

#[test]
fn a_file_of_no_language_is_told_which_key_is_misspelt() {
    let desk = Desk::new();
    desk.write("work.yaml", "name: x\nstep:\n- id: a\n");
    let (code, told, _) = desk.said(&["check", "work.yaml"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("= help: did you mean `steps` in place of `step`? A Loki graph has"), "{told}");
    desk.write("work.yaml", "name: x\nhello:\n- id: a\n");
    let (_, told, _) = desk.said(&["check", "work.yaml"]);
    assert!(told.contains("= help: a Loki graph has"), "{told}");
}
