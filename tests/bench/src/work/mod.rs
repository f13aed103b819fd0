//! What can be measured.

mod agent_spec;
mod agentloom;
mod agents;
mod engine;
mod extism;
mod journal;
mod many;
mod mesh;
mod other;
mod plugins;
mod process;
mod recording;
mod scripts;
mod serve;
pub(crate) mod sessions;
mod sherma;
mod tools;
pub(crate) mod waiting;

use std::error::Error;
use std::future::Future;
use std::pin::Pin;

use crate::measure::Row;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;
type Running = Pin<Box<dyn Future<Output = Result<Vec<Row>, Failure>>>>;

/// One piece of work.
pub(crate) struct Work {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn(usize) -> Running,
}

/// Everything, in the order in which it is printed.
pub(crate) fn all() -> Vec<Work> {
    vec![
        Work {
            name: "script-wasm",
            about: "a sealed .wasm script node in the engine, and the same script as a python3 subprocess",
            run: |rounds| Box::pin(scripts::wasm(rounds)),
        },
        Work {
            name: "script-source",
            about: "one script unmodified in its cell, and in the subprocess it replaces",
            run: |rounds| Box::pin(scripts::source(rounds)),
        },
        Work {
            name: "chain",
            about: "cost of a node that sets a value, in chains of 1, 100 and 1,000",
            run: |rounds| Box::pin(engine::chain(rounds)),
        },
        Work {
            name: "commits",
            about: "nodes committed by one run, and by sixteen at once",
            run: |rounds| Box::pin(journal::commits(rounds)),
        },
        Work {
            name: "list",
            about: "the first page of `hotcell runs list` with 100,000 runs, as it is and filtered",
            run: |rounds| Box::pin(journal::list(rounds)),
        },
        Work {
            name: "resume",
            about: "going on with runs of 10,000 and 100,000 nodes that died at the last one",
            run: |rounds| Box::pin(journal::resume(rounds)),
        },
        Work {
            name: "state",
            about: "one sealed node that touches one key, whatever else is in state",
            run: |rounds| Box::pin(scripts::state(rounds)),
        },
        Work {
            name: "start-up",
            about: "`hotcell run` of a graph with three nodes, whole process, warm cache",
            run: |rounds| Box::pin(process::start_up(rounds)),
        },
        Work {
            name: "tool",
            about: "one tool called through hotcell, through Extism and as a python3 subprocess",
            run: |rounds| Box::pin(tools::call(rounds)),
        },
        Work {
            name: "first-answer",
            about: "from the bytes of a component to its first answer",
            run: |rounds| Box::pin(tools::first_answer(rounds)),
        },
        Work {
            name: "plugin-list",
            about: "finding 1,000 different plugins in a folder; none of them is compiled or run",
            run: |rounds| Box::pin(plugins::listing(rounds)),
        },
        Work {
            name: "neighbours",
            about: "10,000 calls to 100 plugins by 16 concurrent runs beside one that loops and floods",
            run: |rounds| Box::pin(plugins::neighbours(rounds)),
        },
        Work {
            name: "many-plugins",
            about: "sealed calls of 1 to 1,000 different plugins in turn, by 1 task and by 16",
            run: |rounds| Box::pin(many::plugins(rounds)),
        },
        Work {
            name: "recording",
            about: "a node that calls a tool with its call recorded and without, and 1,000 recorded calls executed again",
            run: |rounds| Box::pin(recording::recording(rounds)),
        },
        Work {
            name: "map",
            about: "a map over 1,000 items through a sealed script, and one process for each item",
            run: |rounds| Box::pin(agents::map(rounds)),
        },
        Work {
            name: "child-agent",
            about: "what calling an agent costs beside the agent's own nodes",
            run: |rounds| Box::pin(agents::child(rounds)),
        },
        Work {
            name: "sherma",
            about: "the same declarative agents here and in sherma 1.8.0: chains, a loop, expressions beside many messages",
            run: |rounds| Box::pin(sherma::beside(rounds)),
        },
        Work {
            name: "agent-spec",
            about: "flows of tools and a map, here with sealed tools and in WayFlow 26.3.1 with Python functions",
            run: |rounds| Box::pin(agent_spec::beside(rounds)),
        },
        Work {
            name: "agentloom",
            about: "workflows of AgentLoom here, with sealed tools and from Python with Python functions, and in AgentLoom 0.4.0",
            run: |rounds| Box::pin(agentloom::beside(rounds)),
        },
        Work {
            name: "mesh",
            about: "agents of a mesh that call each other, conditions of edges, loading a large mesh",
            run: |rounds| Box::pin(mesh::mesh(rounds)),
        },
        Work {
            name: "serve",
            about: "the server over HTTP: runs a second, clients that follow, runs that wait, and LangGraph's own server",
            run: |rounds| Box::pin(serve::serve(rounds)),
        },
        Work {
            name: "sessions",
            about: "1,000 sessions at once of a mesh with ten agents and a fan-in, and what they take while they wait",
            run: |rounds| Box::pin(sessions::sessions(rounds)),
        },
        Work {
            name: "waiting",
            about: "memory of 1,000 concurrent runs that wait for a person",
            run: |rounds| Box::pin(waiting::memory(rounds)),
        },
    ]
}
