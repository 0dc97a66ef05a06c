//! What klbr-codeintel promises, against fixtures written by hand and against independent judges.

mod edits;
mod kinds;
mod random_edits;
mod truth;
