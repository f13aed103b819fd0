//! What is decided on the source text before Boa sees it: which module system it uses, and TypeScript to JavaScript.
//!
//! TypeScript is lowered completely (enums, namespaces, parameter properties, legacy decorators); types are dropped
//! and never checked.

use std::path::Path;

use oxc::allocator::Allocator;
use oxc::codegen::{Codegen, CodegenOptions};
use oxc::diagnostics::OxcDiagnostic;
use oxc::parser::Parser;
use oxc::semantic::SemanticBuilder;
use oxc::span::SourceType;
use oxc::transformer::{DecoratorOptions, HelperLoaderMode, HelperLoaderOptions, TransformOptions, Transformer};

/// Which of the two module systems a source is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModuleSystem {
    /// `require` and `module.exports`; the source is a function body.
    Common,
    /// `import`, `export` and top-level `await`.
    Ecma,
}

/// A source that Boa can run.
pub(crate) struct Prepared {
    pub(crate) source: String,
    pub(crate) system: ModuleSystem,
}

/// Makes JavaScript of a script and finds out its module system, from its extension or else from its content.
///
/// The error is the text of a `SyntaxError`, with the place.
pub(crate) fn prepare(file_name: &str, source: &str) -> Result<Prepared, String> {
    let source = without_shebang(source);
    if is_typescript(file_name) {
        return lower(file_name, &source, false).map(|(prepared, _)| prepared);
    }
    match extension(file_name).as_str() {
        "mjs" => Ok(Prepared { source, system: ModuleSystem::Ecma }),
        "cjs" => Ok(Prepared { source, system: ModuleSystem::Common }),
        _ => {
            let system = system_of(&source);
            Ok(Prepared { source, system })
        }
    }
}

fn extension(file_name: &str) -> String {
    Path::new(file_name)
        .extension()
        .map(|extension| extension.to_string_lossy().to_ascii_lowercase())
        .unwrap_or_default()
}

fn is_typescript(file_name: &str) -> bool {
    ["ts", "mts", "cts", "tsx"].contains(&extension(file_name).as_str())
}

/// A leading `#!` line is a comment to Node; the line stays, so that line numbers do.
fn without_shebang(source: &str) -> String {
    match source.trim_start_matches('\u{feff}') {
        text if text.starts_with("#!") => format!("//{}", &text[2..]),
        text => text.to_owned(),
    }
}

fn system_of(source: &str) -> ModuleSystem {
    // Most scripts are settled without parsing them a second time.
    if !["import", "export", "await"].iter().any(|word| source.contains(word)) {
        return ModuleSystem::Common;
    }
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::unambiguous()).parse();
    if parsed.program.source_type.is_module() { ModuleSystem::Ecma } else { ModuleSystem::Common }
}

/// Something that was moved when types were dropped; lines and columns are counted from 0.
struct Moved {
    line: usize,
    column: usize,
    /// The line and the column in the author's text
    from: (usize, usize),
}

/// JavaScript of TypeScript, and, if that is wanted, where everything was before.
fn lower(file_name: &str, source: &str, mapped: bool) -> Result<(Prepared, Vec<Moved>), String> {
    let allocator = Allocator::default();
    let kind = SourceType::ts().with_unambiguous(true);
    let parsed = Parser::new(&allocator, source, kind).parse();
    if let Some(problem) = parsed.diagnostics.first() {
        return Err(describe(file_name, source, problem));
    }
    let mut program = parsed.program;
    let system = if program.source_type.is_module() { ModuleSystem::Ecma } else { ModuleSystem::Common };
    let semantic = SemanticBuilder::new().with_excess_capacity(2.0).with_enum_eval(true).build(&program);
    if let Some(problem) = semantic.diagnostics.first() {
        return Err(describe(file_name, source, problem));
    }
    let options = TransformOptions {
        decorator: DecoratorOptions { legacy: true, ..DecoratorOptions::default() },
        helper_loader: HelperLoaderOptions { mode: HelperLoaderMode::External, ..HelperLoaderOptions::default() },
        ..TransformOptions::default()
    };
    let transformed = Transformer::new(&allocator, Path::new(file_name), &options)
        .build_with_scoping(semantic.semantic.into_scoping(), &mut program);
    if let Some(problem) = transformed.diagnostics.first() {
        return Err(describe(file_name, source, problem));
    }
    let options = CodegenOptions { source_map_path: mapped.then(|| file_name.into()), ..CodegenOptions::default() };
    let printed = Codegen::new().with_options(options).build(&program);
    let places = printed.map.iter().flat_map(|map| map.get_tokens()).map(|token| Moved {
        line: token.get_dst_line() as usize,
        column: token.get_dst_col() as usize,
        from: (token.get_src_line() as usize, token.get_src_col() as usize),
    });
    let places = places.collect();
    Ok((Prepared { source: printed.code, system }, places))
}

/// Where the author wrote what the engine was given.
pub(crate) struct Places(Option<Vec<Moved>>);

impl Places {
    /// The place of what is at a line and a column of the source that the engine was given; all are counted from 1.
    pub(crate) fn written(&self, line: usize, column: usize) -> Option<(usize, usize)> {
        let Some(moved) = &self.0 else { return Some((line, column)) };
        let before = moved.iter().filter(|place| place.line + 1 == line && place.column < column);
        let (line, column) = before.max_by_key(|place| place.column)?.from;
        Some((line + 1, column + 1))
    }
}

/// The same as [`prepare`], with the places of everything.
pub(crate) fn prepare_with_places(file_name: &str, source: &str) -> Result<(Prepared, Places), String> {
    if is_typescript(file_name) {
        return lower(file_name, &without_shebang(source), true)
            .map(|(prepared, moved)| (prepared, Places(Some(moved))));
    }
    prepare(file_name, source).map(|prepared| (prepared, Places(None)))
}

fn describe(file_name: &str, source: &str, problem: &OxcDiagnostic) -> String {
    let offset = problem.labels.first().map(|label| label.offset() as usize);
    let Some(before) = offset.and_then(|offset| source.get(..offset)) else {
        return format!("{problem} ({file_name})");
    };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    format!("{problem} ({file_name}:{line}:{column})")
}
