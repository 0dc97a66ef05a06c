//! The table of languages: names, file endings, interpreters, and which are built in.

use serde::{Deserialize, Serialize};
use std::path::Path;

macro_rules! languages {
    ($($variant:ident $name:literal [$($alias:literal)*] [$($ending:literal)*] [$($file:literal)*] $(@ $feature:literal)? => $grammar:expr;)*) => {
        /// A language that can be parsed in this build.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        #[non_exhaustive]
        pub enum Language {
            $(#[doc = $name] $(#[cfg(feature = $feature)])? $variant,)*
        }

        impl Language {
            /// The languages of this build.
            pub const ALL: &[Language] = &[$($(#[cfg(feature = $feature)])? Language::$variant),*];

            /// The name on the wire: `rust`, `python`, `typescript`, ….
            pub const fn name(self) -> &'static str {
                match self { $($(#[cfg(feature = $feature)])? Language::$variant => $name),* }
            }

            pub(crate) fn grammar(self) -> tree_sitter::Language {
                match self { $($(#[cfg(feature = $feature)])? Language::$variant => $grammar.into()),* }
            }
        }

        /// Every language of the table, built in or not: name, aliases, endings, file names, where it is.
        const TABLE: &[Row] = &[$(Row {
            name: $name,
            aliases: &[$($alias),*],
            endings: &[$($ending),*],
            files: &[$($file),*],
            built: {
                #[allow(unused_mut, unused_assignments, reason = "whether the language is built in depends on features")]
                let mut built = None;
                $(#[cfg(feature = $feature)])? { built = Some(Language::$variant); }
                built
            },
        }),*];
    };
}

struct Row {
    name: &'static str,
    aliases: &'static [&'static str],
    endings: &'static [&'static str],
    files: &'static [&'static str],
    built: Option<Language>,
}

languages! {
    Rust "rust" ["rs"] ["rs"] [] => tree_sitter_rust::LANGUAGE;
    Python "python" ["py" "python3" "pypy3"] ["py" "pyi" "pyw"] ["SConstruct" "wscript"] => tree_sitter_python::LANGUAGE;
    JavaScript "javascript" ["js" "jsx" "node"] ["js" "jsx" "mjs" "cjs"] [] @ "javascript" => tree_sitter_javascript::LANGUAGE;
    TypeScript "typescript" ["ts" "deno"] ["ts" "mts" "cts"] [] @ "typescript" => tree_sitter_typescript::LANGUAGE_TYPESCRIPT;
    Tsx "tsx" [] ["tsx"] [] @ "typescript" => tree_sitter_typescript::LANGUAGE_TSX;
    Go "go" ["golang"] ["go"] [] @ "go" => tree_sitter_go::LANGUAGE;
    C "c" [] ["c" "h"] [] @ "c" => tree_sitter_c::LANGUAGE;
    Cpp "cpp" ["c++"] ["cc" "cpp" "cxx" "hh" "hpp" "hxx"] [] @ "cpp" => tree_sitter_cpp::LANGUAGE;
    Java "java" [] ["java"] [] @ "java" => tree_sitter_java::LANGUAGE;
    Bash "bash" ["sh" "shell" "dash"] ["sh" "bash"] [".bashrc" ".bash_profile" ".profile"] @ "bash" => tree_sitter_bash::LANGUAGE;
    Json "json" [] ["json"] [] @ "json" => tree_sitter_json::LANGUAGE;
    Toml "toml" [] ["toml"] ["Cargo.lock"] @ "toml" => tree_sitter_toml_ng::LANGUAGE;
    Yaml "yaml" ["yml"] ["yaml" "yml"] [] @ "yaml" => tree_sitter_yaml::LANGUAGE;
    Markdown "markdown" ["md"] ["md" "markdown"] [] @ "markdown" => tree_sitter_md::LANGUAGE;
}

/// How a language was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LanguageSource {
    /// The caller named it.
    Given,
    /// By the file's name or ending.
    Path,
    /// By the interpreter in the first line.
    Shebang,
}

/// A language and how it was settled (K14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedLanguage {
    /// The language.
    pub name: Language,
    /// What settled it.
    pub by: LanguageSource,
}

/// No language could be settled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LanguageError {
    /// The name is in no table.
    #[error("unknown language {0:?}")]
    Unknown(String),
    /// The language is known, but this build leaves it out.
    #[error("language {0} is not built in")]
    NotBuilt(&'static str),
    /// Neither a name nor a path nor a first line tells.
    #[error("neither the file's name nor its first line tells the language")]
    Undetermined,
}

impl Language {
    /// The language of that name or alias, in any case.
    ///
    /// # Errors
    /// [`LanguageError::Unknown`] and [`LanguageError::NotBuilt`].
    pub fn named(name: &str) -> Result<Language, LanguageError> {
        let wanted = name.trim().to_ascii_lowercase();
        let row = TABLE.iter().find(|row| row.name == wanted || row.aliases.contains(&wanted.as_str()));
        row.ok_or_else(|| LanguageError::Unknown(name.to_owned()))?.built()
    }

    /// The language that the path's name tells.
    ///
    /// # Errors
    /// [`LanguageError::Undetermined`] and [`LanguageError::NotBuilt`].
    pub fn of_path(path: &Path) -> Result<Language, LanguageError> {
        let name = path.file_name().and_then(|name| name.to_str()).ok_or(LanguageError::Undetermined)?;
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let known = |row: &&Row| {
            row.files.contains(&name) || ending.as_deref().is_some_and(|ending| row.endings.contains(&ending))
        };
        TABLE.iter().find(known).ok_or(LanguageError::Undetermined)?.built()
    }

    fn of_shebang(source: &[u8]) -> Result<Language, LanguageError> {
        let line = source.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let command = line.strip_prefix(b"#!").ok_or(LanguageError::Undetermined)?;
        let command = String::from_utf8_lossy(command.get(..command.len().min(256)).unwrap_or(command));
        let mut words = command.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
        let program = words.find(|word| *word != "env" && !word.starts_with('-') && !word.contains('='));
        let program = program
            .unwrap_or_default()
            .trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        Language::named(program).map_err(|error| match error {
            LanguageError::NotBuilt(_) => error,
            _ => LanguageError::Undetermined,
        })
    }
}

impl Row {
    fn built(&self) -> Result<Language, LanguageError> {
        self.built.ok_or(LanguageError::NotBuilt(self.name))
    }
}

impl std::fmt::Display for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl ResolvedLanguage {
    /// Settles the language of a text: the given name, else the path, else the first line's interpreter.
    ///
    /// # Errors
    /// As [`Language::named`] and [`Language::of_path`].
    pub fn resolve(path: Option<&Path>, source: &[u8], given: Option<&str>) -> Result<Self, LanguageError> {
        if let Some(given) = given {
            return Ok(ResolvedLanguage { name: Language::named(given)?, by: LanguageSource::Given });
        }
        match path.map(Language::of_path) {
            Some(Ok(name)) => Ok(ResolvedLanguage { name, by: LanguageSource::Path }),
            Some(Err(error @ LanguageError::NotBuilt(_))) => Err(error),
            _ => Ok(ResolvedLanguage { name: Language::of_shebang(source)?, by: LanguageSource::Shebang }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(
        path: Option<&str>,
        source: &str,
        given: Option<&str>,
    ) -> Result<ResolvedLanguage, LanguageError> {
        ResolvedLanguage::resolve(path.map(Path::new), source.as_bytes(), given)
    }

    #[test]
    fn a_language_is_settled_by_name_then_path_then_first_line() {
        assert_eq!(resolve(Some("x.py"), "", Some("RS")).unwrap().name, Language::Rust);
        assert_eq!(resolve(Some("x.PY"), "", None).unwrap().by, LanguageSource::Path);
        let found = resolve(Some("tool"), "#!/usr/bin/env -S python3.12 -u\n", None).unwrap();
        assert_eq!((found.name, found.by), (Language::Python, LanguageSource::Shebang));
        assert_eq!(resolve(Some("x.txt"), "words", None), Err(LanguageError::Undetermined));
        assert_eq!(resolve(None, "", Some("cobol")), Err(LanguageError::Unknown("cobol".into())));
    }
}
