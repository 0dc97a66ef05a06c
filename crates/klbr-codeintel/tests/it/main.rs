//! What klbr-codeintel promises, against fixtures written by hand and against independent judges.

mod bad_input;
mod edits;
mod index;
mod kinds;
mod random_edits;
mod truth;
