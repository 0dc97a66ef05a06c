//! The terminal interface: what it looks like, from a view and an editor. Draws; decides nothing.

mod rows;

use klbr_core::time::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};

use super::editor::Editor;
use crate::text::{clean_line, fit, width};
use crate::view::{Kind, View};
use rows::{Row, Rows};

/// The most rows that what goes on may take.
const STATES: usize = 5;
/// The most rows that messages on their way may take.
const PENDING: usize = 3;
/// The most rows that the editor may take.
const EDITOR: usize = 6;
/// From so many columns on, keys are told in words.
const WIDE: usize = 70;
/// How much of what streams is laid out: more than any screen shows.
const STREAMED: usize = 8_000;

/// What is drawn.
pub(super) struct Scene<'a> {
    pub(super) view: &'a View,
    pub(super) editor: &'a Editor,
    /// Whom one talks to.
    pub(super) title: &'a str,
    /// What is wrong with the connection, if anything is.
    pub(super) lost: Option<&'a str>,
    /// What the keys do now.
    pub(super) help: &'a str,
    pub(super) now: Timestamp,
}

/// What stays between two drawings.
#[derive(Debug, Default)]
pub(super) struct Screen {
    rows: Rows,
    /// How many rows one has scrolled up from the newest.
    up: usize,
    page: usize,
}

impl Screen {
    /// Scrolls by rows, up when positive.
    pub(super) fn scroll(&mut self, by: isize) {
        self.up = self.up.saturating_add_signed(by);
    }

    /// Scrolls by pages, up when positive.
    pub(super) fn scroll_pages(&mut self, by: isize) {
        self.scroll(by * self.page.saturating_sub(1).max(1).cast_signed());
    }

    /// Scrolls to the oldest row.
    pub(super) fn show_oldest(&mut self) {
        self.up = usize::MAX;
    }

    /// Follows the newest row.
    pub(super) fn show_newest(&mut self) {
        self.up = 0;
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let area = frame.area();
        let columns = usize::from(area.width);
        let states = states(scene, columns);
        let (editor, cursor) = scene.editor.rows(columns.saturating_sub(2));
        let room = usize::from(area.height).saturating_sub(4);
        let editor_rows = editor.len().min(EDITOR).min(room.max(1));
        let state_rows = states.len().min(room.saturating_sub(editor_rows));
        let [head, body, doing, writing, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(clamp(state_rows)),
            Constraint::Length(clamp(editor_rows + 1)),
            Constraint::Length(1),
        ])
        .areas(area);
        self.draw_history(frame, body, scene);
        self.draw_head(frame, head, scene);
        frame.render_widget(Paragraph::new(states), doing);
        draw_editor(frame, writing, &editor, cursor, editor_rows);
        let help = Span::styled(fit(scene.help, columns), Style::new().add_modifier(Modifier::DIM));
        frame.render_widget(Paragraph::new(Line::from(help)), foot);
    }

    fn draw_head(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let columns = usize::from(area.width);
        let right = match (scene.lost, self.up) {
            (Some(why), _) => format!("not connected: {}", clean_line(why)),
            (None, 0) => String::new(),
            (None, up) => format!("{up} rows below"),
        };
        let right = fit(&right, columns * 2 / 3);
        let left = fit(scene.title, columns.saturating_sub(width(&right) + 1));
        let gap = columns.saturating_sub(width(&left) + width(&right));
        let style = Style::new().add_modifier(Modifier::REVERSED);
        let alarm = if scene.lost.is_some() { style.fg(Color::Red) } else { style };
        let line = Line::from(vec![
            Span::styled(left, style.add_modifier(Modifier::BOLD)),
            Span::styled(" ".repeat(gap), style),
            Span::styled(right, alarm),
        ]);
        frame.render_widget(Paragraph::new(line), area);
    }

    fn draw_history(&mut self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let columns = usize::from(area.width);
        let height = usize::from(area.height);
        self.page = height;
        let added = self.rows.follow(scene.view.entries(), columns);
        let streaming: Vec<Row> = scene
            .view
            .streaming()
            .into_iter()
            .flat_map(|mut entry| {
                let from = entry.text.char_indices().rev().nth(STREAMED).map_or(0, |(at, _)| at);
                entry.text.drain(..from);
                rows::of(&entry, columns)
            })
            .collect();
        let total = self.rows.len() + streaming.len();
        if self.up > 0 {
            // What one reads stays where it is while more comes in.
            self.up = self.up.saturating_add(added).min(total.saturating_sub(height));
        }
        let end = total - self.up;
        let shown = end.saturating_sub(height)..end;
        let kept = self.rows.len();
        let lines: Vec<Line<'_>> = shown
            .map(|at| if at < kept { self.rows.get(at) } else { &streaming[at - kept] })
            .map(|row| line(row))
            .collect();
        let below = clamp(height.saturating_sub(lines.len()));
        let area = Rect { y: area.y + below, height: area.height - below, ..area };
        frame.render_widget(Paragraph::new(lines), area);
    }
}

