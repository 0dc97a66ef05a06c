//! How bodies are kept: as they are, or compressed where that helps, or compressed against a text that holds
//! much the same.
//!
//! A conversation says many things twice: a frame shows the bodies of its events, an intent repeats the
//! arguments of the reply, a prefix or a checkpoint the one before, and records of one kind look alike. Such a
//! body is compressed with the earlier one as its dictionary and names it, so that the same text costs its bytes
//! once. A dictionary has none itself.

use std::cell::RefCell;
use std::io;

use klbr_core::ids::{EventId, Seq};
use klbr_core::runtime::store::StoreError;
use zstd::bulk::{Compressor, Decompressor};

use crate::error::{Outcome, damaged};

/// Below this a body is not compressed by itself.
const SMALL: usize = 128;
const LEVEL: i32 = 1;
/// From this size on a dictionary is farther than the cheap level reaches.
const FAR: usize = 128 << 10;
const FAR_LEVEL: i32 = 3;
/// How far any reader reaches back, as a power of two.
const FARTHEST: u32 = 27;
/// The longest body that SQLite takes.
const LONGEST: usize = 1_000_000_000;

const RAW: u8 = 0;
const ZSTD: u8 = 1;
const ZSTD_RECORD: u8 = 2;
const ZSTD_EVENTS: u8 = 3;
const ZSTD_CHECKPOINT: u8 = 4;

/// Texts of the same agent that a body is compressed against.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    /// A record's body.
    Record(Seq),
    /// The bodies of these events, one after the other.
    Events(Vec<EventId>),
    /// A checkpoint.
    Checkpoint(Seq),
}

/// A body on its way into the database, self-contained.
pub(crate) fn pack(bytes: &[u8]) -> Vec<u8> {
    if bytes.len() < SMALL {
        return raw(bytes);
    }
    frame(bytes, compress(bytes, &[]), || vec![ZSTD])
}

/// A body on its way into the database, compressed against `dictionary`, which is what `base` names.
pub(crate) fn pack_against(bytes: &[u8], base: &Base, dictionary: &[u8]) -> Vec<u8> {
    let alone = pack(bytes);
    let with = frame(bytes, compress(bytes, dictionary), || head(base));
    if with.len() < alone.len() { with } else { alone }
}

thread_local! {
    // Dear to make, cheap to use again; each of the store's threads has its own.
    static CODERS: RefCell<Option<(Compressor<'static>, Decompressor<'static>)>> = const { RefCell::new(None) };
}

fn coders<T>(
    code: impl FnOnce(&mut Compressor<'static>, &mut Decompressor<'static>) -> io::Result<T>,
) -> io::Result<T> {
    CODERS.with_borrow_mut(|coders| {
        let (compressor, decompressor) = match coders {
            Some(coders) => coders,
            None => coders.insert((Compressor::new(LEVEL)?, Decompressor::new()?)),
        };
        let coded = code(compressor, decompressor);
        if coded.is_err() {
            // Half set up, they would code the next body wrongly.
            *coders = None;
        }
        coded
    })
}

/// Nothing when it cannot be compressed; it is then kept as it is.
fn compress(bytes: &[u8], dictionary: &[u8]) -> Option<Vec<u8>> {
    coders(|compressor, _| {
        if dictionary.is_empty() {
            return compressor.compress(bytes);
        }
        if dictionary.len() < FAR {
            compressor.set_dictionary(LEVEL, dictionary)?;
            let compressed = compressor.compress(bytes)?;
            compressor.set_dictionary(LEVEL, &[])?;
            return Ok(compressed);
        }
        let reach = (dictionary.len() + bytes.len()).next_power_of_two().ilog2();
        compressor.set_dictionary(FAR_LEVEL, dictionary)?;
        compressor.window_log(reach.min(FARTHEST))?;
        let compressed = compressor.compress(bytes)?;
        compressor.window_log(0)?;
        compressor.set_dictionary(LEVEL, &[])?;
        Ok(compressed)
    })
    .ok()
}

fn decompress(bytes: &[u8], dictionary: &[u8], len: usize) -> io::Result<Vec<u8>> {
    coders(|_, decompressor| {
        if dictionary.is_empty() {
            return decompressor.decompress(bytes, len);
        }
        decompressor.set_dictionary(dictionary)?;
        let plain = decompressor.decompress(bytes, len)?;
        decompressor.set_dictionary(&[])?;
        Ok(plain)
    })
}

fn frame(bytes: &[u8], compressed: Option<Vec<u8>>, head: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    if let Some(compressed) = compressed {
        let mut packed = head();
        put(&mut packed, bytes.len() as u64);
        packed.extend_from_slice(&compressed);
        if packed.len() < bytes.len() {
            return packed;
        }
    }
    raw(bytes)
}

