//! Requests, as many as a server takes or as many as are wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::client::Client;
use crate::measure::Samples;
use crate::work::Failure;

/// Connections for requests that come at their times: more than are open at once.
const CONNECTIONS: usize = 64;

/// What is asked again and again.
#[derive(Clone)]
pub(super) struct Load {
    pub(super) path: String,
    pub(super) body: String,
}

async fn ask(client: &mut Client, load: &Load) -> Result<(), Failure> {
    let reply = client.ask("POST", &load.path, &load.body).await?;
    match reply.status {
        200 => Ok(()),
        status => Err(format!("{status}: {}", String::from_utf8_lossy(&reply.body)).into()),
    }
}

/// So many clients, each of which asks again as soon as it has its reply: times, and requests a second.
pub(super) async fn closed(
    address: &str,
    load: &Load,
    clients: usize,
    time: Duration,
) -> Result<(Samples, f64), Failure> {
    let begun = Instant::now();
    let mut working = JoinSet::new();
    for _ in 0..clients {
        let (address, load) = (address.to_owned(), load.clone());
        working.spawn(async move {
            let mut client = Client::connect(&address).await?;
            let mut times = Vec::new();
            while begun.elapsed() < time {
                let asked = Instant::now();
                ask(&mut client, &load).await?;
                times.push(asked.elapsed());
            }
            Ok::<_, Failure>(times)
        });
    }
    let samples = gathered(working).await?;
    let rate = samples.count() as f64 / begun.elapsed().as_secs_f64();
    Ok((samples, rate))
}

/// Requests at their times, whatever becomes of those before: the times count from when each was due.
pub(super) async fn open(address: &str, load: &Load, rate: f64, time: Duration) -> Result<Samples, Failure> {
    let (begun, next) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let mut working = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (address, load, next) = (address.to_owned(), load.clone(), next.clone());
        working.spawn(async move {
            let mut client = Client::connect(&address).await?;
            let mut times = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let due = Duration::from_secs_f64(number as f64 / rate);
                if due >= time {
                    return Ok::<_, Failure>(times);
                }
                tokio::time::sleep(due.saturating_sub(begun.elapsed())).await;
                ask(&mut client, &load).await?;
                times.push(begun.elapsed() - due);
            }
        });
    }
    gathered(working).await
}

async fn gathered(mut working: JoinSet<Result<Vec<Duration>, Failure>>) -> Result<Samples, Failure> {
    let mut samples = Samples::new("");
    while let Some(done) = working.join_next().await {
        done??.into_iter().for_each(|time| samples.add(time));
    }
    Ok(samples)
}
