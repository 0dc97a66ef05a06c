//! The loading banner that llama-swap streams before a reply while it loads the model.
//!
//! Owns recognising it, in whichever channel it comes. Refuses to guess: only a text that begins with the
//! whole banner loses it.

const HEAD: &str = "━━━━━\nllama-swap loading model:";
const TAIL: &str = "\n━━━━━\n";
/// The line that llama-swap sends after the closing bar.
const REST: &str = " \n";

/// The longest banner: what goes on after it is no banner.
const MOST: usize = 64 << 10;

/// Takes the banner off the front of a channel's text.
#[derive(Debug, Default)]
pub(super) struct Filter {
    held: String,
    passed: bool,
}

impl Filter {
    /// Takes more text and gives what is not banner.
    pub(super) fn handle(&mut self, text: &str) -> String {
        if self.passed {
            return text.to_owned();
        }
        self.held.push_str(text);
        if HEAD.starts_with(&self.held) {
            return String::new();
        }
        let Some(body) = self.held.strip_prefix(HEAD) else { return self.pass(0) };
        let Some(end) = body.find(TAIL) else {
            return if body.len() > MOST { self.pass(0) } else { String::new() };
        };
        let after = HEAD.len() + end + TAIL.len();
        let rest = &self.held[after..];
        if rest.starts_with(REST) {
            self.pass(after + REST.len())
        } else if REST.starts_with(rest) {
            String::new()
        } else {
            self.pass(after)
        }
    }

    /// Takes the end of the text: what only resembled a banner is given back.
    pub(super) fn handle_end(&mut self) -> String {
        let is_banner = self.held.starts_with(HEAD);
        let end = if is_banner { self.held.len() } else { 0 };
        self.pass(end)
    }

    fn pass(&mut self, from: usize) -> String {
        self.passed = true;
        std::mem::take(&mut self.held).split_off(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &str) {
        for size in [1, 2, 3, 7, source.chars().count().max(1)] {
            let mut filter = Filter::default();
            let chars: Vec<char> = source.chars().collect();
            let mut text: String =
                chars.chunks(size).map(|piece| filter.handle(&piece.iter().collect::<String>())).collect();
            text.push_str(&filter.handle_end());
            assert_eq!(text, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_banner_is_taken_off_and_nothing_else() {
        check(
            "━━━━━\nllama-swap loading model: q\nMixing bits...\n\nDone! (2.10s)\n━━━━━\n \nHello",
            "Hello",
        );
        check("━━━━━\nllama-swap loading model: q\n\nDone! (2.10s)\n━━━━━\nHello", "Hello");
        check("━━━━━\nllama-swap loading model: q\n....", "");
        check("━━━━━\nA heading\n━━━━━\n", "━━━━━\nA heading\n━━━━━\n");
        check("━━", "━━");
        check("Hello", "Hello");
    }
}
