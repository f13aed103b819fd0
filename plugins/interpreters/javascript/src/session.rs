//! One engine with its prelude, and the run of one script in it.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use boa_engine::builtins::promise::PromiseState;
use boa_engine::error::{EngineError, RuntimeLimitError};
use boa_engine::module::Module;
use boa_engine::object::builtins::JsFunction;
use boa_engine::vm::RuntimeLimits;
use boa_engine::{Context, JsData, JsError, JsNativeError, JsObject, JsResult, JsString, JsValue, Source, js_string};
use boa_gc::{Finalize, Trace};
use hotcell_guest_output::{self as output, Stream};
use wasip2::cli::environment::get_environment;

use crate::event_loop::{CallClock, EventLoop, Hooks};
use crate::host;
use crate::loader::Loader;
use crate::places;
use crate::typescript::{self, ModuleSystem};

/// Calls within calls before the script fails; near what Node allows.
const RECURSION: usize = 10_000;
/// Values on the engine's own stack; recursion is the tighter limit.
const STACK: usize = 4 << 20;

/// What Node exits with when a top-level `await` can never continue.
const UNSETTLED_AWAIT: u8 = 13;

/// A script of the usual kind. Evaluating it once before the snapshot leaves its names and shapes in the image.
const REHEARSAL: &str = r#"(function (exports, require, module, __filename, __dirname) {
    const state = JSON.parse('{"list":[1,"two",null],"text":"three"}');
    const { list, text } = state;
    const next = list.length > 2 ? "some" : `${text}`;
    const out = {};
    for (const item of list.map((value) => String(value)).filter(Boolean)) out[item] = text.includes(item);
    return JSON.stringify({ ...out, _next: next });
})"#;

/// In the order in which they build on each other.
const PRELUDE: [(&str, &str); 8] = [
    ("inspect", include_str!("../prelude/inspect.js")),
    ("process", include_str!("../prelude/process.js")),
    ("web", include_str!("../prelude/web.js")),
    ("buffer", include_str!("../prelude/buffer.js")),
    ("fetch", include_str!("../prelude/fetch.js")),
    ("files", include_str!("../prelude/files.js")),
    ("modules", include_str!("../prelude/modules.js")),
    ("globals", include_str!("../prelude/globals.js")),
];

/// The object through which the parts of the prelude and this crate find each other. Scripts cannot reach it.
#[derive(Clone, Debug, Trace, Finalize, JsData)]
pub(crate) struct Internals(JsObject);

impl Internals {
    /// The one of this context.
    pub(crate) fn of(context: &Context) -> Self {
        context.get_data::<Self>().cloned().expect("the session puts it into every context it makes")
    }

    /// Calls one of its functions.
    pub(crate) fn call(&self, name: &str, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
        let function = self.0.get(JsString::from(name), context)?;
        let Some(function) = function.as_object().and_then(JsFunction::from_object) else {
            return Err(JsNativeError::typ().with_message(format!("the prelude has no `{name}`")).into());
        };
        function.call(&JsValue::undefined(), arguments, context)
    }
}