fn line(row: &Row) -> Line<'_> {
    let style = style(row.kind);
    let label = style.remove_modifier(Modifier::ITALIC | Modifier::DIM).add_modifier(Modifier::BOLD);
    Line::from(vec![Span::styled(row.head.as_str(), label), Span::styled(row.text.as_str(), style)])
}

/// How a kind looks. Colour never tells alone: each row begins with its label and its bar.
fn style(kind: Kind) -> Style {
    let plain = Style::new();
    match kind {
        Kind::You => plain.fg(Color::Cyan),
        Kind::Heard => plain.fg(Color::Blue),
        Kind::Think => plain.fg(Color::Magenta).add_modifier(Modifier::ITALIC | Modifier::DIM),
        Kind::Scratch => plain.add_modifier(Modifier::DIM),
        Kind::Delivered => plain.fg(Color::Green).add_modifier(Modifier::BOLD),
        Kind::Action | Kind::Wait | Kind::Nudge | Kind::Note => plain.fg(Color::Yellow),
        Kind::Held => plain.fg(Color::Yellow).add_modifier(Modifier::BOLD),
        Kind::Failure => plain.fg(Color::Red),
    }
}

/// What goes on, and this client's messages that are on their way.
fn states(scene: &Scene<'_>, columns: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    let mut add = |kind: Kind, text: String| {
        lines.push(Line::from(Span::styled(fit(&text, columns), style(kind))));
    };
    let states = scene.view.states(scene.now);
    for state in states.iter().take(STATES) {
        let keys = match state.kind {
            Kind::Held if columns >= WIDE => "  (ctrl-y allow, ctrl-n deny)",
            Kind::Held => " ^y/^n",
            _ => "",
        };
        // What stands at the end must be seen whatever the width.
        let text = fit(&format!("{} {}", mark(state.kind), state.text), columns.saturating_sub(keys.len()));
        add(state.kind, format!("{text}{keys}"));
    }
    if states.len() > STATES {
        add(Kind::Note, format!("  and {} more", states.len() - STATES));
    }
    let pending = scene.view.pending();
    for pending in pending.iter().take(PENDING) {
        let how = if pending.event.is_some() { "kept" } else { "sending" };
        add(Kind::You, format!("» {how}: {}", clean_line(&pending.text)));
    }
    if pending.len() > PENDING {
        add(Kind::You, format!("» and {} more", pending.len() - PENDING));
    }
    lines
}

fn mark(kind: Kind) -> &'static str {
    match kind {
        Kind::Wait => "wait:",
        Kind::Failure => "failure:",
        Kind::Held => "held:",
        Kind::Action => "action:",
        _ => "now:",
    }
}

fn draw_editor(frame: &mut Frame<'_>, area: Rect, rows: &[String], cursor: (usize, usize), visible: usize) {
    let first = (cursor.1 + 1).saturating_sub(visible);
    let lines: Vec<Line<'_>> = rows
        .iter()
        .enumerate()
        .skip(first)
        .take(visible)
        .map(|(n, row)| Line::from(format!("{} {row}", if n == 0 { ">" } else { " " })))
        .collect();
    frame.render_widget(Paragraph::new(lines).block(Block::new().borders(Borders::TOP)), area);
    let x = area.x.saturating_add(2).saturating_add(clamp(cursor.0));
    let y = area.y.saturating_add(1).saturating_add(clamp(cursor.1 - first));
    frame.set_cursor_position(Position::new(x.min(area.right().saturating_sub(1)), y));
}

fn clamp(rows: usize) -> u16 {
    u16::try_from(rows).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
