//! Servers behind TLS that want to see a certificate. The certificates are made by `openssl`.

mod common;
#[path = "common/workshop.rs"]
mod workshop;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use common::{call, streamable};
use hotcell_mcp::{HttpSettings, Server, ServerSettings, TlsSettings, Transport, Unattended, serve_http};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use workshop::{Workshop, identity};

fn openssl(folder: &Path, arguments: &str) {
    let made = Command::new("openssl").args(arguments.split_whitespace()).current_dir(folder).output();
    let made = made.expect("openssl is installed");
    assert!(made.status.success(), "{arguments}: {}", String::from_utf8_lossy(&made.stderr));
}

/// Two authorities; the first signs a server and a client, the second another client.
fn certificates(folder: &Path) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    std::fs::write(folder.join("server.ext"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").expect("written");
    std::fs::write(folder.join("client.ext"), "extendedKeyUsage=clientAuth\n").expect("written");
    for authority in ["ca", "other-ca"] {
        openssl(
            folder,
            &format!("req -x509 {key} -keyout {authority}.key -out {authority}.pem -subj /CN={authority} -days 2"),
        );
    }
    for (name, extension, authority) in
        [("server", "server", "ca"), ("client", "client", "ca"), ("stranger", "client", "other-ca")]
    {
        openssl(folder, &format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
        let signed = format!(
            "x509 -req -in {name}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial -out {name}.pem -days 2 -extfile {extension}.ext"
        );
        openssl(folder, &signed);
    }
}

fn read(file: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(file).expect("a file").map(|certificate| certificate.expect("PEM")).collect()
}

/// Takes TLS off in front of another address.
async fn unwrap_tls(folder: &Path, behind: std::net::SocketAddr) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(read(&folder.join("ca.pem")));
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier.build().expect("a verifier"))
        .with_single_cert(
            read(&folder.join("server.pem")),
            PrivateKeyDer::from_pem_file(folder.join("server.key")).expect("a key"),
        )
        .expect("a certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut near) = acceptor.accept(stream).await else { return };
                let mut far = TcpStream::connect(behind).await.expect("connected");
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    port
}

#[tokio::test]
async fn a_server_is_shown_the_certificate_that_is_set() {
    let folder = tempfile::tempdir().expect("a folder");
    certificates(folder.path());
    let http = serve_http(Workshop::open(), identity(), HttpSettings::default(), &CancellationToken::new()).await;
    let http = http.expect("served");
    let port = unwrap_tls(folder.path(), http.address()).await;
    let file = |name: &str| Some(folder.path().join(name));
    let with = |tls: TlsSettings| -> ServerSettings {
        let mut settings = streamable(&format!("https://localhost:{port}/mcp"));
        let Transport::StreamableHttp { tls: own, .. } = &mut settings.transport else { panic!("HTTP") };
        *own = tls;
        settings
    };
    let right =
        TlsSettings { ca_file: file("ca.pem"), client_certificate: file("client.pem"), client_key: file("client.key") };
    let server = Server::connect(with(right.clone()), Arc::new(Unattended)).await.expect("connected");
    assert_eq!(call(&server, "echo", json!({ "text": "safe" })).await.expect("a reply").text, "safe");
    server.close().await;
    for (tls, expected) in [
        (TlsSettings { client_certificate: None, client_key: None, ..right.clone() }, "CertificateRequired"),
        (
            TlsSettings { client_certificate: file("stranger.pem"), client_key: file("stranger.key"), ..right.clone() },
            "alert",
        ),
        (TlsSettings { ca_file: file("other-ca.pem"), ..right.clone() }, "certificate"),
        (TlsSettings { client_key: file("stranger.key"), ..right.clone() }, "cannot be used"),
        (TlsSettings { client_key: file("ca.pem"), ..right.clone() }, "ca.pem` cannot be used"),
        (TlsSettings { ca_file: file("client.key"), ..right }, "holds no certificate"),
    ] {
        let error = Server::connect(with(tls), Arc::new(Unattended)).await.expect_err(expected).to_string();
        assert!(error.contains(expected) && error.contains("`remote`"), "{expected}: {error}");
    }
}
