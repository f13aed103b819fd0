//! What a granted directory is to each interpreter, and what remains out of reach beside it.

use std::fs;
use std::sync::Arc;

use hotcell_budget::Budget;
use hotcell_cells::{Access, DirectoryGrant, Grants, Terms};

/// Lists, reads and changes `/data`, tries to get out of it, and says what it found.
const SOURCES: [(&str, &str); 3] = [
    (
        "js",
        r#"
const fs = require("fs");
const tried = (run) => { try { return run(); } catch (error) { return error.code; } };
const read = tried(() => fs.readFileSync("/data/in.txt", "utf8").trim());
const list = tried(() => fs.readdirSync("/data").join(","));
const wrote = tried(() => {
  fs.writeFileSync("/data/out.txt", "made");
  fs.appendFileSync("/data/out.txt", " here");
  fs.mkdirSync("/data/sub");
  return true;
});
const climbed = ["/data/../secret.txt", "/secret.txt", "/data/link.txt"].some((path) => tried(() => fs.readFileSync(path)).length > 8);
console.log(JSON.stringify({ read, list, wrote: wrote === true, climbed }));
"#,
    ),
    (
        "py",
        r#"
import json, os
read = open("/data/in.txt").read().strip()
names = ",".join(sorted(os.listdir("/data")))
try:
    with open("/data/out.txt", "w") as f:
        f.write("made")
    with open("/data/out.txt", "a") as f:
        f.write(" here")
    os.mkdir("/data/sub")
    wrote = True
except OSError:
    wrote = False
climbed = any(os.path.exists(path) for path in ("/data/../secret.txt", "/secret.txt", "/data/link.txt"))
print(json.dumps({"read": read, "list": names, "wrote": wrote, "climbed": climbed}))
"#,
    ),
    (
        "sh",
        r#"
read=$(cat /data/in.txt)
list=$(ls /data | paste -sd, -)
wrote=false
{ printf made > /data/out.txt && printf ' here' >> /data/out.txt && mkdir /data/sub; } 2>/dev/null && wrote=true
climbed=false
for path in /data/../secret.txt /secret.txt /data/link.txt; do cat "$path" >/dev/null 2>&1 && climbed=true; done
printf '{"read": "%s", "list": "%s", "wrote": %s, "climbed": %s}' "$read" "$list" $wrote $climbed
"#,
    ),
];

#[tokio::test]
async fn a_granted_directory_is_all_there_is() {
    for (extension, source) in SOURCES {
        for access in [Access::Read, Access::ReadWrite] {
            let folder = tempfile::tempdir().expect("a scratch directory");
            let data = folder.path().join("data");
            fs::create_dir(&data).expect("a new directory");
            fs::write(data.join("in.txt"), "given\n").expect("a new file");
            fs::write(folder.path().join("secret.txt"), "secret text").expect("a new file");
            #[cfg(unix)]
            std::os::unix::fs::symlink(folder.path().join("secret.txt"), data.join("link.txt")).expect("a new link");

            let grant = DirectoryGrant::new(&data, "/data", access);
            let mut terms = Terms::new("scripts/script");
            terms.budget = Budget::interpreter();
            terms.grants = Arc::new(Grants { fs: vec![grant], ..Grants::default() });
            let Some(report) = crate::common::run_under(extension, source, "{}", terms).await else { continue };

            let text = report.result.unwrap_or_else(|error| panic!("{extension}: {error}"));
            let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let may_write = access == Access::ReadWrite;
            let expected =
                serde_json::json!({"read": "given", "list": "in.txt,link.txt", "wrote": may_write, "climbed": false});
            assert_eq!(found, expected, "{extension} with {access:?}: {}", report.stderr);
            let written = fs::read_to_string(data.join("out.txt")).ok();
            assert_eq!(written.as_deref(), may_write.then_some("made here"), "{extension} with {access:?}");
            assert_eq!(data.join("sub").is_dir(), may_write, "{extension} with {access:?}");
        }
    }
}

/// The report of an error quotes lines of files that are in no directory; nobody should be told to grant one.
#[tokio::test]
async fn an_error_in_python_asks_for_no_directory() {
    for source in [
        "raise ValueError('no budget')",
        "import nowhere",
        "def f(:\n  pass",
        "eval('1 +')",
        "import ast\nast.parse('1 +')",
        "import json\njson.loads('{')",
    ] {
        let Some(report) = crate::common::run("py", source, "{}", &[], None).await else { return };
        assert!(report.result.is_err(), "{source}: {:?}", report.result);
        let denials: Vec<String> = report.denials.iter().map(ToString::to_string).collect();
        assert!(denials.is_empty(), "{source}: {denials:?}");
    }
    let Some(report) = crate::common::run("py", "open('/data/in.txt')", "{}", &[], None).await else { return };
    let denials: Vec<String> = report.denials.iter().map(ToString::to_string).collect();
    assert!(denials.len() == 1 && denials[0].contains("`/data`"), "{denials:?}");
}