fn raw(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(bytes.len() + 1);
    packed.push(RAW);
    packed.extend_from_slice(bytes);
    packed
}

fn head(base: &Base) -> Vec<u8> {
    match base {
        Base::Record(seq) => numbered(ZSTD_RECORD, *seq),
        Base::Checkpoint(seq) => numbered(ZSTD_CHECKPOINT, *seq),
        Base::Events(events) => {
            let mut head = vec![ZSTD_EVENTS];
            put(&mut head, events.len() as u64);
            events.iter().for_each(|event| put(&mut head, event.0));
            head
        }
    }
}

fn numbered(tag: u8, seq: Seq) -> Vec<u8> {
    let mut head = vec![tag];
    put(&mut head, seq.0);
    head
}

/// Whether a packed body needs no other one.
pub(crate) fn is_self_contained(packed: &[u8]) -> bool {
    matches!(packed.first(), Some(&(RAW | ZSTD)))
}

/// The body that was packed; `dictionary` reads what a base names.
pub(crate) fn unpack(packed: &[u8], dictionary: impl FnOnce(&Base) -> Outcome<Vec<u8>>) -> Outcome<Vec<u8>> {
    let Some((&tag, mut rest)) = packed.split_first() else { return damaged("a body is empty") };
    let base = match tag {
        RAW => return Ok(rest.to_vec()),
        ZSTD => None,
        ZSTD_RECORD => Some(Base::Record(Seq(take(&mut rest)?))),
        ZSTD_CHECKPOINT => Some(Base::Checkpoint(Seq(take(&mut rest)?))),
        ZSTD_EVENTS => {
            let count = take(&mut rest)?;
            let events = (0..count).map(|_| take(&mut rest).map(EventId)).collect::<Outcome<_>>()?;
            Some(Base::Events(events))
        }
        other => return damaged(format!("a body is packed in an unknown way ({other})")),
    };
    let len = usize::try_from(take(&mut rest)?).unwrap_or(usize::MAX);
    // The claimed size is checked before memory is taken for it: no frame shrinks further than this.
    if len > rest.len().saturating_mul(1 << 17).min(LONGEST) {
        return damaged(format!("a body claims {len} bytes"));
    }
    let plain = match base {
        None => decompress(rest, &[], len),
        Some(base) => decompress(rest, &dictionary(&base)?, len),
    };
    match plain {
        Ok(plain) if plain.len() == len => Ok(plain),
        Ok(plain) => damaged(format!("a body has {} bytes instead of {len}", plain.len())),
        Err(error) => damaged(format!("a body cannot be unpacked: {error}")),
    }
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Outcome<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let Some((&byte, rest)) = bytes.split_first() else { break };
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(StoreError::Damaged("a body's head is cut".into()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(packed: &[u8]) -> Outcome<Vec<u8>> {
        unpack(packed, |_| damaged("no dictionary was expected"))
    }

    #[test]
    fn bodies_come_back_as_they_were() {
        for text in ["", "short", &"long ".repeat(1000), &"日本語".repeat(999)] {
            let packed = pack(text.as_bytes());
            assert_eq!(alone(&packed).unwrap(), text.as_bytes());
            assert!(packed.len() <= text.len() + 1);
        }
    }

    #[test]
    fn a_text_that_was_kept_already_costs_next_to_nothing() {
        let text: String = (0..500).map(|n| format!("{:x} ", n * 7919 % 10_007)).collect();
        let frame = format!("<channel>{text}</channel>");
        let events = Base::Events(vec![EventId(1), EventId(u64::MAX)]);
        for base in [Base::Record(Seq(300)), Base::Checkpoint(Seq(1)), events] {
            let packed = pack_against(frame.as_bytes(), &base, text.as_bytes());
            assert!(packed.len() < 100, "{} of {}", packed.len(), frame.len());
            let plain = unpack(&packed, |asked| {
                assert_eq!(*asked, base);
                Ok(text.clone().into_bytes())
            });
            assert_eq!(plain.unwrap(), frame.as_bytes());
        }
    }

    #[test]
    fn damage_is_said_and_takes_no_memory() {
        let packed = pack("long ".repeat(1000).as_bytes());
        for cut in 0..packed.len() {
            assert!(alone(&packed[..cut]).is_err(), "cut at {cut}");
        }
        let bomb = [&[ZSTD, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F][..], &packed[3..]].concat();
        assert!(alone(&bomb).is_err());
        assert!(alone(&[9, 9, 9]).is_err());
    }
}
