//! Connections that can be cut at any byte.
//!
//! Owns the listener and the blade: a request's handler tells its own connection when to end. Refuses to know what is
//! written.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// No cut is planned.
const WHOLE: i64 = -1;

/// A connection, as its handlers see it.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// Counts connections, from 1.
    pub(super) number: u64,
    /// How many bytes of the next answer's body are still written.
    left: Arc<AtomicI64>,
}

impl Peer {
    /// Ends the connection in place of the next answer.
    pub(super) fn cut(&self) {
        self.left.store(0, Ordering::Release);
    }

    /// Ends the connection after the next answer's head and so many bytes of its body, at least one.
    pub(super) fn cut_after(&self, bytes: u32) {
        self.left.store(i64::from(bytes.max(1)), Ordering::Release);
    }
}

/// A listener whose connections may be cut.
#[derive(Debug)]
pub(super) struct Cuttable {
    pub(super) listener: TcpListener,
    pub(super) count: AtomicU64,
}

impl Listener for Cuttable {
    type Io = Stream;
    type Addr = Peer;

    async fn accept(&mut self) -> (Stream, Peer) {
        let (stream, _) = Listener::accept(&mut self.listener).await;
        // Without it a small write may wait for the peer's acknowledgement; failing to set it costs only latency.
        let _ = stream.set_nodelay(true);
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let left = Arc::new(AtomicI64::new(WHOLE));
        (Stream { stream, left: Arc::clone(&left) }, Peer { number, left })
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer { number: 0, left: Arc::new(AtomicI64::new(WHOLE)) })
    }
}

impl Connected<IncomingStream<'_, Cuttable>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Cuttable>) -> Peer {
        stream.remote_addr().clone()
    }
}

/// A stream that ends where its [`Peer`] says.
#[derive(Debug)]
pub(super) struct Stream {
    stream: TcpStream,
    left: Arc<AtomicI64>,
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let cut = || Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        match self.left.load(Ordering::Acquire) {
            WHOLE => Pin::new(&mut self.stream).poll_write(cx, bytes),
            0 => cut(),
            left => {
                let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |at| at + 4);
                let allowed = usize::try_from(left).unwrap_or(0) + head;
                let kept = &bytes[..allowed.min(bytes.len())];
                let written = std::task::ready!(Pin::new(&mut self.stream).poll_write(cx, kept))?;
                let body = i64::try_from(written.saturating_sub(head)).unwrap_or(left);
                self.left.store((left - body).max(0), Ordering::Release);
                Poll::Ready(Ok(written))
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
