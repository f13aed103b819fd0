//! All tests of this crate that go through its public interface, in one program: each further program would be compiled
//! and linked with everything that the crate stands on.

mod agents;
mod attempts;
mod callbacks;
mod calls;
mod clock;
mod common;
mod deadlines;
mod denials;
mod golden;
mod growth;
mod jobs;
mod loops;
mod parts;
mod policies;
mod put_off;
mod redaction;
mod refusals;
mod resume;
mod scheduling;
mod schemas;
mod waiting;
mod working;
