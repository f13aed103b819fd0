//! A server in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::client::Client;
use crate::work::Failure;

/// How long a server may take to answer at all.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server.
pub(super) struct Process {
    process: Child,
    pub(super) address: String,
    /// From its start until it took work
    pub(super) ready: Duration,
}

impl Process {
    /// `hotcell serve`, of this build, with a journal.
    pub(super) async fn hotcell(folder: &Path, journal: &Path, model: Option<&str>) -> Result<Self, Failure> {
        let mut command = Command::new(crate::work::process::hotcell()?);
        command.arg("serve").arg(folder).arg("--journal").arg(journal);
        command.args(["--listen", "127.0.0.1:0", "--max-runs", "100000", "--rate-limit", "0", "--drain", "1s"]);
        command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        if let Some(url) = model {
            command.env("HOTCELL_MODEL_URL", url).env("HOTCELL_MODEL", "bench:silent");
        }
        let begun = Instant::now();
        let mut process = command.spawn()?;
        let errors = process.stderr.take().ok_or("it has no pipe")?;
        let mut lines = BufReader::new(errors).lines();
        let mut said = String::new();
        let address = loop {
            let Some(line) = lines.next().transpose()? else { return Err(format!("the server ended: {said}").into()) };
            if let Some(address) = line.split("http://").nth(1).and_then(|rest| rest.split(';').next()) {
                break address.to_owned();
            }
            said.push_str(&line);
        };
        // A pipe that nobody reads would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        let server = Process { process, address, ready: Duration::ZERO };
        server.until("/ready", begun).await
    }

    /// Another server, which answers at `path` when it takes work.
    pub(super) async fn other(command: &mut Command, address: String, path: &str) -> Result<Self, Failure> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let begun = Instant::now();
        let server = Process { process: command.spawn()?, address, ready: Duration::ZERO };
        server.until(path, begun).await
    }

    async fn until(mut self, path: &str, begun: Instant) -> Result<Self, Failure> {
        while begun.elapsed() < PATIENCE {
            if let Ok(mut client) = Client::connect(&self.address).await
                && client.ask("GET", path, "").await.is_ok_and(|reply| reply.status == 200)
            {
                self.ready = begun.elapsed();
                return Ok(self);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Err("the server does not become ready".into())
    }

    /// Its resident memory in bytes.
    pub(super) fn resident(&self) -> Result<u64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no `VmRSS`")?;
        Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
    }

    /// Ends it as somebody who cuts its power does.
    pub(super) fn kill(mut self) -> Result<(), Failure> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
