//! Whether a Rust text is shallow enough for a parser that calls itself.
//!
//! Each call of that parser on top of another is due to a token: a bracket that is open, or a word or sign that
//! something must follow, since the last place at which nothing but brackets can be open. Counting them bounds the calls
//! from above.

use ra_ap_parser::{Edition, LexedStr, SyntaxKind, T};

/// The most calls on top of each other, in units of such tokens.
const MAX_DEPTH: usize = 160;

/// What may be open at one level of brackets.
#[derive(Default)]
struct Level {
    /// The bracket itself and words and signs, which a comma ends.
    words: usize,
    /// `<` and the bars of closures, which go on behind a comma.
    lasting: usize,
    /// How many of those are `<`.
    angles: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.words + self.lasting
    }
}

pub(super) fn is_shallow(lexed: &LexedStr<'_>) -> bool {
    let mut outer: Vec<Level> = Vec::new();
    let mut level = Level::default();
    // The depth of the outer levels together.
    let mut below = 0;
    let mut before = SyntaxKind::EOF;
    for index in 0..lexed.len() {
        let kind = lexed.kind(index);
        if kind.is_trivia() {
            continue;
        }
        if before == T!['}'] && begins_anew(kind) {
            level = Level { words: usize::from(!outer.is_empty()), ..Level::default() };
        }
        match kind {
            T!['('] | T!['['] | T!['{'] => {
                below += level.depth();
                outer.push(std::mem::replace(&mut level, Level { words: 1, ..Level::default() }));
            }
            T![')'] | T![']'] | T!['}'] => {
                level = outer.pop().unwrap_or_default();
                below -= level.depth().min(below);
            }
            T![;] => level = Level { words: usize::from(!outer.is_empty()), ..Level::default() },
            T![,] => level.words = usize::from(!outer.is_empty()),
            T![<] => (level.lasting, level.angles) = (level.lasting + 1, level.angles + 1),
            T![>] if level.angles > 0 && !matches!(before, T![-] | T![=]) => {
                (level.lasting, level.angles) = (level.lasting - 1, level.angles - 1);
            }
            T![|] if !ends_operand(before) => level.lasting += 1,
            _ => level.words += usize::from(nests(kind, before)),
        }
        if below + level.depth() > MAX_DEPTH {
            return false;
        }
        before = kind;
    }
    true
}

/// Whether a statement, an item or an arm begins with this token behind a closing brace.
fn begins_anew(kind: SyntaxKind) -> bool {
    matches!(kind, T!['}'] | T![#] | SyntaxKind::IDENT)
        || (kind.is_keyword(Edition::Edition2021) && !matches!(kind, T![else] | T![in] | T![as] | T![where]))
}

/// Whether something must follow this token, for which the parser may call itself.
fn nests(kind: SyntaxKind, before: SyntaxKind) -> bool {
    match kind {
        T![=] | T![#] => true,
        // Between two operands these are signs that the parser takes in turn.
        T![&] | T![*] | T![-] | T![!] | T![?] | T![.] => !ends_operand(before),
        _ => kind == SyntaxKind::LIFETIME_IDENT || kind.is_keyword(Edition::Edition2021),
    }
}

fn ends_operand(kind: SyntaxKind) -> bool {
    kind.is_literal() || matches!(kind, SyntaxKind::IDENT | T![')'] | T![']'] | T!['}'] | T![?] | T![self])
}
