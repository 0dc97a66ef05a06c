//! Rate limits, and who came too early.
//!
//! Owns the buckets and what clients were told. Refuses to answer: it says what stands in the headers.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::fault::Scope;
use super::settings::{Limit, Settings};
use super::snowflake::now_ms;

/// A bucket: a route, and the channel or guild in it.
pub(super) type Key = (String, String);

#[derive(Clone, Copy, Debug)]
struct Period {
    began: Instant,
    used: u64,
}

/// Who was told to wait, and until when.
#[derive(Debug, Default)]
pub(super) struct Limits {
    buckets: HashMap<Key, Period>,
    global: Option<Period>,
    told: HashMap<Option<Key>, (Instant, Scope)>,
}

/// What a limit says to a request.
#[derive(Debug)]
pub(super) struct Verdict {
    /// How long to wait, and whose limit it is; nothing lets it pass.
    pub(super) wait: Option<(Duration, Scope)>,
    /// It came before it was allowed to.
    pub(super) violation: bool,
    pub(super) headers: HeaderMap,
}

impl Limits {
    /// Counts a request.
    pub(super) fn take(&mut self, settings: &Settings, key: &Key) -> Verdict {
        let now = Instant::now();
        for told in [None, Some(key.clone())] {
            match self.told.get(&told) {
                Some((until, scope)) if *until > now => {
                    let (wait, scope) = (*until - now, *scope);
                    return self.refuse(settings, key, wait, scope, true);
                }
                Some(_) => drop(self.told.remove(&told)),
                None => {}
            }
        }
        if settings.global_per_second > 0 {
            let second = Duration::from_secs(1);
            let global = self.global.get_or_insert(Period { began: now, used: 0 });
            if now - global.began >= second {
                *global = Period { began: now, used: 0 };
            }
            if global.used >= settings.global_per_second {
                let wait = second - (now - global.began);
                return self.refuse(settings, key, wait, Scope::Global, false);
            }
            global.used += 1;
        }
        let Some(limit) = limit_of(settings, key) else {
            return Verdict { wait: None, violation: false, headers: HeaderMap::new() };
        };
        let per = Duration::from_millis(limit.per_ms);
        let period = self.buckets.entry(key.clone()).or_insert(Period { began: now, used: 0 });
        if now - period.began >= per {
            *period = Period { began: now, used: 0 };
        }
        if period.used >= limit.requests {
            let wait = per - (now - period.began);
            return self.refuse(settings, key, wait, Scope::User, false);
        }
        period.used += 1;
        let headers = headers(key, limit, limit.requests - period.used, per - (now - period.began));
        Verdict { wait: None, violation: false, headers }
    }

    /// Tells a request to wait, and remembers it.
    pub(super) fn refuse(
        &mut self,
        settings: &Settings,
        key: &Key,
        wait: Duration,
        scope: Scope,
        violation: bool,
    ) -> Verdict {
        let told = (scope != Scope::Global).then(|| key.clone());
        self.told.insert(told, (Instant::now() + wait, scope));
        let limit = limit_of(settings, key).unwrap_or(Limit { requests: 1, per_ms: 1_000 });
        let mut headers = match scope {
            Scope::Global => HeaderMap::new(),
            Scope::User | Scope::Shared => headers(key, limit, 0, wait),
        };
        let name = match scope {
            Scope::User => "user",
            Scope::Global => "global",
            Scope::Shared => "shared",
        };
        headers.insert("x-ratelimit-scope", HeaderValue::from_static(name));
        if scope == Scope::Global {
            headers.insert("x-ratelimit-global", HeaderValue::from_static("true"));
        }
        headers.insert("retry-after", HeaderValue::from(wait.as_secs_f64().ceil() as u64));
        Verdict { wait: Some((wait, scope)), violation, headers }
    }
}

fn limit_of(settings: &Settings, key: &Key) -> Option<Limit> {
    settings.limits.get(&key.0).or_else(|| settings.limits.get("*")).copied()
}

fn headers((route, _): &Key, limit: Limit, remaining: u64, reset: Duration) -> HeaderMap {
    // A bucket's name does not tell its channel; any mixing of the route will do.
    let name = route.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let at = Duration::from_millis(now_ms()) + reset;
    let values = [
        ("x-ratelimit-limit", limit.requests.to_string()),
        ("x-ratelimit-remaining", remaining.to_string()),
        ("x-ratelimit-reset", format!("{:.3}", at.as_secs_f64())),
        ("x-ratelimit-reset-after", format!("{:.3}", reset.as_secs_f64())),
        ("x-ratelimit-bucket", format!("{name:016x}")),
    ];
    let header = |(name, value): (&'static str, String)| {
        Some((HeaderName::from_static(name), HeaderValue::from_str(&value).ok()?))
    };
    values.into_iter().filter_map(header).collect()
}
