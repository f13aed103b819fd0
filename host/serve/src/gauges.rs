//! Numbers that go up and down, which are looked up when somebody wants to know them.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hotcell_telemetry::Measure;

use crate::state::Server;

/// How long what was found in the journal counts: whoever asks more often gets it once more.
const FRESH: Duration = Duration::from_secs(5);
/// How often it is looked up for a collector.
const OFTEN: Duration = Duration::from_secs(30);

/// Looks everything up.
pub(crate) async fn refresh(server: &Server) {
    let (telemetry, runs) = (server.telemetry(), server.runs());
    let set = |measure, number: usize| telemetry.set(measure, &[], number as u64);
    set(Measure::RunsWorking, runs.working());
    set(Measure::Agents, server.agents().len());
    set(Measure::AgentsNotServed, server.not_served().len());
    telemetry.set(Measure::StartTime, &[], since_1970(server.started()));
    if let Some(bytes) = resident_memory() {
        telemetry.set(Measure::ResidentMemory, &[], bytes);
    }
    // One at a time, and the others take what it found.
    let mut looked = server.0.counted.lock().await;
    if looked.is_some_and(|looked| looked.elapsed() < FRESH) {
        return;
    }
    let counted = runs.store().census().await;
    *looked = Some(Instant::now());
    telemetry.set(Measure::JournalUp, &[], u64::from(counted.is_ok()));
    match counted {
        Ok(census) => {
            for (status, runs) in census.runs {
                telemetry.set(Measure::RunsInJournal, &[status.as_str()], runs);
            }
            telemetry.set(Measure::QuestionsOpen, &[], census.open_questions);
            if let Some(bytes) = census.bytes {
                telemetry.set(Measure::JournalBytes, &[], bytes);
            }
        }
        Err(error) => tracing::error!(target: "hotcell::serve", %error, "the journal cannot be counted"),
    }
}

/// Looks everything up again and again, if it is sent anywhere, until the server closes.
pub(crate) async fn keep(server: Server) {
    if !server.telemetry().sends() {
        return;
    }
    let closing = server.closing().clone();
    let keeping = async {
        loop {
            refresh(&server).await;
            tokio::time::sleep(OFTEN).await;
        }
    };
    closing.run_until_cancelled(keeping).await;
}

fn since_1970(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Bytes of this process that are in memory, where the system says so.
fn resident_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
