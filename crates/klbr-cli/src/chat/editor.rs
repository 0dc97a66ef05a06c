//! The line that is being written: pure text and a cursor, in graphemes as people count them.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use crate::text::{clean, width};

/// How many messages are remembered for the arrow keys.
const MEMORY: usize = 200;

/// What is being written.
#[derive(Debug, Default)]
pub(super) struct Editor {
    text: String,
    cursor: usize,
    past: Vec<String>,
    /// Where in the past one looks, and what was being written before.
    browsing: Option<(usize, String)>,
}

impl Editor {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds text at the cursor; what a terminal would obey is kept out.
    pub(super) fn insert(&mut self, text: &str) {
        let text = clean(text);
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
        self.browsing = None;
    }

    pub(super) fn backspace(&mut self) {
        let before = self.left_of();
        self.text.replace_range(before..self.cursor, "");
        self.cursor = before;
    }

    pub(super) fn delete(&mut self) {
        let after = self.right_of();
        self.text.replace_range(self.cursor..after, "");
    }

    /// Takes the word before the cursor away.
    pub(super) fn delete_word(&mut self) {
        let before = self.word_left();
        self.text.replace_range(before..self.cursor, "");
        self.cursor = before;
    }

    /// Takes everything before the cursor away.
    pub(super) fn delete_to_start(&mut self) {
        self.text.replace_range(..self.cursor, "");
        self.cursor = 0;
    }

    pub(super) fn left(&mut self) {
        self.cursor = self.left_of();
    }

    pub(super) fn right(&mut self) {
        self.cursor = self.right_of();
    }

    pub(super) fn jump_word_left(&mut self) {
        self.cursor = self.word_left();
    }

    pub(super) fn jump_word_right(&mut self) {
        let rest = &self.text[self.cursor..];
        let next = rest.unicode_word_indices().map(|(at, word)| at + word.len()).next();
        self.cursor += next.unwrap_or(rest.len());
    }

    pub(super) fn home(&mut self) {
        self.cursor = 0;
    }

    pub(super) fn end(&mut self) {
        self.cursor = self.text.len();
    }

    /// An earlier message, or a later one.
    pub(super) fn browse(&mut self, back: bool) {
        let here = self.browsing.as_ref().map_or(self.past.len(), |(at, _)| *at);
        let there = if back { here.checked_sub(1) } else { Some(here + 1) };
        let Some(there) = there.filter(|at| *at <= self.past.len()) else { return };
        let draft = match self.browsing.take() {
            Some((_, draft)) => draft,
            None => std::mem::take(&mut self.text),
        };
        if let Some(past) = self.past.get(there) {
            self.text = past.clone();
            self.browsing = Some((there, draft));
        } else {
            self.text = draft;
        }
        self.end();
    }

    /// Takes what was written, unless it is blank.
    pub(super) fn take(&mut self) -> Option<String> {
        self.browsing = None;
        self.cursor = 0;
        let text = std::mem::take(&mut self.text);
        if text.trim().is_empty() {
            return None;
        }
        if self.past.last() != Some(&text) {
            self.past.push(text.clone());
            if self.past.len() > MEMORY {
                self.past.remove(0);
            }
        }
        Some(text)
    }

    /// The rows in so many columns, and where the cursor stands: column and row.
    pub(super) fn rows(&self, columns: usize) -> (Vec<String>, (usize, usize)) {
        // A full row leaves no place for the cursor behind it.
        let columns = columns.max(2) - 1;
        let (mut rows, mut used, mut place) = (vec![String::new()], 0, (0, 0));
        let mut at = 0;
        for grapheme in self.text.graphemes(true) {
            let size = width(grapheme);
            if grapheme != "\n" && used + size > columns {
                rows.push(String::new());
                used = 0;
            }
            if at == self.cursor {
                place = (used, rows.len() - 1);
            }
            at += grapheme.len();
            if grapheme == "\n" {
                rows.push(String::new());
                used = 0;
            } else {
                rows.last_mut().expect("there is a first row").push_str(grapheme);
                used += size;
            }
        }
        if at == self.cursor {
            place = (used, rows.len() - 1);
        }
        (rows, place)
    }

    fn left_of(&self) -> usize {
        let before = GraphemeCursor::new(self.cursor, self.text.len(), true).prev_boundary(&self.text, 0);
        before.ok().flatten().unwrap_or(0)
    }

    fn right_of(&self) -> usize {
        let after = GraphemeCursor::new(self.cursor, self.text.len(), true).next_boundary(&self.text, 0);
        after.ok().flatten().unwrap_or(self.text.len())
    }

    fn word_left(&self) -> usize {
        self.text[..self.cursor].unicode_word_indices().next_back().map_or(0, |(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(editor: &Editor, columns: usize) -> String {
        let (rows, (column, row)) = editor.rows(columns);
        format!("{} @{column},{row}", rows.join("/"))
    }

    #[test]
    fn a_cursor_moves_over_whole_characters() {
        let mut editor = Editor::default();
        editor.insert("a👩\u{200d}💻é");
        editor.left();
        editor.left();
        editor.insert("日");
        assert_eq!(shown(&editor, 20), "a日👩\u{200d}💻é @3,0");
        editor.delete();
        editor.backspace();
        assert_eq!(shown(&editor, 20), "aé @1,0");
    }

    #[test]
    fn long_lines_wrap_and_the_cursor_stays_inside() {
        let mut editor = Editor::default();
        editor.insert("日本語x\ny");
        assert_eq!(shown(&editor, 5), "日本/語x/y @1,2");
        editor.home();
        assert_eq!(shown(&editor, 5), "日本/語x/y @0,0");
    }

    #[test]
    fn words_are_removed_and_pasted_escapes_are_shown() {
        let mut editor = Editor::default();
        editor.insert("one two\x1b[2J");
        assert_eq!(shown(&editor, 40), "one two␛[2J @11,0");
        editor.delete_word();
        editor.delete_word();
        assert_eq!(shown(&editor, 40), "one  @4,0");
        editor.delete_to_start();
        assert!(editor.is_empty());
    }

    #[test]
    fn the_past_is_found_again_and_the_draft_kept() {
        let mut editor = Editor::default();
        editor.insert("first");
        assert_eq!(editor.take().as_deref(), Some("first"));
        editor.insert("  ");
        assert_eq!(editor.take(), None);
        editor.insert("draft");
        editor.browse(true);
        assert_eq!(shown(&editor, 40), "first @5,0");
        editor.browse(true);
        editor.browse(false);
        assert_eq!(shown(&editor, 40), "draft @5,0");
    }
}
