//! Hostile clients of `hotcell serve`, against a server of this process that holds one harmless agent, while a neighbour wants to be
//! served, too.

use std::sync::Arc;
use std::time::Duration;

use hotcell_harness::{HostileClient, Stranger};
use hotcell_runtime::{CancellationToken, Host};
use hotcell_serve::{ServeSettings, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::Tried;
use super::ground::{Ground, LONGEST};
use super::servers::go_on;

/// How long a head or a body may take to arrive: less than in a real server, so that whoever asks gets an answer soon.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many connections there may be: less than in a real server, so that not all that this process may have open is used up.
const CONNECTIONS: usize = 48;
/// Of a reply so much is looked at.
const LONGEST_REPLY: u64 = 64 << 10;
const HARMLESS: &str = "name: echo\nversion: \"1.0\"\nstart: done\nnodes:\n  done: { type: end, output: \"you said {{initial_prompt}}\" }\n";
const NEIGHBOUR: &str = "POST /runs/wait HTTP/1.1\r\nHost: %host\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"input\":\"hi\"}";

/// Tries them one after the other, against one server.
pub(super) async fn attempt(host: &Host, attacks: &[Stranger<HostileClient>]) -> Result<Vec<Tried>, String> {
    let ground = Ground::new(host, &[])?;
    ground.write("agents/echo/graph.yaml", HARMLESS)?;
    let mut settings =
        ServeSettings { folders: vec![ground.path("agents")], body_within: PATIENCE, ..ServeSettings::default() };
    settings.limits.head_within = PATIENCE;
    settings.limits.connections = CONNECTIONS;
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
    let address: Arc<str> = listener.local_addr().map_err(|error| error.to_string())?.to_string().into();
    let server = Server::new(ground.host().clone(), settings).await.map_err(|error| error.to_string())?;
    let shutdown = CancellationToken::new();
    let _ended = shutdown.clone().drop_guard();
    let serving = tokio::spawn(server.serve(listener, shutdown.clone()));
    let mut tried = Vec::with_capacity(attacks.len());
    for attack in attacks {
        tried.push(one(attack, &address).await);
    }
    shutdown.cancel();
    let _ = serving.await;
    Ok(tried)
}

async fn one(attack: &Stranger<HostileClient>, address: &Arc<str>) -> Tried {
    let work = async {
        let client = &attack.brings;
        let text = client.send.written_out().replace("%host", address);
        let mut connections = tokio::task::JoinSet::new();
        for _ in 0..client.connections {
            let mut stream = TcpStream::connect(&**address).await.map_err(|error| error.to_string())?;
            let (text, then) = (text.clone(), client.then.clone());
            connections.spawn(async move {
                // Whoever is cut off while it sends may have been answered all the same.
                let reply = tokio::time::timeout(LONGEST, said(&mut stream, &text, &then)).await;
                reply.unwrap_or_else(|_| "it was neither answered nor cut off".to_owned())
            });
        }
        neighbour(address).await?;
        let mut said = Vec::new();
        while let Some(reply) = connections.join_next().await {
            said.push(reply.map_err(|error| error.to_string())?);
        }
        neighbour(address).await?;
        said.sort();
        said.dedup();
        Ok(said.join("\n"))
    };
    Tried::of(attack, work).await
}

/// Sends what a client sends, and gives what it is answered until its connection ends.
async fn said(stream: &mut TcpStream, text: &str, then: &hotcell_harness::Then) -> String {
    let mut reply = Vec::new();
    {
        let (mut read, mut write) = stream.split();
        let mut limited = (&mut read).take(LONGEST_REPLY);
        let reading = limited.read_to_end(&mut reply);
        let sending = async {
            let _ = go_on(&mut write, text, then).await;
            // It has sent all that it wanted, or cannot: what is answered counts.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = reading => {}
            () = sending => {}
        }
    }
    match reply.is_empty() {
        true => "it was cut off without an answer".to_owned(),
        false => String::from_utf8_lossy(&reply).into_owned(),
    }
}

/// Whether a harmless client is served.
async fn neighbour(address: &str) -> Result<(), String> {
    let served = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(NEIGHBOUR.replace("%host", address).as_bytes()).await?;
        let mut reply = String::new();
        (&mut stream).take(LONGEST_REPLY).read_to_string(&mut reply).await?;
        Ok::<_, std::io::Error>(reply)
    };
    match tokio::time::timeout(LONGEST, served).await {
        Ok(Ok(reply)) if reply.contains("you said hi") => Ok(()),
        Ok(Ok(reply)) => Err(format!("a neighbour was answered: {reply}")),
        Ok(Err(error)) => Err(format!("a neighbour was not served: {error}")),
        Err(_) => Err("a neighbour was not served in time".to_owned()),
    }
}
