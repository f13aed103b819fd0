//! Reading how people are reached by chat providers.

use super::addresses::check_url;
use super::hidden::Hidden;
use super::interpolate::names_vault;
use super::reading::{Reading, text_values};
use super::schema::Interface;
use super::settings::ChannelSettings;
use crate::document::Need::Optional;
use crate::document::{Fields, Kind, Node, Place};
use crate::surroundings::DeclaredComponent;

/// The providers.
pub(super) const PROVIDERS: [&str; 5] = ["slack", "telegram", "discord", "whatsapp", "teams"];
/// Settings that only one of them has.
const OWN: [(&str, &str); 5] = [
    ("whatsapp", "verify_token"),
    ("whatsapp", "api_version"),
    ("teams", "service_url"),
    ("teams", "tenant_id"),
    ("telegram", "bot_username"),
];
/// Settings that everybody may see.
const PUBLIC: [(&str, &str); 2] = [("discord", "signing_secret"), ("teams", "bot_token")];
/// Digits of a public key of Ed25519.
const KEY_DIGITS: usize = 64;

/// The component that comes with hotcell and knows how providers write. No agent can have this name.
const COMPONENT: &str = "channels";
const NAME: &str = "(channels)";

/// The component that knows how providers write: it reaches nothing.
pub(super) fn component() -> DeclaredComponent {
    DeclaredComponent {
        name: NAME.to_owned(),
        component: COMPONENT.to_owned(),
        servers: Vec::new(),
        further_hosts: Vec::new(),
        secrets: Vec::new(),
        timeout: None,
    }
}

/// The full name of a tool of the component that knows how chat providers write: `receive` or `post`. It is there for a mesh with
/// channels.
pub fn channels_tool(tool: &str) -> String {
    component().tool(tool)
}

/// The channels, in the order of the file.
pub(super) fn channels<'r, 'd>(
    reading: &Reading<'r, 'd>,
    fields: &mut Fields<'r, 'd>,
    interface: Interface,
) -> Vec<ChannelSettings> {
    let mut channels = Vec::new();
    let Some((entries, _)) = fields.map("channels", Optional) else { return channels };
    for entry in entries {
        if !PROVIDERS.contains(&&*entry.key) {
            let near = hotcell_graph::closest(&entry.key, PROVIDERS);
            let help = near.map_or_else(
                || format!("channels are `{}`", PROVIDERS.join("`, `")),
                |near| format!("did you mean `{near}`?"),
            );
            let message = format!("`{}` is not a channel", entry.key);
            reading.reader.report(fields.error(message, &reading.reader.span(entry.key_place)).help(help));
            continue;
        }
        let what = format!("the channel `{}`", entry.key);
        let Some(of_one) = reading.fields_of(fields, &entry.value, what) else { continue };
        let channel = channel(reading, of_one, &entry.key);
        // Elsewhere they do nothing, which is told.
        if interface == Interface::Webhook {
            missing(reading, fields, &channel, entry.key_place);
        }
        channels.push(channel);
    }
    channels
}

fn channel<'r, 'd>(reading: &Reading<'r, 'd>, mut fields: Fields<'r, 'd>, provider: &str) -> ChannelSettings {
    let secret = |fields: &mut Fields<'r, 'd>, name: &'static str| {
        let text = fields.text(name, Optional)?;
        if let Some(node) = fields.node(name, Optional).filter(|_| !PUBLIC.contains(&(provider, name))) {
            reading.secret(fields, name, &text, node);
        }
        // What is in the vault is not there.
        Some(Hidden(text.trim().to_owned())).filter(|text| !text.0.is_empty() && !names_vault(&text.0))
    };
    let bot_token = secret(&mut fields, "bot_token");
    let signing_secret = secret(&mut fields, "signing_secret");
    secret(&mut fields, "app_token");
    reading.no_effect(&mut fields, "app_token", "events come by HTTP; Socket Mode is not there");
    for name in ["socket_mode", "connection"] {
        if name == "socket_mode" {
            fields.flag(name, Optional);
        } else {
            fields.text(name, Optional);
        }
        reading.not_yet(&mut fields, name);
    }
    let listen_channels = match fields.node("listen_channels", Optional).map(|node| &node.kind) {
        Some(Kind::List(items)) => {
            items.iter().filter_map(|item| id(reading, &fields, "listen_channels", item)).collect()
        }
        _ => {
            // Says that it has to be a list.
            fields.texts("listen_channels", Optional);
            Vec::new()
        }
    };
    let post_channel =
        fields.node("post_channel", Optional).and_then(|node| id(reading, &fields, "post_channel", node));
    let operators = text_values(reading, &mut fields, "operators");
    let operators_only = fields.flag("operators_only", Optional).is_some_and(|flag| flag.value);
    let (mut verify_token, mut service_url, mut more) = (None, None, Vec::new());
    for (whose, name) in OWN {
        if whose != provider {
            continue;
        }
        let Some(text) = fields.text(name, Optional) else { continue };
        let value = text.trim().to_owned();
        match name {
            _ if value.is_empty() => {}
            "verify_token" => verify_token = Some(Hidden(value)),
            "service_url" => {
                check_url(reading, &fields, name, &text);
                service_url = Some(value);
            }
            name => more.push((name.to_owned(), value)),
        }
    }
    fields.finish_open();
    ChannelSettings {
        provider: provider.to_owned(),
        bot_token,
        signing_secret,
        verify_token,
        listen_channels,
        post_channel,
        service_url,
        operators,
        operators_only,
        more,
    }
}

/// Warns of what a channel cannot do without.
fn missing(reading: &Reading<'_, '_>, fields: &Fields<'_, '_>, channel: &ChannelSettings, place: Place) {
    let provider = &channel.provider;
    let warn = |message: String, help: &str| {
        reading.reader.report(reading.warning(fields, message, place).help(help));
    };
    if channel.bot_token.is_none() {
        warn(format!("`{provider}` has no `bot_token`: nothing is posted there"), "give it one: `${NAME}`");
    }
    match &channel.signing_secret {
        None if provider == "telegram" => {}
        None => warn(
            format!("`{provider}` has no `signing_secret`: what it posts is refused with the status 503"),
            "give it one: `${NAME}`",
        ),
        Some(Hidden(key)) if provider == "discord" && !is_key(key) => warn(
            format!("`signing_secret` of `discord` is not a public key: it has {KEY_DIGITS} hexadecimal digits"),
            "take the public key of the application, not its token",
        ),
        Some(_) => {}
    }
    if provider == "whatsapp" && channel.verify_token.is_none() {
        let message = "`whatsapp` has no `verify_token`: the address cannot be registered at Meta".to_owned();
        warn(message, "give it one, and write the same text there");
    }
    if channel.operators_only && channel.operators.is_empty() {
        let message = format!("`{provider}` has `operators_only` and no `operators`: nobody is heard");
        warn(message, "name them: `operators: {ann: U123}`");
    }
}

/// An identifier, which may be written as a number. None if it is empty.
fn id<'r, 'd>(reading: &Reading<'r, 'd>, fields: &Fields<'r, 'd>, name: &str, node: &'d Node) -> Option<String> {
    let text = match &node.kind {
        Kind::Number(_) => reading.reader.document().raw(node.place).to_owned(),
        _ => reading.reader.text(node, || format!("`{name}`"), fields.owner())?.to_string(),
    };
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn is_key(text: &str) -> bool {
    text.len() == KEY_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}
