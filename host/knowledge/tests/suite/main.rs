//! Building and asking knowledge bases, with models that are made up.

mod build;
mod fakes;
mod inputs;
mod remote;
mod search;
