//! The turns of the nodes of a run, as streams for clients of LangGraph tell of them in the modes `tasks`, `checkpoints`, `debug` and
//! `events`.

use std::time::SystemTime;

use hotcell_runtime::{Completed, RunRecord};
use serde_json::{Value, json};

use crate::view::{Object, time};

/// How far a run has come in a stream.
pub(super) struct Steps {
    run: String,
    thread: Option<String>,
    graph: String,
    /// The number of the last step: -1 for the beginning, 0 for the first turn
    step: i64,
    /// The entry after which its state was told last
    last: Option<u64>,
}

impl Steps {
    pub(super) fn new(record: &RunRecord) -> Self {
        Steps {
            run: record.id.to_string(),
            thread: record.thread().map(str::to_owned),
            graph: record.header.graph.clone(),
            step: -2,
            last: None,
        }
    }

    /// A turn was completed with an entry, or the run began with it.
    pub(super) fn took(&mut self, entry: u64) {
        self.step += 1;
        self.last = Some(entry);
    }

    /// What names a turn at a place.
    fn task(&self, place: &str) -> String {
        format!("{}/{place}", self.run)
    }

    fn config(&self, entry: u64) -> Value {
        let id = format!("{}:{entry}", self.run);
        json!({ "configurable": { "thread_id": self.thread, "checkpoint_ns": "", "checkpoint_id": id } })
    }

    /// A node that begins.
    pub(super) fn begins(&self, node: &str, place: &str, input: Object) -> Value {
        json!({ "id": self.task(place), "name": node, "input": input, "triggers": [] })
    }

    /// What came of a node.
    pub(super) fn done(&self, place: &str, completed: &Completed) -> Value {
        let writes = completed.writes.iter();
        let result: Object = writes.map(|write| (write.key.to_string(), Value::from(&write.value))).collect();
        let error = &completed.failure;
        json!({ "id": self.task(place), "name": completed.node, "error": error, "result": result, "interrupts": [] })
    }

    /// The state after an entry, with which a turn was completed, or the run began.
    pub(super) fn checkpoint(&mut self, entry: u64, values: &Object, next: &[String]) -> Value {
        let parent = self.last.map(|last| self.config(last));
        let source = if self.last.is_none() { "input" } else { "loop" };
        self.took(entry);
        json!({
            "config": self.config(entry),
            "parent_config": parent,
            "values": values,
            "metadata": { "source": source, "step": self.step, "run_id": self.run },
            "next": next,
            "tasks": [],
        })
    }

    /// Something of these, with its time.
    pub(super) fn debug(&self, kind: &str, at: SystemTime, payload: Value) -> Value {
        json!({ "type": kind, "step": self.step, "timestamp": time(at), "payload": payload })
    }

    /// The graph begins or ends.
    pub(super) fn graph(&self, event: &str, member: &str, value: Value) -> Value {
        let data = Object::from_iter([(member.to_owned(), value)]);
        json!({
            "event": event, "name": self.graph, "run_id": self.run, "parent_ids": [], "tags": [],
            "metadata": { "thread_id": self.thread }, "data": data,
        })
    }

    /// A node begins or ends.
    pub(super) fn node(&self, event: &str, node: &str, place: &str, member: &str, value: Value) -> Value {
        let data = Object::from_iter([(member.to_owned(), value)]);
        json!({
            "event": event, "name": node, "run_id": self.task(place), "parent_ids": [self.run], "tags": [],
            "metadata": { "thread_id": self.thread, "langgraph_node": node }, "data": data,
        })
    }

    /// A model says something.
    pub(super) fn said(&self, node: &str, message: &str, text: &str) -> Value {
        json!({
            "event": "on_chat_model_stream", "name": node, "run_id": message, "parent_ids": [self.run], "tags": [],
            "metadata": { "thread_id": self.thread, "langgraph_node": node },
            "data": { "chunk": { "type": "AIMessageChunk", "id": message, "content": text } },
        })
    }
}
