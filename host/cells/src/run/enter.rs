//! Entering a guest: the function that is called, with its arguments, and what it returned.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::ComponentExportIndex;

use crate::call::{ConnectorReply, NodeOutcome, Verdict};
use crate::contract::{GuestReply, GuestRequest, GuestVerdict, Outcome as GuestOutcome, PluginError, PluginResult};
use crate::guest::GuestState;
use crate::recording::Gave;

/// Facts that are kept beside an answer or an error.
const MAX_METADATA: usize = 32;
/// Bytes of the reason a hook gives for refusing.
const MAX_REASON: usize = 4_096;
/// Bytes of the name of a branch.
const MAX_BRANCH: usize = 200;

/// The function of a guest that a call enters, with its arguments.
pub(super) enum Enter {
    Nothing,
    Plugin(ComponentExportIndex),
    Command(ComponentExportIndex),
    Interpreter(ComponentExportIndex, String, Arc<str>),
    Tool(ComponentExportIndex, String, String),
    Node(ComponentExportIndex, String, String, String),
    Hook(ComponentExportIndex, String, String),
    Send(ComponentExportIndex, GuestRequest),
    Receive(ComponentExportIndex, GuestRequest, String),
}

/// What a call gave, whatever was called.
#[derive(Clone)]
pub(super) enum Answer {
    Text(String),
    Outcome(NodeOutcome),
    Verdict(Verdict),
    Reply(ConnectorReply),
}

impl Answer {
    /// The JSON of an answer that has no other part.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Text(text) | Self::Reply(ConnectorReply::Done(text)) | Self::Verdict(Verdict::Change(text)) => text,
            Self::Outcome(outcome) => outcome.outputs,
            Self::Verdict(_) | Self::Reply(ConnectorReply::Accepted) => String::new(),
        }
    }

    /// Bytes of what it says.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reply(ConnectorReply::Done(text)) | Self::Verdict(Verdict::Change(text)) => {
                text.len()
            }
            Self::Outcome(outcome) => outcome.outputs.len(),
            Self::Verdict(_) | Self::Reply(ConnectorReply::Accepted) => 0,
        }
    }

    /// The same with `change` made to every text.
    pub(super) fn map_text(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::Text(text) => Self::Text(change(text)),
            Self::Outcome(outcome) => Self::Outcome(NodeOutcome {
                outputs: change(outcome.outputs),
                branch: outcome.branch.map(&change),
                metadata: outcome.metadata.into_iter().map(|(name, value)| (change(name), change(value))).collect(),
            }),
            Self::Verdict(Verdict::Change(text)) => Self::Verdict(Verdict::Change(change(text))),
            Self::Verdict(Verdict::Refuse(text)) => Self::Verdict(Verdict::Refuse(change(text))),
            Self::Reply(ConnectorReply::Done(text)) => Self::Reply(ConnectorReply::Done(change(text))),
            other @ (Self::Verdict(Verdict::Proceed) | Self::Reply(ConnectorReply::Accepted)) => other,
        }
    }
}

/// What a guest returned without trapping.
pub(super) enum Returned {
    /// A result of the contract.
    Plugin(Result<Answer, PluginError>),
    /// An exit code; the result is on standard output.
    Code(i32),
}

impl Enter {
    pub(super) async fn run(
        self,
        store: &mut Store<GuestState>,
        instance: &wasmtime::component::Instance,
    ) -> wasmtime::Result<Returned> {
        match self {
            Self::Nothing => Ok(Returned::Plugin(Ok(Answer::Text(String::new())))),
            Self::Plugin(index) => {
                let run = instance.get_typed_func::<(), (PluginResult,)>(&mut *store, index)?;
                let (result,) = run.call_async(&mut *store, ()).await?;
                Ok(Returned::Plugin(result.map(Answer::Text)))
            }
            Self::Tool(index, tool, arguments) => {
                let call = instance.get_typed_func::<(&str, &str), (PluginResult,)>(&mut *store, index)?;
                let (result,) = call.call_async(&mut *store, (&tool, &arguments)).await?;
                Ok(Returned::Plugin(result.map(Answer::Text)))
            }
            Self::Node(index, node_type, fields, inputs) => {
                type Result3 = (Result<GuestOutcome, PluginError>,);
                let run = instance.get_typed_func::<(&str, &str, &str), Result3>(&mut *store, index)?;
                let (result,) = run.call_async(&mut *store, (&node_type, &fields, &inputs)).await?;
                Ok(Returned::Plugin(result.map(|outcome| {
                    let GuestOutcome { outputs, branch, metadata } = outcome;
                    let branch = branch.map(|branch| crate::text::one_line(&branch, MAX_BRANCH));
                    Answer::Outcome(NodeOutcome { outputs, branch, metadata: shown_metadata(&metadata) })
                })))
            }
            Self::Hook(index, point, event) => {
                type Result2 = (Result<GuestVerdict, PluginError>,);
                let on = instance.get_typed_func::<(&str, &str), Result2>(&mut *store, index)?;
                let (result,) = on.call_async(&mut *store, (&point, &event)).await?;
                Ok(Returned::Plugin(result.map(|verdict| {
                    Answer::Verdict(match verdict {
                        GuestVerdict::Proceed => Verdict::Proceed,
                        GuestVerdict::Change(event) => Verdict::Change(event),
                        GuestVerdict::Refuse(failure) => {
                            Verdict::Refuse(crate::text::lines(&failure.message, MAX_REASON))
                        }
                    })
                })))
            }
            Self::Send(index, request) => {
                type Result1 = (Result<GuestReply, PluginError>,);
                let send = instance.get_typed_func::<(GuestRequest,), Result1>(&mut *store, index)?;
                let (result,) = send.call_async(&mut *store, (request,)).await?;
                Ok(Returned::Plugin(result.map(|reply| {
                    Answer::Reply(match reply {
                        GuestReply::Done(json) => ConnectorReply::Done(json),
                        GuestReply::Accepted => ConnectorReply::Accepted,
                    })
                })))
            }
            Self::Receive(index, request, body) => {
                let receive = instance.get_typed_func::<(GuestRequest, &str), (PluginResult,)>(&mut *store, index)?;
                let (result,) = receive.call_async(&mut *store, (request, &body)).await?;
                Ok(Returned::Plugin(result.map(|json| Answer::Reply(ConnectorReply::Done(json)))))
            }
            Self::Command(index) => {
                let run = instance.get_typed_func::<(), (Result<(), ()>,)>(&mut *store, index)?;
                let (result,) = run.call_async(&mut *store, ()).await?;
                Ok(Returned::Code(if result.is_ok() { 0 } else { 1 }))
            }
            Self::Interpreter(index, file_name, source) => {
                let run = instance.get_typed_func::<(&str, &str), (u8,)>(&mut *store, index)?;
                let (code,) = run.call_async(&mut *store, (&file_name, &source)).await?;
                Ok(Returned::Code(i32::from(code)))
            }
        }
    }
}

impl From<Answer> for Gave {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Text(text) => text.into(),
            Answer::Outcome(outcome) => outcome.into(),
            Answer::Verdict(verdict) => verdict.into(),
            Answer::Reply(reply) => reply.into(),
        }
    }
}

/// Facts as they are kept.
pub(super) fn shown_metadata(metadata: &[(String, String)]) -> Vec<(String, String)> {
    let shown =
        |(name, value): &(String, String)| (crate::text::one_line(name, 100), crate::text::one_line(value, 500));
    metadata.iter().take(MAX_METADATA).map(shown).collect()
}
