//! What stands between the host and Python, and cuts the connection at a place in a frame (`cut-wire`).
//!
//! The host starts it in Python's place; it starts Python with what it was given, hands every byte on, and cuts both
//! sides where the seed says, once a life. Owns the places and the passing on. Refuses to read what is in a frame.

use std::fmt;
use std::io::{self, Read, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

/// The variables that tell it the interpreter and the seed.
pub const PYTHON: &str = "KLBR_CUT_PYTHON";
/// See [`PYTHON`].
pub const SEED: &str = "KLBR_CUT_SEED";

/// The file in its folder that gets a line for each cut.
pub const CUTS: &str = "cuts";

/// The file in its folder that gets a byte for each life.
const LIVES: &str = "lives";

/// Who would have read what is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reader {
    /// Python: a question, or the greeting.
    Python,
    /// The host: an answer, or the greeting.
    Host,
}

/// Where in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The frame is there, and nothing of it passes.
    Before,
    /// After so many of the four bytes of its length.
    Prefix(u8),
    /// After its length, before its body.
    AfterPrefix,
    /// Inside of its body, at so many thousandths.
    Body(u16),
    /// After its last byte.
    After,
}

/// One cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Who would have read the rest.
    pub reader: Reader,
    /// Which frame of that direction, from 0.
    pub frame: u64,
    /// Where in it.
    pub place: Place,
    /// Whether the process stays when its connection is gone.
    pub lingers: bool,
}

impl Cut {
    /// The cut of one life.
    pub fn draw(seed: u64, life: u64) -> Cut {
        let mut rng = fastrand::Rng::with_seed(seed ^ life.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let reader = if rng.bool() { Reader::Python } else { Reader::Host };
        // The first frames are the greetings: hello to Python, hello and ready from it.
        let greetings = if reader == Reader::Python { 1 } else { 2 };
        let frame = match rng.u8(0..16) {
            0 => rng.u64(0..greetings),
            1..=4 => greetings + 1,
            _ => greetings,
        };
        let place = match rng.u8(0..6) {
            0 => Place::Before,
            1 => Place::Prefix(rng.u8(1..4)),
            2 => Place::AfterPrefix,
            3 | 4 => Place::Body(rng.u16(0..1000)),
            _ => Place::After,
        };
        Cut { reader, frame, place, lingers: rng.bool() }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reader = if self.reader == Reader::Python { "to Python" } else { "to the host" };
        let place = match self.place {
            Place::Before => "before the length",
            Place::Prefix(_) => "inside the length",
            Place::AfterPrefix => "after the length",
            Place::Body(_) => "inside the body",
            Place::After => "between frames",
        };
        write!(f, "{reader}, {place}")
    }
}

/// How far one direction has come.
#[derive(Default)]
struct Passing {
    frame: u64,
    /// Bytes of this frame that have passed.
    passed: u64,
    length: u32,
}

impl Passing {
    /// How many of these bytes pass, and whether the cut comes then.
    fn take(&mut self, bytes: &[u8], cut: Option<&Cut>) -> (usize, bool) {
        for (at, byte) in bytes.iter().enumerate() {
            if self.is_at(cut) {
                return (at, true);
            }
            if self.passed < 4 {
                self.length = self.length << 8 | u32::from(*byte);
            }
            self.passed += 1;
            if self.passed >= 4 && self.passed == 4 + u64::from(self.length) {
                if cut.is_some_and(|cut| cut.frame == self.frame && cut.place == Place::After) {
                    return (at + 1, true);
                }
                *self = Passing { frame: self.frame + 1, ..Passing::default() };
            }
        }
        (bytes.len(), false)
    }

