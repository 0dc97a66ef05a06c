//! Finding text in the history: words first, then parts of words, then what has at least some of the words.
//!
//! The text that is looked for never becomes syntax. What the table of parts gives is only a candidate, and is
//! verified on the text.

use std::collections::HashSet;

use klbr_core::ids::Seq;
use klbr_core::runtime::store::history::{self, Fit, Passage, Query};
use klbr_core::runtime::store::{Hit, Search};
use klbr_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::record;
use crate::error::Outcome;
use crate::row::{AgentRow, Unpacker, event_body, number_of};
use crate::script::{phrase, trigrams};

impl Place {
    /// The piece of its record's text.
    fn of<'a>(&self, passage: &'a Passage) -> Option<&'a str> {
        passage.text.get(self.start as usize..self.stop as usize)
    }
}

/// How many candidates for parts of words are verified at most, newest first.
const CANDIDATES: usize = 5_000;
/// How many trigrams narrow one term; the text is verified anyway.
const TRIGRAMS: usize = 32;

/// Where a find is, before its text is read.
struct Place {
    record: i64,
    start: u32,
    stop: u32,
    score: f64,
}

pub(super) fn search(conn: &Connection, agent: AgentRow, search: &Search) -> Outcome<Vec<Hit>> {
    let query = Query::parse(&search.text);
    let mut finder = Finder {
        conn,
        search,
        range: range(conn, agent, search)?,
        wanted: search.offset.saturating_add(search.limit),
        seen: HashSet::new(),
        found: Vec::new(),
        texts: Texts { conn, agent, unpacker: Unpacker::default(), last: None },
    };
    if search.limit == 0 {
        return Ok(Vec::new());
    }
    if search.text.trim().is_empty() {
        finder.everything()?;
    } else if !query.terms().is_empty() {
        let phrases: Vec<String> = query.terms().iter().map(|term| phrase(term)).collect();
        finder.words(&phrases.join(" AND "), Fit::Words)?;
        finder.parts(&query)?;
        if phrases.len() > 1 {
            finder.words(&phrases.join(" OR "), Fit::Some)?;
        }
    }
    finder.hits(&query)
}

