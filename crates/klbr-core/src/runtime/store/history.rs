//! What of an agent's life can be found again, and how well a text fits what is looked for.
//!
//! Every store builds its own index; this module says what goes in and what has to come out, so that the
//! same search finds the same places whatever keeps them.

use std::sync::Arc;

use crate::event::Body;
use crate::ids::EventId;
use crate::record::{CallResult, Delivered, Record};

use super::Memory;

/// The source of what the agent itself said, and of what its calls were answered with.
pub const AGENT: &str = "agent";

/// What one record adds to the searchable history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Who said it: a source's instance name, or [`AGENT`].
    pub source: Arc<str>,
    /// Where it was said, by the channel's id of the place.
    pub conversation: Option<Arc<str>>,
    /// The text, with the author's name in front where there is one.
    pub text: String,
}

/// The passage of a record, if it has one: what people said, the agent's scratch and deliveries, and what its
/// calls were answered with. `body` reads the body of an event that the record admits.
///
/// # Errors
///
/// Fails when `body` does.
pub fn passage<E>(
    record: &Record,
    body: impl FnOnce(EventId) -> Result<Body, E>,
) -> Result<Option<Passage>, E> {
    let own = |text: String| Passage { source: AGENT.into(), conversation: None, text };
    let passage = match record {
        Record::Admitted { event, .. } => {
            let body = body(event.id)?;
            let text = match &body.author {
                Some(author) => format!("{}: {}", author.name, body.text),
                None => body.text.to_string(),
            };
            let conversation = event.conversation.as_ref().map(|place| place.id.clone());
            Passage { source: event.source.instance.clone(), conversation, text }
        }
        Record::StepSampled { message, .. } => own(message.text.to_string()),
        Record::Settled { result, delivered, .. } => own(spoken(delivered.as_ref(), &result.full)),
        Record::Receipt { observation, delivered, .. } => own(spoken(delivered.as_ref(), observation)),
        _ => return Ok(None),
    };
    Ok((!passage.text.trim().is_empty()).then_some(passage))
}

/// The result that a record gives to a call of the model's.
pub fn call_result(record: &Record) -> Option<&CallResult> {
    let result = match record {
        Record::Held { result, .. }
        | Record::Settled { result, .. }
        | Record::Detached { result, .. }
        | Record::WaitEnded { result, .. } => result,
        _ => return None,
    };
    // What an action's own call was answered has no number.
    (result.id > 0).then_some(result)
}

/// A delivery's words, then what its executor told.
fn spoken(delivered: Option<&Delivered>, told: &str) -> String {
    let mut text = String::new();
    if let Some(delivered) = delivered {
        match serde_json::from_str(&delivered.arguments) {
            Ok(arguments) => strings(&arguments, &mut text),
            Err(_) => text.push_str(&delivered.arguments),
        }
        text.push('\n');
    }
    text.push_str(told);
    text
}

fn strings(value: &serde_json::Value, out: &mut String) {
    match value {
        serde_json::Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        serde_json::Value::Object(fields) => fields.values().for_each(|field| strings(field, out)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

/// How a text fits a query, best last. The whole part of a [`Hit::score`](super::Hit::score).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// Some terms stand in it as words.
    Some,
    /// Every term stands in it somewhere, at least as a part of a word.
    Parts,
    /// Every term stands in it as a word.
    Words,
}

impl Fit {
    /// The score of a text that fits so; `weight` orders the texts of one fit, larger is better.
    pub fn score(self, weight: f64) -> f64 {
        let weight = weight.max(0.0);
        f64::from(self as u8) + weight / (1.0 + weight)
    }
}

/// A search's text, taken apart. There is no syntax: what people type is what is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    terms: Vec<String>,
}

impl Query {
    /// Takes a text apart at white space; case, and punctuation around a term, do not count. At most 32 terms
    /// of at most 256 characters are looked for.
    pub fn parse(text: &str) -> Self {
        const TERMS: usize = 32;
        const LONGEST: usize = 256;
        let mut terms: Vec<String> = Vec::new();
        for term in text.split(|c: char| c.is_whitespace() || c == '\0') {
            let term = term.trim_matches(|c: char| !c.is_alphanumeric());
            let term: String = fold(term).chars().take(LONGEST).collect();
            if !term.is_empty() && !terms.contains(&term) && terms.len() < TERMS {
                terms.push(term);
            }
        }
        Query { terms }
    }

    /// What is looked for, in lower case. Empty when the text had nothing to look for.
    pub fn terms(&self) -> &[String] {
        &self.terms
    }

    /// How a text fits, and its score; nothing when it does not.
    pub fn fit(&self, text: &str) -> Option<(Fit, f64)> {
        let text = fold(text);
        let (mut words, mut parts, mut weight) = (0, 0, 0.0);
        for term in &self.terms {
            let (as_word, anywhere) = occurrences(&text, term);
            words += usize::from(as_word > 0);
            parts += usize::from(anywhere > 0);
            weight += f64::from(anywhere) / (1.0 + f64::from(anywhere));
        }
        let fit = if self.terms.is_empty() || (words == 0 && parts < self.terms.len()) {
            return None;
        } else if words == self.terms.len() {
            Fit::Words
        } else if parts == self.terms.len() {
            Fit::Parts
        } else {
            Fit::Some
        };
        Some((fit, fit.score(weight / (1.0 + (text.len() as f64 / 4096.0)))))
    }

    /// The text around the first find, on one line, at most about 240 characters; the beginning when nothing is
    /// found.
    pub fn excerpt(&self, text: &str) -> String {
        const BEFORE: usize = 80;
        const WHOLE: usize = 240;
        let folded = fold(text);
        let found = self.terms.iter().filter_map(|term| folded.find(term.as_str())).min().unwrap_or(0);
        let found = unfold(text, found);
        let start = text[..found].char_indices().rev().take(BEFORE).last().map_or(found, |(start, _)| start);
        let end = text[start..].char_indices().nth(WHOLE).map_or(text.len(), |(end, _)| start + end);
        let mut excerpt = String::with_capacity(end - start + 8);
        if start > 0 {
            excerpt.push('…');
        }
        for (n, word) in text[start..end].split_whitespace().enumerate() {
            if n > 0 {
                excerpt.push(' ');
            }
            excerpt.push_str(word);
        }
        if end < text.len() {
            excerpt.push('…');
        }
        excerpt
    }
}

/// The memories under all of `tags` that fit `text`, best first; with a blank text all of them, newest first.
pub fn fitting(
    memories: impl Iterator<Item = Memory>,
    text: &str,
    tags: &[Arc<str>],
    limit: usize,
) -> Vec<Memory> {
    let query = Query::parse(text);
    let blank = text.trim().is_empty();
    let mut found: Vec<(f64, Memory)> = memories
        .filter(|memory| tags.iter().all(|tag| memory.tags.contains(tag)))
        .filter_map(|memory| {
            let score = if blank { 0.0 } else { query.fit(&memory.text)?.1 };
            Some((score, memory))
        })
        .collect();
    found.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(other.id.cmp(&one.id)));
    found.into_iter().take(limit).map(|(_, memory)| memory).collect()
}

