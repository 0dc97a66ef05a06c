//! Server-sent events out of bytes.
//!
//! Owns lines, fields and the end of the bytes. Refuses to know what an event's data means, with three
//! leniences that servers need: a bare JSON line, llama.cpp's `error:` field, and events that no blank
//! line separates.

use serde::de::IgnoredAny;

use super::Broken;

/// Larger events are refused: no chunk of a reply comes near it, and memory must stay bounded.
const MAX_EVENT: usize = 16 << 20;

/// One event as the server framed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// The `event` field; empty when there was none.
    pub(super) name: String,
    /// The `data` fields, joined by line feeds.
    pub(super) data: String,
    /// Whether the bytes ended inside the event: its data may be cut.
    pub(super) cut: bool,
}

/// Turns bytes into events. Any split of the same bytes gives the same events.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    line: Vec<u8>,
    name: String,
    data: Option<String>,
    after_cr: bool,
    begun: bool,
}

impl Decoder {
    /// Takes the bytes that arrived and hands each completed event to `on_event`.
    ///
    /// # Errors
    ///
    /// Fails when an event outgrows 16 MiB; the decoder is then of no further use.
    pub(super) fn handle_bytes(
        &mut self,
        mut bytes: &[u8],
        on_event: &mut impl FnMut(Event),
    ) -> Result<(), Broken> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(bytes);
                return self.check_size();
            };
            self.line.extend_from_slice(&bytes[..end]);
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.check_size()?;
            self.end_line(on_event);
        }
        Ok(())
    }

    /// Takes the end of the bytes: what was not terminated still counts, marked as [`Event::cut`].
    pub(super) fn handle_end(&mut self, on_event: &mut impl FnMut(Event)) {
        let cut = !self.line.is_empty();
        if cut {
            self.end_line(on_event);
        }
        if let Some(data) = self.data.take() {
            on_event(Event { name: std::mem::take(&mut self.name), data, cut });
        }
    }

    fn check_size(&self) -> Result<(), Broken> {
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held > MAX_EVENT {
            Err(Broken(format!("an event of more than {MAX_EVENT} bytes")))
        } else {
            Ok(())
        }
    }

    fn end_line(&mut self, on_event: &mut impl FnMut(Event)) {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        let line = String::from_utf8_lossy(line);
        if line.is_empty() {
            return self.dispatch(on_event);
        }
        if line.starts_with('{') {
            return self.add_data(&line, on_event);
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.add_data(value, on_event),
            "event" => value.clone_into(&mut self.name),
            "error" => {
                "error".clone_into(&mut self.name);
                self.add_data(value, on_event);
            }
            // A comment (the empty field), `id`, `retry`, or something to ignore.
            _ => {}
        }
    }

    fn add_data(&mut self, value: &str, on_event: &mut impl FnMut(Event)) {
        // Only a single line is looked at: what spans lines does so on purpose, and is parsed once.
        if self.data.as_deref().is_some_and(|data| !data.contains('\n') && is_whole(data)) {
            self.dispatch_data(on_event);
        }
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
        if self.data.as_deref().map(str::trim) == Some(super::DONE) {
            self.dispatch(on_event);
        }
    }

    /// Ends an event that no blank line ended; its name stays in force until one does.
    fn dispatch_data(&mut self, on_event: &mut impl FnMut(Event)) {
        if let Some(data) = self.data.take() {
            on_event(Event { name: self.name.clone(), data, cut: false });
        }
    }

    fn dispatch(&mut self, on_event: &mut impl FnMut(Event)) {
        let name = std::mem::take(&mut self.name);
        if let Some(data) = self.data.take() {
            on_event(Event { name, data, cut: false });
        }
    }
}

fn is_whole(data: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(data).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<(String, String, bool)> {
        let mut events = Vec::new();
        let mut decoder = Decoder::default();
        let mut on_event = |event: Event| events.push((event.name, event.data, event.cut));
        for chunk in chunks {
            decoder.handle_bytes(chunk, &mut on_event).unwrap();
        }
        decoder.handle_end(&mut on_event);
        events
    }

    #[track_caller]
    fn check(bytes: &str, expected: &[(&str, &str, bool)]) {
        let expected: Vec<_> =
            expected.iter().map(|(name, data, cut)| ((*name).to_owned(), (*data).to_owned(), *cut)).collect();
        assert_eq!(decode(&[bytes.as_bytes()]), expected, "whole");
        for size in 1..6 {
            let chunks: Vec<_> = bytes.as_bytes().chunks(size).collect();
            assert_eq!(decode(&chunks), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn lines_end_in_any_of_three_ways() {
        check(
            "data: 1\n\ndata: 2\r\n\r\ndata: 3\r\r",
            &[("", "1", false), ("", "2", false), ("", "3", false)],
        );
    }

    #[test]
    fn comments_bom_ids_and_unknown_fields_are_passed_over() {
        check("\u{feff}: hello\ndata:x\nid: 7\nretry: 1\nnonsense\n\n: bye\n\n", &[("", "x", false)]);
    }

    #[test]
    fn an_event_has_a_name_and_any_number_of_data_lines() {
        check(
            "event: error\ndata: {\"a\":\ndata: 1}\n\ndata: after\n\n",
            &[("error", "{\"a\":\n1}", false), ("", "after", false)],
        );
    }

    #[test]
    fn characters_survive_being_split() {
        check("data: \"a😀é\"\n\n", &[("", "\"a😀é\"", false)]);
    }

    #[test]
    fn whole_values_without_blank_lines_between_them_are_events_of_their_own() {
        check(
            "data: {\"a\":1}\ndata: {\"b\":2}\ndata: [DONE]\n",
            &[("", "{\"a\":1}", false), ("", "{\"b\":2}", false), ("", "[DONE]", false)],
        );
    }

    #[test]
    fn the_end_of_the_marker_needs_no_blank_line() {
        let mut events = Vec::new();
        Decoder::default().handle_bytes(b"data: [DONE]\n", &mut |event| events.push(event.data)).unwrap();
        assert_eq!(events, ["[DONE]"]);
    }

    #[test]
    fn an_unterminated_last_line_still_counts() {
        check(
            "data: {\"a\":1}\n\ndata: {\"error\":{}}",
            &[("", "{\"a\":1}", false), ("", "{\"error\":{}}", true)],
        );
        check("error: {\"code\":500}", &[("error", "{\"code\":500}", true)]);
        check("{\"error\":\"bare\"}", &[("", "{\"error\":\"bare\"}", true)]);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut decoder = Decoder::default();
        let piece = vec![b'x'; 1 << 20];
        let result = (0..32).try_for_each(|_| decoder.handle_bytes(&piece, &mut |_| {}));
        assert!(result.is_err());
    }
}
