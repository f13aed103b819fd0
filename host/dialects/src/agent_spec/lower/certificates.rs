//! Files with keys and certificates that components name.

use hotcell_graph::ir::TlsPaths;

use super::Lowering;
use crate::agent_spec::model::Component;

impl Lowering<'_> {
    /// How the server at `url` and the host prove to each other who they are, if the component says it: in the fields for who
    /// signs the server's certificate, for the host's certificate, and for its key.
    pub(super) fn tls(&mut self, component: &Component, url: &str, fields: [&str; 3]) -> Option<TlsPaths> {
        let [authorities, certificate, key] =
            fields.map(|field| component.text(field).filter(|file| !file.is_empty()).map(|file| (field, file)));
        let (first, _) = authorities.or(certificate).or(key)?;
        if !url.starts_with("https://") {
            self.refuse_field(component, first, format!("`{first}` needs an address that begins with `https://`"));
        }
        if let (Some((alone, _)), None, missing) | (None, Some((alone, _)), missing) =
            (certificate, key, if key.is_none() { fields[2] } else { fields[1] })
        {
            self.refuse_field(component, alone, format!("`{alone}` needs `{missing}` beside it"));
        }
        let mut path = |named: Option<(&str, &str)>| {
            let (field, file) = named?;
            match self.surroundings.key_file(file) {
                Ok(path) => Some(path),
                Err(reason) => {
                    self.refuse_field(component, field, reason);
                    None
                }
            }
        };
        Some(TlsPaths { authorities: path(authorities), certificate: path(certificate), key: path(key) })
    }
}
