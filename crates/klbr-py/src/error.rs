//! What can go wrong, as the exceptions of `klbr.errors`. Owns the sorting; the words are those of the crates below.

use std::error::Error;

use klbr_codeintel::{EditError, ExtractError, IndexError, LanguageError, NamePathError};
use klbr_core::ids::IdError;
use klbr_core::runtime::store::StoreError;
use klbr_core::runtime::{AdmitError, RunError, StartError, Stopped};
use klbr_llm::ConfigError;
use klbr_store::OpenError;
use pyo3::PyErr;

/// The classes, as `klbr.errors` defines them.
mod raised {
    pyo3::import_exception!(klbr.errors, AdmitError);
    pyo3::import_exception!(klbr.errors, CodeError);
    pyo3::import_exception!(klbr.errors, ConfigError);
    pyo3::import_exception!(klbr.errors, EditError);
    pyo3::import_exception!(klbr.errors, ForkError);
    pyo3::import_exception!(klbr.errors, KlbrError);
    pyo3::import_exception!(klbr.errors, StoppedError);
    pyo3::import_exception!(klbr.errors, StoreError);
}

/// Something that is raised in Python. Made without the interpreter's lock.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A setting or an argument cannot be used.
    Config(String),
    /// A store cannot be opened or read.
    Store(String),
    /// An event was not admitted.
    Admit(String),
    /// The agent has stopped.
    Stopped(String),
    /// A text gives no symbols, or a name is none.
    Code(String),
    /// An edit is refused.
    Edit(String),
    /// The process is a fork.
    Fork(String),
    /// A fault of this package, or of the machine.
    Internal(String),
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Config(text) => raised::ConfigError::new_err(text),
            Fault::Store(text) => raised::StoreError::new_err(text),
            Fault::Admit(text) => raised::AdmitError::new_err(text),
            Fault::Stopped(text) => raised::StoppedError::new_err(text),
            Fault::Code(text) => raised::CodeError::new_err(text),
            Fault::Edit(text) => raised::EditError::new_err(text),
            Fault::Fork(text) => raised::ForkError::new_err(text),
            Fault::Internal(text) => raised::KlbrError::new_err(text),
        }
    }
}

/// An error with its causes, each said once.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

macro_rules! sorted {
    ($($error:ty => $fault:ident),* $(,)?) => {
        $(impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                Fault::$fault(chain(&error))
            }
        })*
    };
}

sorted! {
    ConfigError => Config,
    EditError => Edit,
    ExtractError => Code,
    IdError => Config,
    IndexError => Code,
    LanguageError => Code,
    NamePathError => Code,
    OpenError => Store,
    RunError => Store,
    Stopped => Stopped,
    StoreError => Store,
}

impl From<AdmitError> for Fault {
    fn from(error: AdmitError) -> Self {
        match error {
            AdmitError::Invalid(_) => Fault::Admit(chain(&error)),
            AdmitError::Store(_) => Fault::Store(chain(&error)),
            AdmitError::Stopped => Fault::Stopped(chain(&error)),
        }
    }
}

impl From<StartError> for Fault {
    fn from(error: StartError) -> Self {
        match error {
            StartError::DuplicateAction(_) | StartError::DuplicateChannel(_) => Fault::Config(chain(&error)),
            StartError::Run(error) => error.into(),
        }
    }
}
