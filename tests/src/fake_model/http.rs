//! HTTP/1.1 as bytes on a socket.
//!
//! Owns reading one request and framing one response. A library's server hides when bytes reach the socket and when
//! the peer went, and these are what the fake is for; so the framing is done here. Refuses any other version.

use std::fmt::Write as _;
use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::log::DropHow;
use super::plan::Head;
use crate::clock::Stamp;

/// The largest request that is read, in bytes.
const LIMIT: usize = 256 << 20;

/// A request as it arrived.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) began: Stamp,
    pub(super) arrived: Stamp,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// What came of waiting for a request.
#[derive(Debug)]
pub(super) enum Incoming {
    Request(Request),
    Gone(Stamp, DropHow),
    Unreadable(String),
}

/// The reading side of a connection, with what was read ahead.
pub(super) struct Reader<'a> {
    half: ReadHalf<'a>,
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(half: ReadHalf<'a>) -> Reader<'a> {
        Reader { half, buffer: Vec::new() }
    }

    /// Reads the next request.
    pub(super) async fn request(&mut self) -> Incoming {
        let mut began = (!self.buffer.is_empty()).then(Stamp::now);
        loop {
            match parse(&self.buffer) {
                Err(reason) => return Incoming::Unreadable(reason),
                Ok(Some((mut request, length))) => {
                    request.arrived = Stamp::now();
                    request.began = began.unwrap_or(request.arrived);
                    self.buffer.drain(..length);
                    return Incoming::Request(request);
                }
                Ok(None) if self.buffer.len() > LIMIT => {
                    return Incoming::Unreadable(format!("the request is larger than {LIMIT} bytes"));
                }
                Ok(None) => {}
            }
            if let Some(how) = self.fill().await {
                return Incoming::Gone(Stamp::now(), how);
            }
            began.get_or_insert_with(Stamp::now);
        }
    }

    /// Waits until the peer is gone, and tells when that was seen.
    pub(super) async fn gone(&mut self) -> (Stamp, DropHow) {
        loop {
            if let Some(how) = self.fill().await {
                return (Stamp::now(), how);
            }
        }
    }

    /// Reads what is there; what came instead if the peer is gone. Cancellation loses nothing.
    async fn fill(&mut self) -> Option<DropHow> {
        match self.half.read_buf(&mut self.buffer).await {
            Ok(0) => Some(DropHow::Closed),
            Ok(_) => None,
            Err(_) => Some(DropHow::Reset),
        }
    }
}

/// Reads one request from the front of a buffer: the request and its length, or nothing yet.
fn parse(buffer: &[u8]) -> Result<Option<(Request, usize)>, String> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(buffer) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(format!("the request's head cannot be read: {error}")),
    };
    let owned = |header: &httparse::Header<'_>| {
        (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
    };
    let headers: Vec<(String, String)> = parsed.headers.iter().map(owned).collect();
    let header = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let body = if header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        unchunk(&buffer[head..])?
    } else {
        let length = header("content-length").unwrap_or("0");
        let length: usize = length.parse().map_err(|_| format!("content-length is {length:?}"))?;
        buffer.get(head..head.saturating_add(length)).map(|body| (body.to_vec(), length))
    };
    let Some((body, length)) = body else { return Ok(None) };
    let (method, path) =
        (parsed.method.unwrap_or_default().to_owned(), parsed.path.unwrap_or_default().to_owned());
    let now = Stamp::now();
    Ok(Some((Request { began: now, arrived: now, method, path, headers, body }, head + length)))
}

/// Decodes a chunked body: its bytes and its length on the wire, or nothing yet.
fn unchunk(wire: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let (line, size) = match httparse::parse_chunk_size(&wire[at..]) {
            Ok(httparse::Status::Complete((line, size))) => (line, size as usize),
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(format!("the chunk at byte {at} of the body has no size")),
        };
        let (from, to) = (at + line, at.saturating_add(line).saturating_add(size));
        let Some(chunk) = wire.get(from..to.saturating_add(2)) else { return Ok(None) };
        body.extend(&chunk[..size]);
        at = to + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

/// The writing side of one response.
pub(super) struct Writer<'a, 'b> {
    half: &'b mut WriteHalf<'a>,
    chunked: bool,
}

impl<'a, 'b> Writer<'a, 'b> {
    pub(super) fn new(half: &'b mut WriteHalf<'a>) -> Writer<'a, 'b> {
        Writer { half, chunked: false }
    }

    pub(super) async fn head(&mut self, head: &Head) -> io::Result<()> {
        self.chunked = head.length.is_none();
        let mut text = format!(
            "HTTP/1.1 {} {}\r\ncontent-type: {}\r\n",
            head.status,
            reason(head.status),
            head.content_type
        );
        let _ = match head.length {
            Some(length) => write!(text, "content-length: {length}\r\n"),
            None => write!(text, "cache-control: no-cache\r\ntransfer-encoding: chunked\r\n"),
        };
        if let Some(retry_after) = &head.retry_after {
            let _ = write!(text, "retry-after: {retry_after}\r\n");
        }
        text.push_str("\r\n");
        self.half.write_all(text.as_bytes()).await
    }

    /// Writes bytes of the body: one chunk, one write.
    pub(super) async fn body(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.chunked || bytes.is_empty() {
            return self.half.write_all(bytes).await;
        }
        let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
        framed.extend(bytes);
        framed.extend(b"\r\n");
        self.half.write_all(&framed).await
    }

    /// Says that the body is whole.
    pub(super) async fn end(&mut self) -> io::Result<()> {
        if self.chunked { self.half.write_all(b"0\r\n\r\n").await } else { Ok(()) }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Scripted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_once_it_is_whole() {
        let wire = b"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET";
        for length in 0..wire.len() - 3 {
            assert!(parse(&wire[..length]).unwrap().is_none());
        }
        let (request, length) = parse(wire).unwrap().unwrap();
        assert_eq!((request.body.as_slice(), length), (&b"abc"[..], wire.len() - 3));
    }

    #[test]
    fn chunked_bodies_are_joined() {
        let head = b"POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
        let wire = [&head[..], b"3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"].concat();
        let (request, length) = parse(&wire).unwrap().unwrap();
        assert_eq!((request.body.as_slice(), length), (&b"abcd"[..], wire.len()));
        assert!(parse(&wire[..wire.len() - 1]).unwrap().is_none());
        assert!(parse(&[&head[..], b"zz\r\n"].concat()).is_err());
    }
}
