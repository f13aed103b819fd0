//! What trusting settings would change, in plain words.

use std::collections::BTreeMap;

use hotcell_budget::JOURNAL_BYTES;

use super::Settings;
use super::secrets::SecretSource;
use crate::record::RecordSettings;
use crate::schedule::ScheduleSettings;

impl Settings {
    /// Whether trusting these settings would change anything.
    pub(crate) fn wish_for_something(&self) -> bool {
        let hooks = self.hooks.order.is_some() || !self.hooks.optional.is_empty();
        let given = !self.grants.is_empty() || !self.secrets.is_empty();
        let given = given || !self.python.path.is_empty() || !self.callers.allow.is_empty();
        let given = given
            || !self.schedule.is_empty()
            || self.denials.ask
            || self.record != RecordSettings::default()
            || self.run.journal_bytes() > JOURNAL_BYTES;
        given || hooks || !self.budget.is_empty() || !self.plugins.is_empty() || !self.imports.is_empty()
    }

    /// What trusting these settings would change, in plain words: by the name of a script or plugin, or an empty name
    /// for all of them.
    pub(crate) fn wishes(&self) -> Vec<(String, Vec<String>)> {
        let mut wishes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (name, grants) in &self.grants {
            wishes.entry(name).or_default().extend(grants.in_words());
        }
        for (name, budget) in &self.budget {
            let limits = budget.iter().map(|(limit, value)| format!("have a `{limit}` limit of {value}"));
            wishes.entry(name).or_default().extend(limits);
        }
        for (name, plugin) in &self.plugins {
            let set = plugin.config.iter().map(|(key, value)| format!("read the setting `{key}`, which is `{value}`"));
            wishes.entry(name).or_default().extend(set);
        }
        for name in &self.hooks.optional {
            wishes.entry(name).or_default().push("fail as a hook without stopping what it guards".to_owned());
        }
        let mut all = Vec::new();
        for (name, line) in self.record.in_words() {
            match name {
                "" => all.push(line),
                name => wishes.entry(name).or_default().push(line),
            }
        }
        for (name, source) in &self.secrets {
            all.push(match source {
                SecretSource::Env(variable) => {
                    format!("the secret `{name}` is the value of the environment variable `{variable}`")
                }
                SecretSource::File(file) => format!("the secret `{name}` is read from `{}`", file.display()),
            });
        }
        for (path, meaning) in &self.imports {
            all.push(format!("the import path `{path}` means `{meaning}`"));
        }
        for path in &self.python.path {
            all.push(format!("Python tools may import, and read, everything in `{}`", path.display()));
        }
        for (limit, value) in &self.ceiling {
            all.push(format!("the `{limit}` of every call is limited to {value}, even in your own plugins"));
        }
        if self.run.journal_bytes() > JOURNAL_BYTES {
            all.push(format!(
                "a run may write {} to its journal, and not only {JOURNAL_BYTES}",
                self.run.journal_bytes()
            ));
        }
        if self.denials.ask {
            all.push("whoever runs this is asked for what a call is denied, and may grant it".to_owned());
        }
        all.extend(self.schedule.iter().map(ScheduleSettings::in_words));
        for caller in &self.callers.allow {
            all.push(format!("the agent in `{}` may call this one with what is granted here", caller.display()));
        }
        match self.hooks.order.as_deref() {
            Some([]) => all.push("no hook is told anything".to_owned()),
            Some(order) => all.push(format!("only these hooks are told what happens: `{}`", order.join("`, `"))),
            None => {}
        }
        let all = (!all.is_empty()).then(|| (String::new(), all));
        all.into_iter().chain(wishes.into_iter().map(|(name, lines)| (name.to_owned(), lines))).collect()
    }
}
