//! `hotcell plugin keygen` and `sign`

use std::path::{Path, PathBuf};

use hotcell_runtime::plugins::{KeyPair, sign as sign_component};

use super::{Context, print};
use crate::exit::{Exit, Failure};

/// The variable with the password of the secret key.
const PASSWORD: &str = "HOTCELL_KEY_PASSWORD";

fn password() -> String {
    std::env::var(PASSWORD).unwrap_or_default()
}

pub(super) fn sign(_: &Context, file: &Path, key: &Path) -> Result<Exit, Failure> {
    let signature = sign_component(file, key, &password()).map_err(|error| {
        let failure = Failure::failed(error.to_string());
        match key.exists() {
            true => {
                failure.help(format!("`hotcell plugin keygen` makes keys; their password is read from `{PASSWORD}`"))
            }
            false => failure.help("`hotcell plugin keygen FILE` makes a key"),
        }
    })?;
    print(&format!("signed: `{}`", signature.display()))?;
    Ok(Exit::Done)
}

pub(super) fn keygen(context: &Context, file: &Path) -> Result<Exit, Failure> {
    if file.exists() {
        return Err(Failure::refused(format!("`{}` is there already", file.display())));
    }
    let password = password();
    let pair = KeyPair::generate(&password).map_err(|error| Failure::failed(error.to_string()))?;
    let mut public = file.as_os_str().to_owned();
    public.push(".pub");
    let public = PathBuf::from(public);
    pair.write(file, &public).map_err(|error| Failure::failed(error.to_string()))?;
    if password.is_empty() {
        context.screen.line(&format!("the secret key has no password; set `{PASSWORD}` to give it one"));
    }
    print(&format!("secret key: `{}`\npublic key: `{}`\n{}", file.display(), public.display(), pair.public.0))?;
    Ok(Exit::Done)
}
