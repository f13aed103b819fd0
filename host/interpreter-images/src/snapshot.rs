//! Runs a cell's `init` and makes a component whose memory begins where `init` left off.
//!
//! `init` must not touch the outside, or the image would carry what it found there: a variable, a time, a seed. So
//! there is no outside: an import that is called traps and fails the build. The one exception is the seed of hash
//! tables, which is zero in the image: a script that makes its own tables collide spends its own fuel.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wasmtime::component::{Component, Instance, Lift, Linker, Val, WasmList};
use wasmtime::{Config, Engine, Error, Result, Store};
use wasmtime_wizer::{ComponentInstanceState, Wizer};

/// Stack for `init`; the prelude's parser recurses.
const MAX_WASM_STACK: usize = 1 << 20;
/// Functions that are answered with zeros, as they end without their version.
const ANSWERED: [(&str, &str); 1] = [("wasi:random/insecure-seed", "insecure-seed")];

/// The component with `init` behind it.
pub(crate) fn take(component: &[u8]) -> Result<Vec<u8>> {
    let mut wizer = Wizer::new();
    wizer.init_func("init").keep_init_func(true);
    let (context, instrumented) = wizer.instrument_component(component)?;

    let mut config = Config::new();
    config.max_wasm_stack(MAX_WASM_STACK);
    let engine = Engine::new(&config)?;
    let instrumented = Component::new(&engine, &instrumented)?;
    let mut linker = Linker::<()>::new(&engine);
    answer(&engine, &instrumented, &mut linker)?;
    linker.define_unknown_imports_as_traps(&instrumented)?;

    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &instrumented)?;
    instance.get_typed_func::<(), ()>(&mut store, "init")?.call(&mut store, ())?;

    let mut started = Started { store, instance };
    let snapshot = pin!(wizer.snapshot_component(&context, &mut started));
    match snapshot.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(Error::msg("the snapshot waits, although nothing it reads is asynchronous")),
    }
}

fn answer(engine: &Engine, component: &Component, linker: &mut Linker<()>) -> Result<()> {
    use wasmtime::component::types::ComponentItem;
    linker.allow_shadowing(true);
    for (name, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(interface) = item.ty else { continue };
        let plain = name.split('@').next().unwrap_or(name);
        for (function, item) in interface.exports(engine) {
            if !ANSWERED.contains(&(plain, function)) {
                continue;
            }
            let ComponentItem::ComponentFunc(kind) = item.ty else { continue };
            let zeros: Vec<Val> = kind.results().map(|result| zero(&result)).collect::<Result<_>>()?;
            linker.instance(name)?.func_new(function, move |_, _, _, results| {
                results.clone_from_slice(&zeros);
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn zero(kind: &wasmtime::component::Type) -> Result<Val> {
    use wasmtime::component::Type;
    Ok(match kind {
        Type::U32 => Val::U32(0),
        Type::U64 => Val::U64(0),
        Type::Tuple(parts) => Val::Tuple(parts.types().map(|part| zero(&part)).collect::<Result<_>>()?),
        Type::Record(fields) => Val::Record(
            fields.fields().map(|field| Ok((field.name.to_owned(), zero(&field.ty)?))).collect::<Result<_>>()?,
        ),
        other => return Err(Error::msg(format!("no zero is known for {other:?}"))),
    })
}

/// An instance that `init` has run in, as wizer reads it.
struct Started {
    store: Store<()>,
    instance: Instance,
}

impl Started {
    /// Calls one of the functions that the instrumentation added. They exist and do not fail, or wizer is broken.
    fn read<R: Lift + 'static, T>(
        &mut self,
        interface: &str,
        function: &str,
        take: impl FnOnce(&mut Store<()>, R) -> T,
    ) -> T {
        let missing = "the instrumented component exports its accessors";
        let interface = self.instance.get_export_index(&mut self.store, None, interface).expect(missing);
        let function = self.instance.get_export_index(&mut self.store, Some(&interface), function).expect(missing);
        let function = self.instance.get_typed_func::<(), (R,)>(&mut self.store, function).expect(missing);
        let (value,) = function.call(&mut self.store, ()).expect("an accessor only reads");
        take(&mut self.store, value)
    }
}

impl ComponentInstanceState for Started {
    async fn call_func_ret_list_u8(&mut self, interface: &str, function: &str, take: impl FnOnce(&[u8]) + Send) {
        self.read(interface, function, |store, bytes: WasmList<u8>| take(bytes.as_le_slice(&store)));
    }

    async fn call_func_ret_s32(&mut self, interface: &str, function: &str) -> i32 {
        self.read(interface, function, |_, value| value)
    }

    async fn call_func_ret_s64(&mut self, interface: &str, function: &str) -> i64 {
        self.read(interface, function, |_, value| value)
    }

    async fn call_func_ret_f32(&mut self, interface: &str, function: &str) -> u32 {
        self.read(interface, function, |_, value: f32| value.to_bits())
    }

    async fn call_func_ret_f64(&mut self, interface: &str, function: &str) -> u64 {
        self.read(interface, function, |_, value: f64| value.to_bits())
    }
}
