//! What a process prints, bounded: the beginning and the end of a stream, and optionally all of it in a file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A stream of output: the beginning and the end of it.
#[derive(Debug)]
pub(crate) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    each: usize,
    total: u64,
    whole: Option<Whole>,
}

#[derive(Debug)]
struct Whole {
    path: PathBuf,
    file: Option<File>,
    room: u64,
}

impl Kept {
    /// Keeps at most `each` bytes of the beginning, and as many of the end.
    pub(crate) fn new(each: usize) -> Self {
        Kept { head: Vec::new(), tail: VecDeque::new(), each, total: 0, whole: None }
    }

    /// Also writes everything, up to `room` bytes, to a file that is made when something has to be left out.
    pub(crate) fn with_whole(mut self, path: PathBuf, room: u64) -> Self {
        self.whole = Some(Whole { path, file: None, room });
        self
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let before = self.head.len() + self.tail.len();
        if before + bytes.len() > 2 * self.each || self.left_out() > 0 {
            self.store(bytes);
        }
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.each - self.head.len()));
        self.head.extend_from_slice(head);
        // Of a long piece only the end can stay.
        let rest = &rest[rest.len().saturating_sub(self.each)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.each);
        self.tail.drain(..surplus.min(self.tail.len()));
        self.tail.extend(rest);
    }

    fn store(&mut self, bytes: &[u8]) {
        let Some(whole) = &mut self.whole else { return };
        if whole.file.is_none() {
            // What was kept so far is everything so far: this is the first time that something will be left out.
            let Ok(mut file) = File::create(&whole.path) else {
                self.whole = None;
                return;
            };
            let (front, back) = self.tail.as_slices();
            for piece in [self.head.as_slice(), front, back] {
                let piece = &piece[..piece.len().min(usize::try_from(whole.room).unwrap_or(usize::MAX))];
                whole.room -= piece.len() as u64;
                // A full disk leaves head and tail, as without a file.
                let _ = file.write_all(piece);
            }
            whole.file = Some(file);
        }
        let piece = &bytes[..bytes.len().min(usize::try_from(whole.room).unwrap_or(usize::MAX))];
        whole.room -= piece.len() as u64;
        if let Some(file) = &mut whole.file {
            let _ = file.write_all(piece);
        }
    }

    /// How many bytes were printed.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    fn left_out(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// The file with everything, if something was left out.
    pub(crate) fn whole(&self) -> Option<&Path> {
        self.whole.as_ref().filter(|whole| whole.file.is_some()).map(|whole| whole.path.as_path())
    }

    /// Beginning and end, with a line between them that says how much is missing.
    pub(crate) fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        match self.left_out() {
            0 => String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned(),
            n => format!(
                "{}\n[{n} bytes left out]\n{}",
                String::from_utf8_lossy(&self.head),
                String::from_utf8_lossy(&tail)
            ),
        }
    }

    /// At most the last `bytes` bytes.
    pub(crate) fn last(&self, bytes: usize) -> String {
        let all: Vec<u8> = match self.left_out() {
            0 => self.head.iter().chain(&self.tail).copied().collect(),
            _ => self.tail.iter().copied().collect(),
        };
        String::from_utf8_lossy(&all[all.len().saturating_sub(bytes)..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_kept_at_both_ends_and_whole_in_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut kept = Kept::new(16).with_whole(path.clone(), 1 << 20);
        kept.push(b"begin ");
        assert_eq!(kept.text(), "begin ");
        let mut all = b"begin ".to_vec();
        for n in 0..100 {
            let piece = format!("<{n}>").repeat(n % 7);
            kept.push(piece.as_bytes());
            all.extend(piece.as_bytes());
        }
        let text = kept.text();
        assert!(text.starts_with("begin ") && text.contains("bytes left out]"), "{text}");
        assert!(text.ends_with(&String::from_utf8_lossy(&all[all.len() - 16..]).into_owned()), "{text}");
        assert!(text.len() < 2 * 16 + 40, "{text}");
        assert_eq!(kept.total(), all.len() as u64);
        assert_eq!(kept.last(5).as_bytes(), &all[all.len() - 5..]);
        assert_eq!(std::fs::read(kept.whole().unwrap()).unwrap(), all);
    }

    #[test]
    fn a_file_is_bounded_and_made_only_when_needed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut kept = Kept::new(8).with_whole(path.clone(), 20);
        kept.push(&[b'x'; 16]);
        assert!(kept.whole().is_none() && !path.exists());
        kept.push(&[b'y'; 100]);
        assert_eq!(std::fs::read(path).unwrap().len(), 20);
    }
}
