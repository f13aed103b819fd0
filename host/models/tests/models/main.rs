//! Models over real HTTP on loopback, and recordings of them.

mod bedrock;
mod compatible;
mod dialects;
mod elsewhere;
mod recordings;
mod responses;
mod support;
