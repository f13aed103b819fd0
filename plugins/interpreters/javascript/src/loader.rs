//! ECMAScript modules: the built-in ones, and files that the cell can see.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use boa_engine::module::{Module, ModuleLoader, ModuleRequest, Referrer, SyntheticModuleInitializer};
use boa_engine::object::builtins::JsFunction;
use boa_engine::property::PropertyKey;
use boa_engine::{Context, JsNativeError, JsObject, JsResult, JsString, JsValue, Source, js_string};

use crate::session::Internals;
use crate::typescript;

/// Loads each module once per instance.
#[derive(Default)]
pub(crate) struct Loader {
    loaded: RefCell<BTreeMap<String, Module>>,
}

impl ModuleLoader for Loader {
    async fn load_imported_module(
        self: Rc<Self>,
        referrer: Referrer,
        request: ModuleRequest,
        context: &RefCell<&mut Context>,
    ) -> JsResult<Module> {
        let context = &mut context.borrow_mut();
        self.load(&referrer, &request.specifier().to_std_string_lossy(), context)
    }

    fn init_import_meta(self: Rc<Self>, import_meta: &JsObject, module: &Module, context: &mut Context) {
        let file = module.path().map_or_else(|| "/".into(), |path| absolute(path));
        let directory = Path::new(&file).parent().map_or_else(|| "/".into(), |parent| parent.display().to_string());
        for (name, value) in [("url", format!("file://{file}")), ("filename", file.clone()), ("dirname", directory)] {
            // The object is fresh and ordinary; a property can always be added to it.
            let _ = import_meta.set(JsString::from(name), JsString::from(&*value), false, context);
        }
    }
}

fn absolute(path: &Path) -> String {
    Path::new("/").join(path).display().to_string()
}

impl Loader {
    fn load(&self, referrer: &Referrer, name: &str, context: &mut Context) -> JsResult<Module> {
        let internals = Internals::of(context);
        let builtin = internals.call("builtin", &[JsString::from(name).into()], context)?;
        if !builtin.is_undefined() {
            return self.keep(format!("node:{}", name.trim_start_matches("node:")), context, |context| {
                synthetic(&builtin, context)
            });
        }
        if !name.starts_with('/') && !name.starts_with("./") && !name.starts_with("../") {
            let error = internals.call("missing", &[JsString::from(name).into()], context)?;
            return Err(boa_engine::JsError::from_opaque(error));
        }
        let directory = referrer.path().map(absolute);
        let directory = directory.as_deref().and_then(|path| Path::new(path).parent());
        let directory = directory.map_or_else(|| "/".into(), |parent| parent.display().to_string());
        let found =
            internals.call("locate", &[JsString::from(&*directory).into(), JsString::from(name).into()], context)?;
        let file = found.to_string(context)?.to_std_string_lossy();
        self.keep(file.clone(), context, |context| from_file(&file, &directory, context))
    }

    fn keep(
        &self,
        key: String,
        context: &mut Context,
        make: impl FnOnce(&mut Context) -> JsResult<Module>,
    ) -> JsResult<Module> {
        if let Some(module) = self.loaded.borrow().get(&key) {
            return Ok(module.clone());
        }
        let module = make(context)?;
        self.loaded.borrow_mut().insert(key, module.clone());
        Ok(module)
    }
}

/// A file in ECMAScript syntax is a module; everything else is what `require` makes of it.
fn from_file(file: &str, directory: &str, context: &mut Context) -> JsResult<Module> {
    let source = std::fs::read_to_string(file)
        .map_err(|error| JsNativeError::error().with_message(format!("Cannot read module '{file}': {error}")))?;
    if !file.ends_with(".json") {
        let prepared =
            typescript::prepare(file, &source).map_err(|problem| JsNativeError::syntax().with_message(problem))?;
        if prepared.system == typescript::ModuleSystem::Ecma {
            let source = Source::from_bytes(prepared.source.as_bytes()).with_path(Path::new(file));
            return Module::parse(source, None, context);
        }
    }
    let internals = Internals::of(context);
    let require = internals.call("requireFrom", &[JsString::from(directory).into()], context)?;
    let Some(require) = require.as_object().and_then(JsFunction::from_object) else {
        return Err(JsNativeError::typ().with_message("`require` is not a function").into());
    };
    let exports = require.call(&JsValue::undefined(), &[JsString::from(file).into()], context)?;
    synthetic(&exports, context)
}

/// A module of a value: itself as the default export, and each of its properties under its name.
fn synthetic(value: &JsValue, context: &mut Context) -> JsResult<Module> {
    let mut names = vec![js_string!("default")];
    let mut values = vec![value.clone()];
    if let Some(object) = value.as_object() {
        for key in object.own_property_keys(context)? {
            let PropertyKey::String(name) = &key else { continue };
            if name == &js_string!("default") || name == &js_string!("prototype") {
                continue;
            }
            names.push(name.clone());
            values.push(object.get(key, context)?);
        }
    }
    let exports: Vec<(JsString, JsValue)> = names.iter().cloned().zip(values).collect();
    let evaluate = SyntheticModuleInitializer::from_copy_closure_with_captures(
        |module, exports: &Vec<(JsString, JsValue)>, _| {
            exports.iter().try_for_each(|(name, value)| module.set_export(name, value.clone()))
        },
        exports,
    );
    Ok(Module::synthetic(&names, evaluate, None, None, context))
}
