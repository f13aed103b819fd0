//! Answers of a person: every option leads somewhere.

use std::collections::HashSet;

use super::super::schema::Body;
use super::Check;

pub(super) fn approvals(check: &Check<'_>) {
    for node in check.nodes() {
        let Body::Approval(approval) = &node.body else { continue };
        let id = &*node.id.value;
        // Answers are compared after white space around them is removed.
        let options: HashSet<&str> = approval.options.iter().map(|option| option.trim()).collect();
        let answers: HashSet<&str> = approval.routes.iter().map(|route| &*route.answer.value).collect();
        for option in approval.options.iter().filter(|option| !answers.contains(option.trim())) {
            let message = format!("the option `{}` of node `{id}` has no entry in `routes`", &**option);
            let help = format!("add `\"{}\": <node>` to `routes`", option.trim());
            check.reader.report(check.error(node, message, &option.span).help(help));
        }
        for route in &approval.routes {
            let answer = &*route.answer.value;
            let (message, help) = if answer.trim() != answer {
                let message = format!("no answer can take the route `{answer}`");
                (message, "white space around an answer is removed: write the key without it")
            } else if !options.contains(answer) {
                let message = format!("the route `{answer}` of node `{id}` is not offered");
                (message, "add it to `options`; typing it works all the same")
            } else {
                continue;
            };
            check.reader.report(check.warning(node, message, &route.answer.span).help(help));
        }
    }
}
