//! The outside world of one run: a server on `127.0.0.1` that is its model, its web and its tools.
//!
//! What it replies is decided by a request's content alone, so a request that is repeated gets an equal reply. What goes
//! wrong before that is decided by the seed, the content, and how often it went wrong before.

mod http;
mod ledger;
mod mcp;
mod reply;

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) use ledger::Ledger;

use self::http::{Answer, Outcome, Request};
use self::reply::Effect;
use crate::scenario::{Fault, Scenario};

/// The path that only the torturer asks for.
const FENCE: &str = "/torture/fence";

/// How unreliable a world is.
#[derive(Clone, Copy)]
pub(crate) struct Weather {
    pub(crate) seed: u64,
    /// Which part of the requests fails, from 0 to 1
    pub(crate) fault_rate: f64,
}

/// A running world. Dropping it ends it.
pub(crate) struct World {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    scenario: Arc<Scenario>,
    weather: Weather,
    ledger: Mutex<Ledger>,
    /// Every request, those included that are for no effect
    requests: AtomicUsize,
    /// Those that are for no effect and went wrong
    refusals: AtomicUsize,
    /// Connections that have been accepted and are not over
    open: AtomicUsize,
    over: AtomicBool,
}

impl World {
    pub(crate) fn start(scenario: Arc<Scenario>, weather: Weather) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            scenario,
            weather,
            ledger: Mutex::default(),
            requests: AtomicUsize::new(0),
            refusals: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || accept(&listener, &of_thread));
        Ok(World { address, shared, accepting: Some(accepting) })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.shared.ledger()
    }

    /// How many requests there were so far.
    pub(crate) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// How many requests that are for no effect went wrong so far.
    pub(crate) fn refusals(&self) -> usize {
        self.shared.refusals.load(Ordering::SeqCst)
    }

    /// Waits until everything that a dead process sent has been taken in, so that it is not taken for the next one's.
    pub(crate) fn settle(&self) -> io::Result<()> {
        // Connections are accepted in the order in which they were made: what comes before this one is counted.
        let mut stream = TcpStream::connect(self.address)?;
        write!(stream, "GET {FENCE} HTTP/1.1\r\n\r\n")?;
        let _ = stream.read(&mut [0; 256])?;
        while self.shared.open.load(Ordering::SeqCst) > 1 {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Only to be seen by the thread that accepts.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.accepting.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        shared.open.fetch_add(1, Ordering::SeqCst);
        let of_thread = Arc::clone(shared);
        std::thread::spawn(move || {
            // A client that was killed is what this is about.
            let _ = serve(stream, &of_thread);
            of_thread.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = http::read(&mut reader)? {
        if request.target == FENCE {
            http::write(&mut out, &Outcome::Reply { status: 200, kind: "text/plain", body: String::new() })?;
            continue;
        }
        let (entry, answer) = shared.answer(&request);
        shared.requests.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(answer.after);
        let goes_on = http::write(&mut out, &answer.outcome)?;
        if let Some(entry) = entry {
            shared.ledger().written(entry);
        }
        if !goes_on {
            break;
        }
    }
    Ok(())
}

/// How an exchange ends in which this goes wrong.
fn outcome(fault: Option<Fault>, kind: &'static str, body: String) -> Outcome {
    let refusal = |status: u16| Outcome::Reply {
        status,
        kind: "application/json",
        body: format!(r#"{{"error":{{"message":"the world is out of order: {status}","type":"torture"}}}}"#),
    };
    match fault {
        None | Some(Fault::Slow) => Outcome::Reply { status: 200, kind, body },
        Some(Fault::Busy) => refusal(429),
        Some(Fault::Broken) => refusal(500),
        Some(Fault::Reset) => Outcome::Reset,
        Some(Fault::Cut) => Outcome::Cut { body },
    }
}

impl Shared {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a request gets, and its place in the ledger if it is for an effect.
    fn answer(&self, request: &Request) -> (Option<usize>, Answer) {
        let effect = match reply::to(&self.scenario, request) {
            Ok(effect) => effect,
            Err(answer) => return (None, self.or_refusal(request, answer)),
        };
        let mut ledger = self.ledger();
        let fault = self.fault(&effect, ledger.faults(&effect.token));
        let entry = ledger.ask(&effect, fault);
        drop(ledger);
        let mut rng = self.rng(&effect.token, entry);
        // Nothing outside answers at once: this is the time in which a process dies while it waits.
        let mut after = Duration::from_millis(rng.u64(2..25));
        let Effect { kind, body, .. } = effect;
        if fault == Some(Fault::Slow) {
            after += Duration::from_millis(rng.u64(60..180));
        }
        (Some(entry), Answer { after, outcome: outcome(fault, kind, body) })
    }

    /// What a request that is for no effect gets, which may go wrong where an agent is loaded.
    fn or_refusal(&self, request: &Request, answer: Answer) -> Answer {
        let nth = self.requests.load(Ordering::SeqCst);
        let mut rng = self.rng("loading", nth);
        if !mcp::is_loading(request) || rng.f64() >= self.weather.fault_rate {
            return answer;
        }
        let (Some(fault), Outcome::Reply { kind, body, .. }) =
            (rng.choice(&self.scenario.faults.loading), &answer.outcome)
        else {
            return answer;
        };
        self.refusals.fetch_add(1, Ordering::SeqCst);
        Answer { after: answer.after, outcome: outcome(Some(*fault), kind, body.clone()) }
    }

    fn fault(&self, effect: &Effect, before: usize) -> Option<Fault> {
        let mut rng = self.rng(&effect.token, before);
        if rng.f64() >= self.weather.fault_rate {
            return None;
        }
        let fault = *rng.choice(effect.faults)?;
        (fault == Fault::Slow || before < self.scenario.faults.most).then_some(fault)
    }

    fn rng(&self, token: &str, nth: usize) -> fastrand::Rng {
        let digest = blake3::hash(format!("{} {token} {nth}", self.weather.seed).as_bytes());
        let bytes = digest.as_bytes().first_chunk().copied().unwrap_or_default();
        fastrand::Rng::with_seed(u64::from_le_bytes(bytes))
    }
}
