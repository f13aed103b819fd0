//! TLS in front of a server, for clients that have to show a certificate. It runs on the runtime of the test.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

fn openssl(folder: &Path, arguments: &str) -> io::Result<()> {
    let made = Command::new("openssl").args(arguments.split_whitespace()).current_dir(folder).output()?;
    if made.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("openssl {arguments}: {}", String::from_utf8_lossy(&made.stderr))))
}

/// Two authorities, `ca` and `other-ca`; the first signs `server` and `client`, the second `stranger`, another client. Each
/// is a `.pem` and a `.key` in the folder, made by `openssl`, which has to be installed.
pub fn certificates(folder: &Path) -> io::Result<()> {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    std::fs::write(folder.join("server.ext"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n")?;
    std::fs::write(folder.join("client.ext"), "extendedKeyUsage=clientAuth\n")?;
    for authority in ["ca", "other-ca"] {
        openssl(
            folder,
            &format!("req -x509 {key} -keyout {authority}.key -out {authority}.pem -subj /CN={authority} -days 2"),
        )?;
    }
    for (name, extension, authority) in
        [("server", "server", "ca"), ("client", "client", "ca"), ("stranger", "client", "other-ca")]
    {
        openssl(folder, &format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"))?;
        let signed = format!(
            "x509 -req -in {name}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial -out {name}.pem -days 2 -extfile {extension}.ext"
        );
        openssl(folder, &signed)?;
    }
    Ok(())
}

fn read(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_file_iter(file).map_err(io::Error::other)?;
    certificates.collect::<Result<_, _>>().map_err(io::Error::other)
}

/// Takes TLS off in front of another address, for clients whose certificates are signed by `ca` in the folder of
/// [`certificates`]. Gives the port.
pub async fn in_front_of(folder: &Path, behind: SocketAddr) -> io::Result<u16> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(read(&folder.join("ca.pem"))?);
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_client_cert_verifier(verifier.build().map_err(io::Error::other)?)
        .with_single_cert(
            read(&folder.join("server.pem"))?,
            PrivateKeyDer::from_pem_file(folder.join("server.key")).map_err(io::Error::other)?,
        )
        .map_err(io::Error::other)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut near) = acceptor.accept(stream).await else { return };
                let Ok(mut far) = TcpStream::connect(behind).await else { return };
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    Ok(port)
}