thread_local! {
    static PREPARED: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// A context that is ready for one script.
pub(crate) struct Session {
    context: Context,
    event_loop: Rc<EventLoop>,
}

impl Session {
    /// Makes the session that the snapshot keeps.
    pub(crate) fn prepare() {
        PREPARED.with_borrow_mut(|prepared| {
            if prepared.is_none() {
                *prepared = Some(Self::new().expect("the prelude is part of this cell and evaluates"));
            }
        });
    }

    /// Gives the session to `use_it`, made now if there was no snapshot.
    pub(crate) fn with_prepared<T>(use_it: impl FnOnce(&mut Self) -> T) -> T {
        Self::prepare();
        PREPARED.with_borrow_mut(|prepared| use_it(prepared.as_mut().expect("`prepare` has just put it there")))
    }

    fn new() -> JsResult<Self> {
        let event_loop = Rc::new(EventLoop::default());
        let mut context = Context::builder()
            .job_executor(event_loop.clone())
            .host_hooks(Rc::new(Hooks(event_loop.clone())))
            .module_loader(Rc::new(Loader::default()))
            .clock(Rc::new(CallClock))
            .build()?;
        let mut limits = RuntimeLimits::default();
        limits.set_recursion_limit(RECURSION);
        limits.set_stack_size_limit(STACK);
        context.set_runtime_limits(limits);

        let host = host::object(&mut context);
        let internals = JsObject::with_object_proto(context.intrinsics());
        context.insert_data(Internals(internals.clone()));
        for (name, text) in PRELUDE {
            let path = format!("hotcell:{name}");
            let part = context.eval(Source::from_bytes(text.as_bytes()).with_path(Path::new(&path)))?;
            let Some(part) = part.as_object().and_then(JsFunction::from_object) else {
                return Err(JsNativeError::typ().with_message(format!("prelude `{name}` is not a function")).into());
            };
            part.call(&JsValue::undefined(), &[host.clone().into(), internals.clone().into()], &mut context)?;
        }
        let rehearsal = context.eval(Source::from_bytes(REHEARSAL.as_bytes()))?;
        if let Some(rehearsal) = rehearsal.as_object().and_then(JsFunction::from_object) {
            rehearsal.call(&JsValue::undefined(), &[], &mut context)?;
        }
        Ok(Self { context, event_loop })
    }

    /// Runs a script to its end and returns its exit code. What it writes is in the output's buffers.
    pub(crate) fn run(&mut self, file_name: &str, source: &str) -> u8 {
        let result = self.execute(file_name, source).and_then(|()| self.finish());
        if let Some(code) = self.event_loop.exited() {
            return code;
        }
        match result {
            Ok(code) => code,
            Err(error) => {
                let text = places::corrected(&self.describe(&error), file_name, source);
                output::write(Stream::Stderr, text.as_bytes());
                1
            }
        }
    }

    fn execute(&mut self, name: &str, source: &str) -> JsResult<()> {
        let script = Script::named(name);
        self.begin(&script.file)?;
        let prepared =
            typescript::prepare(name, source).map_err(|problem| JsNativeError::syntax().with_message(problem))?;
        match prepared.system {
            ModuleSystem::Common => self.run_common(&script, &prepared.source),
            ModuleSystem::Ecma => self.run_module(&script, &prepared.source),
        }
    }

    fn begin(&mut self, file: &JsString) -> JsResult<()> {
        let context = &mut self.context;
        let internals = Internals::of(context);
        let environment = internals.0.get(js_string!("environment"), context)?;
        if let Some(environment) = environment.as_object() {
            for (name, value) in get_environment() {
                environment.create_data_property(JsString::from(&*name), JsString::from(&*value), context)?;
            }
        }
        internals.call("begin", &[file.clone().into()], context).map(|_| ())
    }

    fn run_common(&mut self, script: &Script<'_>, source: &str) -> JsResult<()> {
        let context = &mut self.context;
        let function = host::common_function(script.name, source, context)?;
        let arguments = [function, script.file.clone().into(), script.directory.clone().into()];
        Internals::of(context).call("runMain", &arguments, context)?;
        self.event_loop.run(context)
    }

    fn run_module(&mut self, script: &Script<'_>, source: &str) -> JsResult<()> {
        let context = &mut self.context;
        let arguments = [script.file.clone().into(), script.directory.clone().into()];
        Internals::of(context).call("prepareModule", &arguments, context)?;
        let source = Source::from_bytes(source.as_bytes()).with_path(Path::new(script.name));
        let module = Module::parse(source, None, context)?;
        let promise = module.load_link_evaluate(context);
        self.event_loop.run(context)?;
        match promise.state() {
            PromiseState::Fulfilled(_) => Ok(()),
            PromiseState::Rejected(reason) => Err(JsError::from_opaque(reason)),
            PromiseState::Pending => {
                output::write(Stream::Stderr, b"Warning: Detected unsettled top-level await\n");
                Err(self.event_loop.exit(UNSETTLED_AWAIT))
            }
        }
    }

    /// The end of a script that nothing cut short: its `exit` listeners and its `process.exitCode`.
    fn finish(&mut self) -> JsResult<u8> {
        let internals = Internals::of(&self.context);
        let code = internals.call("finish", &[], &mut self.context)?;
        if !code.is_undefined() {
            return code.to_uint8(&mut self.context);
        }
        self.event_loop.run(&mut self.context)?;
        internals.call("finished", &[], &mut self.context)?.to_uint8(&mut self.context)
    }

    /// The text of an uncaught exception, as Node writes it: the stack, and below it what else the error carries.
    fn describe(&mut self, error: &JsError) -> String {
        match error.as_engine() {
            Some(EngineError::RuntimeLimit(RuntimeLimitError::Recursion | RuntimeLimitError::StackSize)) => {
                return format!("RangeError: Maximum call stack size exceeded\n{}\n", trace(error));
            }
            Some(engine) => return format!("{engine}\n"),
            None => {}
        }
        let shown = error
            .clone()
            .into_opaque(&mut self.context)
            .and_then(|value| Internals::of(&self.context).call("describe", &[value], &mut self.context))
            .ok()
            .and_then(|text| text.as_string().map(|text| text.to_std_string_lossy()));
        shown.unwrap_or_else(|| format!("{error}\n"))
    }
}

/// Where an error of the engine struck: the innermost calls are enough.
fn trace(error: &JsError) -> String {
    error.to_string().lines().skip(1).take(5).collect::<Vec<_>>().join("\n")
}

/// What a script is called.
struct Script<'a> {
    /// As the host names it; in stack traces.
    name: &'a str,
    /// The same from the root of what the cell sees.
    file: JsString,
    /// The directory of `file`.
    directory: JsString,
}

impl<'a> Script<'a> {
    fn named(name: &'a str) -> Self {
        let file = Path::new("/").join(name);
        let directory = file.parent().unwrap_or(Path::new("/"));
        Self { name, file: text(&file), directory: text(directory) }
    }
}

fn text(path: &Path) -> JsString {
    JsString::from(&*path.to_string_lossy())
}
