//! The loop of an agent that is the work of one node: its model is asked about a text.

use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{
    CallAction, CallTarget, Callable, Expression, LoopAnswer, LoopLimits, ModelSettings, PromptPart, RequestCap, Said,
};

/// A loop that begins with instructions, if there are any, and one text of a user.
pub(super) struct TextLoop<'g> {
    pub(super) settings: &'g ModelSettings,
    pub(super) instructions: Option<&'g Expression>,
    pub(super) prompt: &'g Expression,
    pub(super) tools: &'g [Callable],
    pub(super) is_structured: bool,
    pub(super) attempts: u32,
    pub(super) cap: Option<&'g RequestCap>,
    pub(super) bind: &'static str,
}

impl<'g> TextLoop<'g> {
    /// The loop that a node calls, if it is one.
    pub(super) fn of(call: &'g CallAction) -> Option<Self> {
        let CallTarget::Loop(steps) = &call.target else { return None };
        let agent = &steps.agent;
        // What it gives beside a text, and what ends it by itself, no agent of the specification has.
        if agent.answer != LoopAnswer::Text || agent.until.is_some() || agent.limits != LoopLimits::default() {
            return None;
        }
        let is_structured = call.contract.is_some();
        let text = |part: &'g PromptPart, wanted: Speaker| match &part.said {
            Said::Text(speaker, text) if *speaker == wanted => Some(written(text, is_structured)),
            _ => None,
        };
        // What was said in the loop comes last.
        let (instructions, prompt) = match &agent.prompt[..] {
            [instructions, prompt, _said] => {
                (Some(text(instructions, Speaker::System)?), text(prompt, Speaker::Human)?)
            }
            [prompt, _said] => (None, text(prompt, Speaker::Human)?),
            _ => return None,
        };
        Some(TextLoop {
            settings: &agent.settings,
            instructions,
            prompt,
            tools: &agent.tools,
            is_structured,
            attempts: agent.retry.attempts,
            cap: agent.cap.as_ref(),
            bind: call.bind,
        })
    }
}

/// What somebody wrote, without the schema behind it that the model is told.
fn written(text: &Expression, is_structured: bool) -> &Expression {
    match text {
        Expression::Joined(parts) if is_structured => parts.first().unwrap_or(text),
        _ => text,
    }
}