/// Whether a character is written without spaces between words, so that it is a word's boundary by itself.
pub fn is_unspaced(c: char) -> bool {
    matches!(
        c,
        '\u{3040}'..='\u{30FF}'     // kana
            | '\u{31F0}'..='\u{31FF}'
            | '\u{3005}'..='\u{3007}'
            | '\u{3400}'..='\u{4DBF}'   // Han
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{3FFFF}'
            | '\u{AC00}'..='\u{D7AF}'   // Hangul
            | '\u{FF66}'..='\u{FF9F}' // half-width kana
    )
}

fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// The place in `text` of a place in its folded form.
fn unfold(text: &str, folded: usize) -> usize {
    let mut at = 0;
    for (place, c) in text.char_indices() {
        if at >= folded {
            return place;
        }
        at += c.to_lowercase().map(char::len_utf8).sum::<usize>();
    }
    text.len()
}

/// How often a term stands in a text as a word, and anywhere.
fn occurrences(text: &str, term: &str) -> (u32, u32) {
    let (mut words, mut anywhere) = (0, 0);
    let joins = |outside: Option<char>, inside: Option<char>| {
        outside.is_some_and(|c| c.is_alphanumeric() && !is_unspaced(c))
            && inside.is_some_and(|c| !is_unspaced(c))
    };
    for (start, _) in text.match_indices(term) {
        let end = start + term.len();
        anywhere += 1;
        let joined = joins(text[..start].chars().next_back(), term.chars().next())
            || joins(text[end..].chars().next(), term.chars().next_back());
        words += u32::from(!joined);
    }
    (words, anywhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(query: &str, text: &str) -> Option<Fit> {
        Query::parse(query).fit(text).map(|(fit, _)| fit)
    }

    #[test]
    fn words_count_more_than_parts_and_all_more_than_some() {
        assert_eq!(fit("group commit", "the Commit of a GROUP"), Some(Fit::Words));
        assert_eq!(fit("group commit", "groups of commits"), Some(Fit::Parts));
        assert_eq!(fit("group commit", "one commit"), Some(Fit::Some));
        assert_eq!(fit("group commit", "regrouped"), None);
        assert_eq!(fit("東京", "明日は東京都へ行く"), Some(Fit::Words));
        assert_eq!(fit("读取", "请读取文件"), Some(Fit::Words));
        assert_eq!(fit("poll_next", "calls `self.poll_next()` twice"), Some(Fit::Words));
        assert_eq!(fit("\"\" -- * ()", "anything"), None);
        assert!(Query::parse("a b").fit("a b b b").unwrap().1 > Query::parse("a b").fit("a b").unwrap().1);
    }

    #[test]
    fn an_excerpt_is_one_line_around_the_find() {
        let text = format!("{}\n\nthe İstanbul NEEDLE is here\t{}", "é ".repeat(500), "z ".repeat(500));
        let excerpt = Query::parse("needle").excerpt(&text);
        assert!(excerpt.contains("the İstanbul NEEDLE is here z"), "{excerpt}");
        assert!(excerpt.starts_with('…') && excerpt.ends_with('…') && excerpt.chars().count() < 250);
        assert_eq!(Query::parse("absent").excerpt("short"), "short");
        assert_eq!(Query::parse("x").excerpt(""), "");
    }
}
