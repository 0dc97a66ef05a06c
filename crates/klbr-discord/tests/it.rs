//! The adapter against a server on loopback.
