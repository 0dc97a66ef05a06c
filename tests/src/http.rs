//! The HTTP client of the proofs.

/// A client for loopback.
pub fn client() -> reqwest::Client {
    // The client wants a provider to be there even where nothing is encrypted; the first one stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().expect("a client without settings can be made")
}
