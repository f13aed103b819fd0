//! Finding out of what type a component is.

use std::rc::Rc;
use std::sync::Arc;

use hotcell_graph::closest;
use hotcell_graph::diagnostic::{Diagnostic, Span};

use super::builder::Builder;
use super::kinds::{Kind, PluginKind};
use super::later;
use super::schema::{ComponentSchema, Schema};
use super::sources::{COMPONENT_TYPE, Located, PLUGIN_NAME, PLUGIN_VERSION, VERSION, text_of};
use crate::surroundings::ComponentState;

impl<'d> Builder<'_, 'd> {
    /// The type of a component; none, with an error, if there is no such type or it cannot be used here.
    pub(super) fn kind(&mut self, at: Located<'d>) -> Option<Kind> {
        let place = at.node.get(COMPONENT_TYPE).map_or(at.node.place, |entry| entry.value.place);
        let span = self.sources.span(at.document, place);
        let Some(name) = text_of(at, COMPONENT_TYPE) else {
            let what = at.node.get(COMPONENT_TYPE).map_or("nothing", |entry| entry.value.describe());
            self.report(Diagnostic::error(format!("`{COMPONENT_TYPE}` must be a text, not {what}")).at(&span));
            return None;
        };
        let plugin = text_of(at, PLUGIN_NAME).filter(|plugin| !plugin.is_empty());
        if let Some((known, schema)) = Schema::get().component(&name) {
            if let Some(error) = self.cannot_be(known, schema, plugin.as_deref()) {
                self.report(error.at(&span));
                return None;
            }
            return Some(Kind::Standard { name: known, schema });
        }
        let Some(plugin) = plugin else {
            let error = self.unknown(&name);
            self.report(error.at(&span));
            return None;
        };
        self.of_plugin(at, &name, plugin, &span)
    }

    /// Why a component whose type is known cannot be of it.
    fn cannot_be(&self, name: &str, schema: &ComponentSchema, plugin: Option<&str>) -> Option<Diagnostic> {
        if let Some(own) = schema.plugin.as_deref().filter(|own| plugin != Some(*own)) {
            let other = plugin.map(|plugin| format!(", and not of `{plugin}`")).unwrap_or_default();
            let error = Diagnostic::error(format!("`{name}` is a component of the plugin `{own}`{other}"));
            return Some(error.help(format!("write `{PLUGIN_NAME}: {own}` and `{PLUGIN_VERSION}` beside it")));
        }
        let (version, since) = (self.version(), later::type_since(name)?);
        (version < since).then(|| {
            Diagnostic::error(format!(
                "`{name}` is a component of {since}, and the configuration is written for {version}"
            ))
            .help(format!("write `\"{VERSION}\": \"{since}\"` at the top of the file"))
        })
    }

    fn of_plugin(&mut self, at: Located<'d>, name: &Arc<str>, plugin: Arc<str>, span: &Span) -> Option<Kind> {
        let Some(version) = text_of(at, PLUGIN_VERSION) else {
            let error = Diagnostic::error(format!("the field `{PLUGIN_VERSION}` is missing"))
                .at(span)
                .help(format!("a component of a plugin names it with `{PLUGIN_NAME}` and `{PLUGIN_VERSION}`"));
            self.report(error);
            return None;
        };
        if let Some(kind) = self.kinds.get(&(Arc::clone(&plugin), Arc::clone(name))) {
            return Some(kind.clone());
        }
        let error = match self.surroundings.component(&plugin, name) {
            ComponentState::Usable(provided) => match PluginKind::of(name, &provided) {
                Ok(kind) => {
                    if !provided.version.is_empty() && provided.version != *version {
                        let warning = Diagnostic::warning(format!(
                            "the component is written for version {version} of the plugin `{plugin}`, and version {} \
                             is here",
                            provided.version
                        ));
                        self.report(warning.at(span));
                    }
                    let kind = Kind::Plugin(Rc::new(kind));
                    self.kinds.insert((plugin, Arc::clone(name)), kind.clone());
                    return Some(kind);
                }
                Err(reason) => Diagnostic::error(format!(
                    "what the plugin `{plugin}` says of its component type `{name}` cannot be used: {reason}"
                )),
            },
            ComponentState::Missing(near) => missing(name, &plugin, near),
            ComponentState::WrongPlugin(other) => {
                Diagnostic::error(format!("no plugin `{plugin}` provides `{name}`: the plugin `{other}` does"))
                    .help(format!("write `\"{PLUGIN_NAME}\": \"{other}\"` if that is the one which is meant"))
            }
            ComponentState::Unusable(reason) => Diagnostic::error(reason),
        };
        self.report(error.at(span));
        None
    }

    /// The error for a type that the specification does not have and no plugin is named for.
    fn unknown(&self, name: &str) -> Diagnostic {
        if Schema::get().is_abstract(name) {
            return Diagnostic::error(format!("`{name}` is an abstract type: no component is of it"))
                .help("write the name of a type that belongs to it");
        }
        if let ComponentState::WrongPlugin(plugin) = self.surroundings.component("", name) {
            return Diagnostic::error(format!("a component of the type `{name}` does not name a plugin")).help(
                format!("write `{PLUGIN_NAME}` and `{PLUGIN_VERSION}`; the plugin `{plugin}` provides this type"),
            );
        }
        // A type that the version does not have would be refused next.
        let known = Schema::get().component_types().filter(|name| {
            let (_, schema) = Schema::get().component(name).unzip();
            schema.is_some_and(|schema| self.cannot_be(name, schema, None).is_none())
        });
        let error = Diagnostic::error(format!("there is no component type `{name}`"));
        match closest(name, known) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("a component of a plugin names it with `{PLUGIN_NAME}`")),
        }
    }
}

/// The error for a component type of a plugin that is not here.
fn missing(name: &str, plugin: &str, near: Option<String>) -> Diagnostic {
    // Its plugins had other names in earlier versions.
    if let Some(instead) = Schema::get().instead_of(name) {
        return Diagnostic::error(format!("`{name}` of WayFlow's plugin `{plugin}` is not supported")).help(instead);
    }
    let error = Diagnostic::error(format!("the plugin `{plugin}` with the component type `{name}` is not here"));
    match near {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help("install the plugin, or use another component"),
    }
}
