//! The server over real HTTP on a loopback port.

mod access;
mod agents;
mod bad_input;
mod desk;
mod langgraph;
mod limits;
mod mesh;
mod mesh_time;
mod openapi;
mod people;
mod restart;
mod runs;
mod streams;
mod threads;
