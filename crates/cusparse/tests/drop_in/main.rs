//! Tests of libtarsia_cusparse.so, the drop-in, in front of a stand-in library for cuSPARSE: in whatever
//! order programs load the two, calls reach the stand-in as they do without the drop-in. Each program runs in
//! a process of its own.

mod exports;
mod forwarding;
mod messages;
mod products;
mod world;
