//! The effort levels that a model offers, and what each sends: the core's rules, for models by name.
//!
//! Owns what is configured of them. Refuses to know a model by its name: what one offers is configured, and
//! narrowed by what its server refuses.

use std::collections::BTreeMap;

pub use klbr_core::context::levels::{
    Control, DEFAULT, EffortStyle, FALLBACK, Fields, Levels, Metadata, OFF, TemplateKwargs, levels, request,
};

/// What is known of the efforts of each model, by its name at the server.
pub type Catalogue = BTreeMap<String, Metadata>;
