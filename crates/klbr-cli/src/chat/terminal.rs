//! The terminal interface: keys in, drawings out, until one leaves.

use std::io;
use std::time::{Duration, Instant};

use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, EventStream, KeyCode, KeyEvent, KeyEventKind,
    KeyModifiers,
};
use crossterm::execute;
use futures_util::{FutureExt, StreamExt};
use tokio::signal::unix::{SignalKind, signal};

use super::editor::Editor;
use super::outbox::Wish;
use super::screen::{Scene, Screen};
use super::session::{Session, now};
use crate::error::Outcome;

/// How often countdowns and elapsed times are drawn anew.
const TICK: Duration = Duration::from_millis(500);
/// Within so long, a second ctrl-c means it.
const MEANT: Duration = Duration::from_secs(3);
/// How many updates are taken in before the screen is drawn.
const BURST: usize = 512;

const HELP: &str =
    "enter send · alt-enter new line · esc interrupt · ctrl-c twice leave · pgup/pgdn scroll · ↑↓ past";
const LEAVE: &str = "ctrl-c again leaves";

/// What a key comes to.
#[derive(Debug, PartialEq, Eq)]
enum Then {
    Stay,
    Leave,
}

struct Terminal {
    session: Session,
    editor: Editor,
    screen: Screen,
    title: String,
    leaving: Option<Instant>,
}

/// Talks until the operator leaves. The terminal is given back as it was, whatever happens.
pub(super) async fn talk(session: Session, title: String) -> Outcome {
    let mut terminal = ratatui::try_init()?;
    let _restore = Restore;
    execute!(io::stdout(), EnableBracketedPaste)?;
    let mut talk =
        Terminal { session, editor: Editor::default(), screen: Screen::default(), title, leaving: None };
    let mut keys = EventStream::new();
    let mut tick = tokio::time::interval(TICK);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    loop {
        terminal.draw(|frame| talk.draw(frame))?;
        tokio::select! {
            key = keys.next() => match key {
                Some(event) => if talk.take(&event?) == Then::Leave { return Ok(()) },
                None => return Ok(()),
            },
            _ = talk.session.next() => {
                // What is there already is taken in before the next drawing.
                for _ in 0..BURST {
                    if talk.session.next().now_or_never().is_none() {
                        break;
                    }
                }
            }
            _ = tick.tick() => {}
            _ = terminate.recv() => return Ok(()),
            _ = hang_up.recv() => return Ok(()),
        }
    }
}

struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that is gone.
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        ratatui::restore();
    }
}

impl Terminal {
    fn draw(&mut self, frame: &mut ratatui::Frame<'_>) {
        let leaving = self.leaving.is_some_and(|since| since.elapsed() < MEANT);
        let scene = Scene {
            view: self.session.view(),
            editor: &self.editor,
            title: &self.title,
            lost: self.session.lost(),
            help: if leaving { LEAVE } else { HELP },
            now: now(),
        };
        self.screen.draw(frame, &scene);
    }

    fn take(&mut self, event: &Event) -> Then {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => return self.press(*key),
            Event::Paste(text) => self.editor.insert(text),
            Event::Key(_) | Event::Mouse(_) | Event::Resize(..) | Event::FocusGained | Event::FocusLost => {}
        }
        Then::Stay
    }

    fn press(&mut self, key: KeyEvent) -> Then {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        if control && key.code == KeyCode::Char('c') {
            if self.leaving.is_some_and(|since| since.elapsed() < MEANT) {
                return Then::Leave;
            }
            self.leaving = Some(Instant::now());
            return Then::Stay;
        }
        self.leaving = None;
        match key.code {
            KeyCode::Char('d') if control && self.editor.is_empty() => return Then::Leave,
            KeyCode::Char('y') if control => self.decide(true),
            KeyCode::Char('n') if control => self.decide(false),
            KeyCode::Char('a') if control => self.editor.home(),
            KeyCode::Char('e') if control => self.editor.end(),
            KeyCode::Char('u') if control => self.editor.delete_to_start(),
            KeyCode::Char('w') if control => self.editor.delete_word(),
            KeyCode::Char('j') if control => self.editor.insert("\n"),
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => self.editor.insert("\n"),
            KeyCode::Enter => {
                if let Some(text) = self.editor.take() {
                    self.screen.show_newest();
                    self.session.say(&text);
                }
            }
            KeyCode::Esc => {
                self.session.note("you interrupt");
                self.session.ask(Wish::Interrupt);
            }
            KeyCode::Char(_) if control || alt => {}
            KeyCode::Char(c) => self.editor.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if control || alt => self.editor.delete_word(),
            KeyCode::Backspace => self.editor.backspace(),
            KeyCode::Delete => self.editor.delete(),
            KeyCode::Left if control || alt => self.editor.jump_word_left(),
            KeyCode::Right if control || alt => self.editor.jump_word_right(),
            KeyCode::Left => self.editor.left(),
            KeyCode::Right => self.editor.right(),
            KeyCode::Home if control => self.screen.show_oldest(),
            KeyCode::End if control => self.screen.show_newest(),
            KeyCode::Home => self.editor.home(),
            KeyCode::End => self.editor.end(),
            KeyCode::Up if control => self.screen.scroll(1),
            KeyCode::Down if control => self.screen.scroll(-1),
            KeyCode::Up => self.editor.browse(true),
            KeyCode::Down => self.editor.browse(false),
            KeyCode::PageUp => self.screen.scroll_pages(1),
            KeyCode::PageDown => self.screen.scroll_pages(-1),
            _ => {}
        }
        Then::Stay
    }

    fn decide(&mut self, allow: bool) {
        if let Some(action) = self.session.view().held() {
            self.session.note(if allow { "you allow it" } else { "you deny it" });
            self.session.ask(Wish::Resolve(action, allow));
        }
    }
}
