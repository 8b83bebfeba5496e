//! libtarsia_cusparse.so in front of a library that stands in for cuSPARSE: in every order in which programs load them
//! a call reaches the stand-in as it does without the drop-in. Each program runs in a process of its own.

mod exports;
mod forwarding;
mod messages;
mod products;
mod world;
