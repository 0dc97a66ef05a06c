//! Edits of symbols (B-CODE-3): what is changed, what is refused, what a file keeps.

mod files;
mod plans;
