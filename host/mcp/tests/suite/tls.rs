//! Servers behind TLS that want to see a certificate.

use std::sync::Arc;

use crate::common::workshop::{Workshop, identity};
use crate::common::{call, streamable};
use hotcell_loopback::tls::{certificates, in_front_of};
use hotcell_mcp::{HttpSettings, Server, ServerSettings, TlsFiles, Transport, Unattended, serve_http};
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_server_is_shown_the_certificate_that_is_set() {
    let folder = tempfile::tempdir().expect("a folder");
    certificates(folder.path()).expect("certificates");
    let http = serve_http(Workshop::open(), identity(), HttpSettings::default(), &CancellationToken::new()).await;
    let http = http.expect("served");
    let port = in_front_of(folder.path(), http.address()).await.expect("served");
    let file = |name: &str| Some(folder.path().join(name));
    let with = |tls: TlsFiles| -> ServerSettings {
        let mut settings = streamable(&format!("https://localhost:{port}/mcp"));
        let Transport::StreamableHttp { tls: own, .. } = &mut settings.transport else { panic!("HTTP") };
        *own = tls;
        settings
    };
    let right =
        TlsFiles { ca_file: file("ca.pem"), client_certificate: file("client.pem"), client_key: file("client.key") };
    let server = Server::connect(with(right.clone()), Arc::new(Unattended)).await.expect("connected");
    assert_eq!(call(&server, "echo", json!({ "text": "safe" })).await.expect("a reply").text, "safe");
    server.close().await;
    for (tls, expected) in [
        (TlsFiles { client_certificate: None, client_key: None, ..right.clone() }, "CertificateRequired"),
        (
            TlsFiles { client_certificate: file("stranger.pem"), client_key: file("stranger.key"), ..right.clone() },
            "alert",
        ),
        (TlsFiles { ca_file: file("other-ca.pem"), ..right.clone() }, "certificate"),
        (TlsFiles { client_key: file("stranger.key"), ..right.clone() }, "cannot be used"),
        (TlsFiles { client_key: file("ca.pem"), ..right.clone() }, "ca.pem` cannot be used"),
        (TlsFiles { ca_file: file("client.key"), ..right }, "holds no certificate"),
    ] {
        let error = Server::connect(with(tls), Arc::new(Unattended)).await.expect_err(expected).to_string();
        assert!(error.contains(expected) && error.contains("`remote`"), "{expected}: {error}");
    }
}
