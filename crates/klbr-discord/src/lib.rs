//! Discord behind klbr's channel port.
