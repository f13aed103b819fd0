//! What every store promises, held against all of them, and what is about the file alone.

mod calls;
mod checkpoints;
mod damage;
mod file;
mod forks;
mod layouts;
mod promises;
mod races;
mod revisions;
mod support;