/// The keys of the agent's records in the asked time. Records are in the order of time (`C-TIME`).
fn range(conn: &Connection, agent: AgentRow, search: &Search) -> Outcome<(i64, i64)> {
    let end = agent.first() + super::last_seq(conn, agent)?.0.cast_signed() + 1;
    let mut select = conn.prepare_cached("SELECT at FROM records WHERE key >= ?1 ORDER BY key LIMIT 1")?;
    let mut first_not_before = |moment: Timestamp| -> Outcome<i64> {
        let (mut low, mut high) = (agent.first() + 1, end);
        while low < high {
            let middle = low + (high - low) / 2;
            let at: i64 = select.query_row([middle], |row| row.get(0))?;
            if at < moment.0 {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    };
    let from = search.since.map(&mut first_not_before).transpose()?.unwrap_or(agent.first());
    let to = search.until.map(&mut first_not_before).transpose()?.unwrap_or(end);
    Ok((from, to))
}

struct Finder<'a> {
    conn: &'a Connection,
    search: &'a Search,
    /// The first key, and the one after the last.
    range: (i64, i64),
    wanted: usize,
    seen: HashSet<i64>,
    found: Vec<Place>,
    texts: Texts<'a>,
}

const FILTER: &str = "p.record >= ?2 AND p.record < ?3
    AND (?4 IS NULL OR l.source = ?4) AND (?5 IS NULL OR l.conversation = ?5)";

impl Finder<'_> {
    fn is_full(&self) -> bool {
        self.found.len() >= self.wanted
    }

    /// Runs a statement whose rows are `record, start, stop, rank`, until `each` has enough.
    fn rows(
        &mut self,
        sql: &str,
        matching: Option<&str>,
        mut each: impl FnMut(&mut Self, Place) -> Outcome<bool>,
    ) -> Outcome<()> {
        let mut select = self.conn.prepare_cached(sql)?;
        let (source, conversation) = (self.search.source.as_deref(), self.search.conversation.as_deref());
        let mut rows = select.query(params![matching, self.range.0, self.range.1, source, conversation])?;
        while let Some(row) = rows.next()? {
            let place =
                Place { record: row.get(0)?, start: row.get(1)?, stop: row.get(2)?, score: row.get(3)? };
            if !self.seen.contains(&place.record) && !each(self, place)? {
                break;
            }
        }
        Ok(())
    }

    fn take(&mut self, place: Place) {
        self.seen.insert(place.record);
        self.found.push(place);
    }

    fn everything(&mut self) -> Outcome<()> {
        let sql = format!(
            "SELECT p.record, p.start, p.stop, 0.0 FROM passages p JOIN places l ON l.id = p.place
             WHERE ?1 IS NULL AND p.start = 0 AND {FILTER} ORDER BY p.record DESC"
        );
        self.rows(&sql, None, |finder, place| {
            finder.take(place);
            Ok(!finder.is_full())
        })
    }

    fn words(&mut self, matching: &str, fit: Fit) -> Outcome<()> {
        if self.is_full() {
            return Ok(());
        }
        let sql = format!(
            "SELECT p.record, p.start, p.stop, bm25(words) FROM words
             JOIN passages p ON p.id = words.rowid JOIN places l ON l.id = p.place
             WHERE words MATCH ?1 AND {FILTER} ORDER BY bm25(words), p.record DESC"
        );
        self.rows(&sql, Some(matching), |finder, place| {
            // SQLite's rank is better the lower it is.
            finder.take(Place { score: fit.score(-place.score), ..place });
            Ok(!finder.is_full())
        })
    }

    fn parts(&mut self, query: &Query) -> Outcome<()> {
        let trigrams: Vec<String> = query.terms().iter().flat_map(|term| trigrams(term, TRIGRAMS)).collect();
        if self.is_full() || trigrams.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "SELECT p.record, p.start, p.stop, 0.0 FROM parts
             JOIN passages p ON p.id = parts.rowid JOIN places l ON l.id = p.place
             WHERE parts MATCH ?1 AND {FILTER} ORDER BY parts.rowid DESC"
        );
        let (mut verified, mut fitting) = (0, Vec::new());
        self.rows(&sql, Some(&trigrams.join(" AND ")), |finder, place| {
            verified += 1;
            let text = finder.texts.read(&place)?;
            if let Some((fit, score)) = text.and_then(|text| query.fit(&text))
                && fit >= Fit::Parts
            {
                // As words it would have been found before; that it was not is a matter of accents.
                let score = score - f64::from(fit as u8) + f64::from(Fit::Parts as u8);
                finder.seen.insert(place.record);
                fitting.push(Place { score, ..place });
            }
            Ok(verified < CANDIDATES)
        })?;
        fitting.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.record.cmp(&a.record)));
        self.found.append(&mut fitting);
        Ok(())
    }

    fn hits(mut self, query: &Query) -> Outcome<Vec<Hit>> {
        let places: Vec<Place> =
            self.found.drain(..).skip(self.search.offset).take(self.search.limit).collect();
        let mut hits = Vec::with_capacity(places.len());
        for place in places {
            let Some((at, passage)) = self.texts.passage(place.record)? else { continue };
            let excerpt = query.excerpt(place.of(passage).unwrap_or_default());
            hits.push(Hit {
                seq: Seq(number_of(place.record)),
                at,
                source: passage.source.clone(),
                conversation: passage.conversation.clone(),
                excerpt,
                score: place.score,
            });
        }
        Ok(hits)
    }
}

/// Reads passages back from the records; the last one is remembered, since its pieces follow one another.
struct Texts<'a> {
    conn: &'a Connection,
    agent: AgentRow,
    unpacker: Unpacker,
    last: Option<(i64, Timestamp, Passage)>,
}

impl Texts<'_> {
    fn passage(&mut self, key: i64) -> Outcome<Option<(Timestamp, &Passage)>> {
        if self.last.as_ref().is_none_or(|(last, ..)| *last != key) {
            self.last = None;
            let Some(stamped) = record(self.conn, key, &mut self.unpacker)? else { return Ok(None) };
            let passage =
                history::passage(&stamped.record, |event| event_body(self.conn, self.agent, event))?;
            self.last = passage.map(|passage| (key, stamped.at, passage));
        }
        Ok(self.last.as_ref().map(|(_, at, passage)| (*at, passage)))
    }

    fn read(&mut self, place: &Place) -> Outcome<Option<String>> {
        let passage = self.passage(place.record)?;
        Ok(passage.and_then(|(_, passage)| place.of(passage).map(str::to_owned)))
    }
}
