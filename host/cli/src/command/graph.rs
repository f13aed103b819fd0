//! `hotcell graph`: a picture of a graph, or of what happened in a run.

use hotcell_graph::diagnostic::Diagnostic;

use super::{Context, HostArguments, check_output, put_data, wait};
use crate::arguments::{Graph, PictureFormat};
use crate::exit::{Exit, Failure};
use crate::picture::{History, Picture};
use crate::untrusted::one_line;

pub(super) fn perform(context: &Context, arguments: Graph) -> Result<Exit, Failure> {
    let format = format(&arguments)?;
    check_output(arguments.to.output.as_deref())?;
    let host =
        context.host(HostArguments { without_runs: arguments.run.is_none(), ..arguments.more.clone().into() })?;
    let record = arguments.run.as_deref().map(|name| wait(host.journal().find(name))).transpose()?;
    let agent = context.load(|| match (&arguments.path, &arguments.which.agent, &record) {
        (Some(path), Some(name), _) => host.load_named(path, name),
        (Some(path), None, _) => host.load(path),
        (None, _, Some(record)) => host.load_of(record),
        (None, _, None) => Err(Diagnostic::error("a graph file or `--run NAME` has to be given").into()),
    })?;
    let history = match &record {
        Some(record) if record.header.graph != agent.graph.name => {
            return Err(Failure::refused(format!(
                "run `{}` is a run of the graph `{}`, not of `{}`",
                record.id, record.header.graph, agent.graph.name
            ))
            .help("leave the path out: the run knows its graph"));
        }
        Some(record) => {
            let entries = wait(host.journal().history(&record.id))?.whole()?;
            Some(History::read(record, &entries, &agent.graph))
        }
        None => None,
    };
    let picture = Picture::new(&agent.graph, history.as_ref());
    let text = match format {
        PictureFormat::Mermaid => picture.mermaid(),
        PictureFormat::Svg if picture.is_too_dense() => {
            return Err(Failure::refused("the graph has too many lines across too many nodes to be laid out as SVG")
                .help("`--format dot` and `--format mermaid` write it for programs that lay it out themselves"));
        }
        PictureFormat::Svg => picture.svg(),
        PictureFormat::Dot => picture.dot(),
    };
    put_data(&text, arguments.to.output.as_deref())?;
    Ok(Exit::Done)
}

fn format(arguments: &Graph) -> Result<PictureFormat, Failure> {
    if let Some(format) = arguments.format {
        return Ok(format);
    }
    let extension =
        arguments.to.output.as_deref().and_then(|output| output.extension()).map(|name| name.to_string_lossy());
    match extension.as_deref() {
        Some("svg") => Ok(PictureFormat::Svg),
        Some("dot" | "gv") => Ok(PictureFormat::Dot),
        None | Some("mmd" | "mermaid" | "md" | "txt") => Ok(PictureFormat::Mermaid),
        Some(other) => Err(Failure::refused(format!("no format has the extension `.{}`", one_line(other, 20)))
            .help("use `.svg`, `.dot` or `.mmd`, or name the format with `--format`")),
    }
}
