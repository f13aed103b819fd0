//! No code: the features of third-party crates that all of hotcell is built with, so that no selection of packages
//! compiles one of them a second time. `.ci/features` writes the list and checks it.