    /// Whether the cut stands in front of the next byte.
    fn is_at(&self, cut: Option<&Cut>) -> bool {
        let Some(cut) = cut.filter(|cut| cut.frame == self.frame) else { return false };
        match cut.place {
            Place::Before => self.passed == 0,
            Place::Prefix(bytes) => self.passed == u64::from(bytes),
            Place::AfterPrefix => self.passed == 4,
            Place::Body(part) => {
                let inside = u64::from(self.length).saturating_sub(2) * u64::from(part) / 1000;
                self.passed > 4 && self.passed == 5 + inside
            }
            Place::After => false,
        }
    }
}

/// Passes on and cuts, until the host kills it.
///
/// # Errors
///
/// Fails when Python cannot be started, or what stands beside it cannot be read.
pub fn run() -> io::Result<()> {
    let told = |name: &str| std::env::var(name).map_err(|error| io::Error::other(format!("{name}: {error}")));
    let seed: u64 = told(SEED)?.parse().map_err(io::Error::other)?;
    let mut lives = std::fs::OpenOptions::new().create(true).append(true).open(LIVES)?;
    lives.write_all(b".")?;
    let cut = Cut::draw(seed, lives.metadata()?.len());
    let host = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (ours, theirs) = UnixStream::pair()?;
    let _python = Command::new(told(PYTHON)?)
        .args(std::env::args_os().skip(1))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    let to_python = (host.try_clone()?, ours.try_clone()?);
    let cut_for = |reader| (cut.reader == reader).then_some(cut);
    let (first, second) = (cut_for(Reader::Python), cut_for(Reader::Host));
    let passing = std::thread::spawn(move || pass(to_python.0, to_python.1, first));
    let done = pass(ours, host, second);
    passing.join().map_err(|_| io::Error::other("the other direction panicked"))?.and(done)
}

fn pass(mut from: UnixStream, mut to: UnixStream, cut: Option<Cut>) -> io::Result<()> {
    let mut passing = Passing::default();
    let mut buffer = [0; 64 * 1024];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            let _ = to.shutdown(Shutdown::Write);
            return Ok(());
        }
        let (passes, is_cut) = passing.take(&buffer[..count], cut.as_ref());
        to.write_all(&buffer[..passes])?;
        if let Some(cut) = cut.filter(|_| is_cut) {
            let mut cuts = std::fs::OpenOptions::new().create(true).append(true).open(CUTS)?;
            cuts.write_all(format!("{cut}\n").as_bytes())?;
            if !cut.lingers {
                std::process::exit(0);
            }
            // Whoever else still passes on meets the same end.
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            loop {
                std::thread::park();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(cut: Cut, pieces: usize) -> usize {
        let frame =
            |body: &str| [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], body.as_bytes()].concat();
        let bytes = [frame("hello"), frame("question"), frame("more")].concat();
        let mut passing = Passing::default();
        let mut total = 0;
        for piece in bytes.chunks(pieces) {
            let (passes, is_cut) = passing.take(piece, Some(&cut));
            total += passes;
            if is_cut {
                return total;
            }
        }
        usize::MAX
    }

    #[test]
    fn a_cut_comes_where_it_was_drawn_however_the_bytes_arrive() {
        let cut = |frame, place| Cut { reader: Reader::Host, frame, place, lingers: false };
        // The first frame ends at 9, the second at 21.
        let places = [
            (Place::Before, 9),
            (Place::Prefix(1), 10),
            (Place::Prefix(3), 12),
            (Place::AfterPrefix, 13),
            (Place::Body(0), 14),
            (Place::Body(999), 19),
            (Place::After, 21),
        ];
        for pieces in 1..30 {
            for (place, expected) in places {
                assert_eq!(passed(cut(1, place), pieces), expected, "{place:?} in pieces of {pieces}");
            }
            assert_eq!(passed(cut(7, Place::Before), pieces), usize::MAX);
        }
    }

    #[test]
    fn cuts_come_at_every_place_in_both_directions() {
        let drawn: std::collections::BTreeSet<String> =
            (0..200).map(|life| Cut::draw(1, life).to_string()).collect();
        assert_eq!(drawn.len(), 10, "{drawn:?}");
        assert_eq!(Cut::draw(3, 4), Cut::draw(3, 4));
    }
}
