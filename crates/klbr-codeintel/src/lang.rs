//! One module per way of telling symbols: Rust and Python by hand, the other languages by table.

pub(crate) mod python;
pub(crate) mod rust;
#[cfg(feature = "_table")]
pub(crate) mod table;

/// Maps each kind id of a grammar to what `of` makes of its name and of whether it is named.
pub(crate) fn kinds<K>(language: &tree_sitter::Language, of: impl Fn(&str, bool) -> K) -> Box<[K]> {
    (0..language.node_kind_count() as u16)
        .map(|id| of(language.node_kind_for_id(id).unwrap_or_default(), language.node_kind_is_named(id)))
        .collect()
}

pub(crate) fn field(language: &tree_sitter::Language, name: &str) -> u16 {
    language.field_id_for_name(name).map_or(0, |field| field.get())
}

/// Joins the words of a piece of source into one line.
pub(crate) fn one_line(source: &[u8]) -> String {
    let mut line = String::with_capacity(source.len());
    for word in String::from_utf8_lossy(source).split_ascii_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}
