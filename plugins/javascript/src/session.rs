//! One engine with its prelude, and the run of one script in it.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use boa_engine::builtins::promise::PromiseState;
use boa_engine::error::{EngineError, RuntimeLimitError};
use boa_engine::module::Module;
use boa_engine::object::builtins::{JsArray, JsFunction};
use boa_engine::vm::RuntimeLimits;
use boa_engine::{Context, JsData, JsError, JsNativeError, JsObject, JsResult, JsString, JsValue, Source};
use boa_gc::{Finalize, Trace};
use hotcell_guest_output::{self as output, Stream};
use wasip2::cli::environment::get_environment;

use crate::event_loop::{CallClock, EventLoop, Hooks};
use crate::host;
use crate::loader::Loader;
use crate::typescript::{self, ModuleSystem};

/// Calls within calls before the script fails; near what Node allows.
const RECURSION: usize = 10_000;
/// Values on the engine's own stack; recursion is the tighter limit.
const STACK: usize = 4 << 20;

/// In the order in which they build on each other.
const PRELUDE: [(&str, &str); 7] = [
    ("inspect", include_str!("../prelude/inspect.js")),
    ("process", include_str!("../prelude/process.js")),
    ("web", include_str!("../prelude/web.js")),
    ("buffer", include_str!("../prelude/buffer.js")),
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
                let text = self.describe(&error);
                output::write(Stream::Stderr, text.as_bytes());
                1
            }
        }
    }

    fn execute(&mut self, file_name: &str, source: &str) -> JsResult<()> {
        self.begin(file_name)?;
        let prepared =
            typescript::prepare(file_name, source).map_err(|problem| JsNativeError::syntax().with_message(problem))?;
        match prepared.system {
            ModuleSystem::Common => self.run_common(file_name, &prepared.source),
            ModuleSystem::Ecma => self.run_module(file_name, &prepared.source),
        }
    }

    fn begin(&mut self, file_name: &str) -> JsResult<()> {
        let context = &mut self.context;
        let mut pairs = Vec::new();
        for (name, value) in get_environment() {
            let pair = [JsString::from(&*name).into(), JsString::from(&*value).into()];
            pairs.push(JsArray::from_iter(pair, context).into());
        }
        let pairs = JsArray::from_iter(pairs, context);
        let arguments = [JsString::from(&*absolute(file_name)).into(), pairs.into()];
        Internals::of(context).call("begin", &arguments, context).map(|_| ())
    }

    fn run_common(&mut self, file_name: &str, source: &str) -> JsResult<()> {
        let context = &mut self.context;
        let function = host::common_function(file_name, source, context)?;
        let arguments = [function, JsString::from(&*absolute(file_name)).into()];
        Internals::of(context).call("runMain", &arguments, context)?;
        self.event_loop.run(context)
    }

    fn run_module(&mut self, file_name: &str, source: &str) -> JsResult<()> {
        let context = &mut self.context;
        let arguments = [JsString::from(&*absolute(file_name)).into()];
        Internals::of(context).call("prepareModule", &arguments, context)?;
        let source = Source::from_bytes(source.as_bytes()).with_path(Path::new(file_name));
        let module = Module::parse(source, None, context)?;
        let promise = module.load_link_evaluate(context);
        self.event_loop.run(context)?;
        match promise.state() {
            PromiseState::Fulfilled(_) => Ok(()),
            PromiseState::Rejected(reason) => Err(JsError::from_opaque(reason)),
            PromiseState::Pending => {
                output::write(Stream::Stderr, b"Warning: Detected unsettled top-level await\n");
                Err(self.event_loop.exit(13))
            }
        }
    }

    /// The end of a script that nothing cut short: its `exit` listeners and its `process.exitCode`.
    fn finish(&mut self) -> JsResult<u8> {
        let internals = Internals::of(&self.context);
        internals.call("finish", &[], &mut self.context)?;
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

fn absolute(file_name: &str) -> String {
    Path::new("/").join(file_name).display().to_string()
}
