//! The command line of `klbr code`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use klbr_codeintel::{ContentHash, Language, SymbolKind};

#[derive(Debug, Subcommand)]
pub(crate) enum Code {
    /// Show files as trees of what they define
    Outline(Over),
    /// List what files define, or mention
    Symbols(Symbols),
    /// Find where a name is defined
    Defs(Find),
    /// Find where a name is mentioned; by the name, best effort
    Refs(Find),
    /// Change one definition of a file, checked before it is written
    #[command(subcommand)]
    Edit(Edit),
    /// List where files leave their grammar
    Diagnostics(Over),
    /// Write an index of a folder, or bring one up to date
    Index(Index),
    /// Parses what another process asks for, until that one ends
    #[command(hide = true)]
    Worker,
}

/// Which files, and how they are read.
#[derive(Args, Debug)]
pub(crate) struct Over {
    /// Files and folders
    #[arg(default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) read: Read,
}

#[derive(Args, Debug)]
pub(crate) struct Read {
    /// The language of the files named, whatever their names say
    #[arg(long, value_parser = language)]
    pub(crate) language: Option<Language>,
    /// Take in hidden files
    #[arg(long)]
    pub(crate) hidden: bool,
    /// Take in what .gitignore and .ignore files leave out
    #[arg(long)]
    pub(crate) no_ignore: bool,
    /// Follow links
    #[arg(long)]
    pub(crate) follow: bool,
    /// How many threads; one a core when absent
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub(crate) threads: usize,
}

#[derive(Args, Debug)]
pub(crate) struct Symbols {
    #[command(flatten)]
    pub(crate) over: Over,
    /// What is mentioned, instead of what is defined
    #[arg(long, conflicts_with = "all")]
    pub(crate) refs: bool,
    /// Both what is defined and what is mentioned
    #[arg(long)]
    pub(crate) all: bool,
    /// Only these kinds, such as method,field
    #[arg(long, value_delimiter = ',', value_parser = kind)]
    pub(crate) kind: Vec<SymbolKind>,
}

#[derive(Args, Debug)]
pub(crate) struct Find {
    /// A name or the end of a path: read, Reader::read, ::io::Reader::read
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) over: Over,
    /// Only these kinds, such as method,field
    #[arg(long, value_delimiter = ',', value_parser = kind)]
    pub(crate) kind: Vec<SymbolKind>,
    /// How many finds at most
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: usize,
    /// Answer from an index that klbr code index wrote, brought up to date
    #[arg(long, value_name = "FILE")]
    pub(crate) index: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Index {
    /// The folder
    #[arg(default_value = ".")]
    pub(crate) root: PathBuf,
    /// Where the index is kept
    #[arg(long, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Stay, and take in what changes
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) read: Read,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Edit {
    /// Put new text in the place of a definition; an empty text removes it
    ReplaceSymbol {
        #[command(flatten)]
        of: Target,
        #[command(flatten)]
        text: Text,
        /// Replace its decorators, attributes and doc comments too
        #[arg(long)]
        attached: bool,
    },
    /// Put new text in the place of a definition's body
    ReplaceSymbolBody {
        #[command(flatten)]
        of: Target,
        #[command(flatten)]
        text: Text,
    },
    /// Put text on lines of its own before a definition
    InsertBefore {
        #[command(flatten)]
        of: Target,
        #[command(flatten)]
        text: Text,
    },
    /// Put text on lines of its own after a definition
    InsertAfter {
        #[command(flatten)]
        of: Target,
        #[command(flatten)]
        text: Text,
    },
    /// Rename a definition and its mentions within the file
    RenameInFile {
        #[command(flatten)]
        of: Target,
        /// The new name
        name: String,
    },
}

/// What is changed.
#[derive(Args, Debug)]
pub(crate) struct Target {
    /// The file
    pub(crate) file: PathBuf,
    /// The definition: a name or the end of a path that names one alone
    pub(crate) target: String,
    /// The hash of the file that the edit was planned on, as klbr code outline and sha256sum print it
    #[arg(long)]
    pub(crate) hash: ContentHash,
    /// The language, whatever the file's name says
    #[arg(long, value_parser = language)]
    pub(crate) language: Option<Language>,
}

#[derive(Args, Debug)]
pub(crate) struct Text {
    /// The file with the new text; standard input when absent or -
    #[arg(long, value_name = "FILE")]
    pub(crate) text: Option<PathBuf>,
}

fn language(name: &str) -> Result<Language, String> {
    let known = || Language::ALL.iter().map(|language| language.name()).collect::<Vec<_>>().join(", ");
    Language::named(name).map_err(|error| format!("{error}; known: {}", known()))
}

fn kind(name: &str) -> Result<SymbolKind, String> {
    let known = || SymbolKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ");
    SymbolKind::parse(name).ok_or_else(|| format!("kinds are {}", known()))
}
