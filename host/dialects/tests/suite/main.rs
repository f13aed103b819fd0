//! All tests of this crate that go through its public interface, in one program: each further program would be compiled
//! and linked with everything that the crate stands on.

mod agent_spec;
mod agent_spec_export;
mod agent_spec_export_runs;
mod agent_spec_pyagentspec;
mod configurations;
mod exporting;
mod leafmesh;
mod leafmesh_fields;
mod leafmesh_runs;
mod lowered;
mod playing;
mod properties;
mod refused;
mod sherma;
mod shown;
mod surroundings;
