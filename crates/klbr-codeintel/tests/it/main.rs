//! What klbr-codeintel promises, against fixtures written by hand and against independent judges.

mod truth;
