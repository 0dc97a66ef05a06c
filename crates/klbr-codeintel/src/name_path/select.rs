//! What a caller asks for: a name, the end of a path, or a whole path. Forgiving in what it matches, never in which.

use super::{NamePath, NamePathError};

/// A question for symbols: `read`, `Reader::read`, `Reader.read`, or from the file's top `::Reader::read`.
///
/// It matches each path that ends with it; from the top, a path that equals it goes before others that match. A type's name matches the impls of that type, `type` matches `r#type`, a
/// qualifier or ordinal matches only itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    path: NamePath,
    anchored: bool,
}

impl Selector {
    /// Reads a question.
    ///
    /// # Errors
    /// [`NamePathError`] where the text is no path.
    pub fn parse(text: &str) -> Result<Self, NamePathError> {
        let text = text.trim();
        let (rest, anchored) = match text.strip_prefix("::") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        match NamePath::parse(rest) {
            Ok(path) => Ok(Selector { path, anchored }),
            Err(error) => Err(NamePathError { at: error.at + text.len() - rest.len(), ..error }),
        }
    }

    /// The question that only this path answers.
    pub fn exactly(path: NamePath) -> Self {
        Selector { path, anchored: true }
    }

    /// The last name asked for.
    pub fn name(&self) -> &str {
        self.path.name()
    }

    /// Whether `path` is the very one asked for from the file's top; such an answer leaves no doubt.
    pub fn is_exactly(&self, path: &NamePath) -> bool {
        self.anchored && self.path == *path
    }

    /// Whether `path` answers.
    pub fn matches(&self, path: &NamePath) -> bool {
        let (wanted, given) = (self.path.segments(), path.segments());
        let Some(skip) = given.len().checked_sub(wanted.len()) else { return false };
        if (self.anchored && skip > 0)
            || self.path.ordinal.is_some_and(|ordinal| path.ordinal != Some(ordinal))
        {
            return false;
        }
        let last = wanted.len() - 1;
        wanted.iter().zip(&given[skip..]).enumerate().all(|(index, (wanted, given))| {
            let name = same_name(&wanted.name, &given.name)
                || (index < last && impl_type(&given.name).is_some_and(|name| same_name(&wanted.name, name)));
            name && (wanted.qualifier.is_none() || wanted.qualifier == given.qualifier)
        })
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.anchored { "::" } else { "" }, self.path)
    }
}

pub(crate) fn same_name(wanted: &str, given: &str) -> bool {
    wanted == given || given.strip_prefix("r#") == Some(wanted)
}

/// The type's bare name in an impl's heading: `S` for `impl From<a::B<u8>> for m::S<u16>`.
fn impl_type(heading: &str) -> Option<&str> {
    let rest = heading.strip_prefix("impl ")?;
    let (mut depth, mut start) = (0i32, 0);
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' | b')' | b']' if at == 0 || rest.as_bytes()[at - 1] != b'-' => depth -= 1,
            b' ' if depth == 0 && rest[at..].starts_with(" for ") => start = at + 5,
            _ => {}
        }
    }
    let mut kind = &rest[start..];
    loop {
        kind = kind.trim_start_matches(['&', '*', ' ']);
        match kind.split_once(' ') {
            Some((word, after)) if matches!(word, "mut" | "const" | "dyn") || word.starts_with('\'') => {
                kind = after
            }
            _ => break,
        }
    }
    let end = kind.find(['<', ' ', '(']).unwrap_or(kind.len());
    Some(kind[..end].rsplit("::").next().unwrap_or(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(question: &str, path: &str) -> bool {
        Selector::parse(question).unwrap().matches(&NamePath::parse(path).unwrap())
    }

    #[test]
    fn names_suffixes_and_whole_paths_match() {
        assert!(matches("read", "io::Reader::read"));
        assert!(matches("Reader.read", "io::Reader::read"));
        assert!(matches("::io::Reader::read", "io::Reader::read"));
        assert!(!matches("::read", "io::Reader::read"));
        assert!(!matches("a::b::read", "b::read"));
        assert!(matches("type", "r#type"));
    }

    #[test]
    fn a_types_name_matches_its_impls_but_not_the_impl_itself() {
        assert!(matches("S::from", "`impl From<io::Error> for m::S<u8>`::from"));
        assert!(matches("S::new", "impl S<u8>::new"));
        assert!(!matches("S", "impl S"));
        assert!(!matches("From::from", "impl From<u8> for S::from"));
        assert_eq!(impl_type("impl Fn(u8) -> S for &'a mut dyn T"), Some("T"));
    }

    #[test]
    fn qualifiers_and_ordinals_match_only_themselves() {
        assert!(matches("f", "f[cfg(unix)]"));
        assert!(!matches("f[cfg(windows)]", "f[cfg(unix)]"));
        assert!(matches("f#2@0000000a", "m::f#2@0000000a"));
        assert!(!matches("f#2@0000000b", "m::f#2@0000000a"));
    }
}
