//! Reasoning that a model writes into its text, between `<think>` tags or their kin.
//!
//! Owns the tags, wherever a chunk cuts them. Refuses attributes and nesting: the first closing tag of the
//! opened name ends the reasoning.

const NAMES: [&str; 3] = ["think", "thinking", "reasoning"];

/// A piece of a text, told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What the model says.
    Text(String),
    /// What it thinks.
    Think(String),
    /// A closing tag that nothing opened: all the text before it was reasoning (the chat template had
    /// opened the tag in the prompt).
    WasThink,
}

/// Splits text from inline reasoning. Any split of the same text gives the same result.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// The start of what may become a tag.
    held: String,
    /// The name of the open tag.
    open: Option<&'static str>,
    /// Whether a tag has been seen at all.
    tagged: bool,
    /// Whether blank space is dropped, because a closing tag has just ended.
    after_close: bool,
}

impl Splitter {
    /// Takes more text and gives what is settled, in order.
    pub(super) fn handle(&mut self, text: &str) -> Vec<Part> {
        self.held.push_str(text);
        let mut parts = Vec::new();
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_str();
        while let Some(at) = rest.find('<') {
            match self.tag_at(&rest[at..]) {
                Tag::Whole { length, name } => {
                    self.emit(&rest[..at], &mut parts);
                    self.handle_tag(name, &mut parts);
                    rest = &rest[at + length..];
                }
                Tag::Perhaps => {
                    self.emit(&rest[..at], &mut parts);
                    rest[at..].clone_into(&mut self.held);
                    return parts;
                }
                Tag::No => {
                    self.emit(&rest[..=at], &mut parts);
                    rest = &rest[at + 1..];
                }
            }
        }
        self.emit(rest, &mut parts);
        parts
    }

    /// Takes the end of the text: what might have become a tag is text after all.
    pub(super) fn handle_end(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        let held = std::mem::take(&mut self.held);
        self.emit(&held, &mut parts);
        parts
    }

    /// Looks for the tag that matters now: the closing one of an open name, else any.
    fn tag_at(&self, text: &str) -> Tag {
        let mut perhaps = false;
        for name in NAMES {
            let (opens, closes) = match self.open {
                Some(open) => (false, open == name),
                None => (true, !self.tagged),
            };
            for (wanted, slash) in [(opens, ""), (closes, "/")] {
                if !wanted {
                    continue;
                }
                let tag = format!("<{slash}{name}>");
                let shared = text.len().min(tag.len());
                if !text.as_bytes()[..shared].eq_ignore_ascii_case(&tag.as_bytes()[..shared]) {
                    continue;
                }
                if shared == tag.len() {
                    return Tag::Whole { length: shared, name: (slash.is_empty()).then_some(name) };
                }
                perhaps = true;
            }
        }
        if perhaps { Tag::Perhaps } else { Tag::No }
    }

    fn handle_tag(&mut self, opened: Option<&'static str>, parts: &mut Vec<Part>) {
        let stray = opened.is_none() && self.open.is_none();
        if stray {
            parts.push(Part::WasThink);
        }
        self.open = opened;
        self.tagged = true;
        self.after_close = opened.is_none();
    }

    fn emit(&mut self, text: &str, parts: &mut Vec<Part>) {
        let text = if self.after_close { text.trim_start() } else { text };
        if text.is_empty() {
            return;
        }
        self.after_close = false;
        match (parts.last_mut(), self.open.is_some()) {
            (Some(Part::Think(last)), true) | (Some(Part::Text(last)), false) => last.push_str(text),
            (_, true) => parts.push(Part::Think(text.to_owned())),
            (_, false) => parts.push(Part::Text(text.to_owned())),
        }
    }
}

enum Tag {
    /// `name` is that of an opening tag; a closing one has none.
    Whole {
        length: usize,
        name: Option<&'static str>,
    },
    Perhaps,
    No,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, String) {
        let (mut text, mut think) = (String::new(), String::new());
        let mut splitter = Splitter::default();
        let mut parts: Vec<_> = pieces.into_iter().flat_map(|piece| splitter.handle(piece)).collect();
        parts.extend(splitter.handle_end());
        for part in parts {
            match part {
                Part::Text(part) => text.push_str(&part),
                Part::Think(part) => think.push_str(&part),
                Part::WasThink => think.push_str(&std::mem::take(&mut text)),
            }
        }
        (text, think)
    }

    #[track_caller]
    fn check(source: &str, text: &str, think: &str) {
        let expected = (text.to_owned(), think.to_owned());
        assert_eq!(split([source]), expected, "whole");
        for at in source.char_indices().map(|(at, _)| at) {
            assert_eq!(split([&source[..at], &source[at..]]), expected, "cut at {at}");
        }
        let mut single = [0; 4];
        let singles: Vec<String> =
            source.chars().map(|char| char.encode_utf8(&mut single).to_owned()).collect();
        assert_eq!(split(singles.iter().map(String::as_str)), expected, "character by character");
    }

    #[test]
    fn the_three_tags_are_reasoning() {
        check("<think>a</think>b", "b", "a");
        check("<thinking>a</thinking>\n\nb", "b", "a");
        check("x <reasoning>a</reasoning> b", "x b", "a");
        check("<Think>ä</THINK>ö", "ö", "ä");
    }

    #[test]
    fn what_only_resembles_a_tag_is_text() {
        check("a < b <thin> <thinker> </p> <", "a < b <thin> <thinker> </p> <", "");
        check("<think>1 < 2 </thinking> </think>2", "2", "1 < 2 </thinking> ");
    }

    #[test]
    fn an_unclosed_tag_holds_to_the_end() {
        check("<think>never done </thi", "", "never done </thi");
    }

    #[test]
    fn a_closing_tag_that_nothing_opened_makes_reasoning_of_what_came_before() {
        check("plan\n</think>\nanswer", "answer", "plan\n");
        check("<think>a</think>b</think>c", "b</think>c", "a");
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same(
            pieces in proptest::collection::vec("(<|>|/|think|thinking|reasoning|</think>|<think>|\\PC| ){0,4}", 0..8),
        ) {
            let whole = pieces.concat();
            prop_assert_eq!(split(pieces.iter().map(String::as_str)), split([whole.as_str()]));
        }
    }
}
