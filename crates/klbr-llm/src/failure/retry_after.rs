//! How long a provider asks to wait.
//!
//! Owns the spellings: seconds, an HTTP date, and a sentence. Refuses what is no time at all.

use std::time::{Duration, SystemTime};

/// Reads a `Retry-After` header: seconds, or a date seen from `now`. A date that is past asks for no wait.
pub(crate) fn in_header(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

/// Finds the wait that a message asks for (`try again in 1m2.5s`, `retry after 7 seconds`); lower-case.
pub(super) fn in_words(message: &str) -> Option<Duration> {
    let after = ["try again in ", "retry in ", "retry after "]
        .into_iter()
        .find_map(|words| message.split_once(words).map(|(_, after)| after))?;
    let mut total: Option<Duration> = None;
    let mut rest = after;
    while let Some((seconds, length)) = leading_time(rest) {
        total = Some(total.unwrap_or_default().checked_add(Duration::try_from_secs_f64(seconds).ok()?)?);
        rest = &rest[length..];
    }
    total
}

/// A number and its unit at the front of a text, in seconds, and how long they are.
fn leading_time(text: &str) -> Option<(f64, usize)> {
    let digits = text.find(|char: char| !(char.is_ascii_digit() || char == '.')).unwrap_or(text.len());
    let number: f64 = text[..digits].trim_end_matches('.').parse().ok()?;
    let unit_text = text[digits..].trim_start();
    let skipped = text.len() - unit_text.len();
    let unit: String = unit_text.chars().take_while(char::is_ascii_alphabetic).collect();
    let scale = match unit.as_str() {
        "ms" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    Some((number * scale, skipped + unit.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_give_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let seconds = |value| in_header(value, now).map(|wait| wait.as_secs_f64());
        assert_eq!(seconds("7"), Some(7.0));
        assert_eq!(seconds(" 0.5 "), Some(0.5));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60.0));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0.0));
        for nonsense in ["", "-1", "NaN", "inf", "1e400", "soon"] {
            assert_eq!(seconds(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn sentences_give_a_time_too() {
        let seconds = |message| in_words(message).map(|wait| wait.as_secs_f64());
        assert_eq!(seconds("please try again in 1m2.5s. visit"), Some(62.5));
        assert_eq!(seconds("please try again in 20ms"), Some(0.02));
        assert_eq!(seconds("please retry after 7 seconds."), Some(7.0));
        assert_eq!(seconds("please try again in a while"), None);
        assert_eq!(seconds("no"), None);
    }
}
