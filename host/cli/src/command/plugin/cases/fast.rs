//! `hotcell plugin test --fast`: the cases without a cell, at once after an edit.

use hotcell_harness::play_natively;

use super::{agree_to_directories, cases_in, choose, failed, report};
use crate::arguments::PluginTest;
use crate::command::plugin::author::native;
use crate::command::plugin::{Context, print};
use crate::exit::{Exit, Failure};
use crate::narration::counted;

pub(super) fn test(context: &Context, arguments: &PluginTest) -> Result<Exit, Failure> {
    let mut cases = cases_in(&arguments.project.join("cases"))?;
    choose(&mut cases, &arguments.cases)?;
    agree_to_directories(context, &mut cases, arguments.yes)?;
    let program = native(context, &arguments.project)?;
    let (mut passed, mut wrong, mut left) = (0, 0, 0);
    for (name, case) in &cases {
        match play_natively(program.command(), case).map_err(failed)? {
            Some(played) => {
                report(context, name, &played, None, arguments.verbose)?;
                let counter = if played.problems.is_empty() { &mut passed } else { &mut wrong };
                *counter += 1;
            }
            None => {
                print(&format!("left  {name}  (a limit needs a cell)"))?;
                left += 1;
            }
        }
    }
    let left = if left > 0 { format!(", {} left out", counted(left, "case")) } else { String::new() };
    print(&format!("{passed} passed, {wrong} failed{left}, without a cell"))?;
    Ok(if wrong > 0 { Exit::Failed } else { Exit::Done })
}
