// SPDX-License-Identifier: Apache-2.0
//! The screen of `shunt top`: one panel per section. One panel has the focus and scrolls.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Paragraph};
use switch::top::{Board, TopSection};

/// Number of lines of a panel in addition to its rows: two borders and the column names.
const FRAME_LINES: u16 = 3;

/// State of the screen: focus, scroll positions, and whether the display is paused.
#[derive(Debug, Default)]
pub struct Screen {
    /// Index of the section with the focus.
    focus: usize,
    /// Number of rows scrolled past, by section.
    scrolled: [usize; 4],
    /// Whether the figures are frozen.
    pub paused: bool,
}

/// A movement on the screen, caused by a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Moves the focus to the next section.
    Next,
    /// Moves the focus to the previous section.
    Previous,
    /// Scrolls down by this number of rows, or up if negative.
    Scroll(isize),
}

impl Screen {
    /// Applies a movement.
    pub fn go(&mut self, to: Move, board: &Board) {
        let sections = board.sections.len();
        match to {
            Move::Next => self.focus = (self.focus + 1) % sections,
            Move::Previous => self.focus = (self.focus + sections - 1) % sections,
            Move::Scroll(rows) => {
                let last = board.sections[self.focus].rows.len().saturating_sub(1);
                self.scrolled[self.focus] = self.scrolled[self.focus].saturating_add_signed(rows).min(last);
            }
        }
    }

    /// Draws the whole screen.
    pub fn draw(&mut self, frame: &mut Frame<'_>, switch: &str, board: &Board) {
        let paused = if self.paused { "  [paused]" } else { "" };
        let head = [
            Line::styled(format!("shunt top  {switch}{paused}"), Modifier::BOLD),
            Line::raw(board.summary.as_str()),
        ];
        let [top, middle, bottom] =
            Layout::vertical([Constraint::Length(2), Constraint::Min(0), Constraint::Length(1)])
                .areas(frame.area());
        frame.render_widget(Paragraph::new(Text::from_iter(head)), top);
        for (at, area) in self.panels(middle, board) {
            self.panel(frame, area, at, &board.sections[at]);
        }
        let keys = "q quit  p pause  tab, left, right: section  up, down: scroll";
        frame.render_widget(Paragraph::new(keys).style(Modifier::DIM), bottom);
    }

    /// Returns the area of each section. Every panel gets the height that it needs, as far as the screen
    /// allows. If the screen is too small for all panels, only the panel with the focus is shown.
    fn panels(&self, area: Rect, board: &Board) -> Vec<(usize, Rect)> {
        let wanted =
            |section: &TopSection| FRAME_LINES + u16::try_from(section.rows.len().max(1)).unwrap_or(u16::MAX);
        let heights = board.sections.each_ref().map(wanted);
        let least = heights.map(|height| height.min(FRAME_LINES + 2));
        if area.height < least.iter().sum() {
            return vec![(self.focus, area)];
        }
        let mut given = least;
        let mut left = area.height - least.iter().sum::<u16>();
        let order = [self.focus, 0, 1, 2, 3];
        for at in order {
            let more = (heights[at] - given[at]).min(left);
            given[at] += more;
            left -= more;
        }
        let areas: [Rect; 4] = Layout::vertical(given.map(Constraint::Length)).areas(area);
        areas.into_iter().enumerate().collect()
    }

    fn panel(&mut self, frame: &mut Frame<'_>, area: Rect, at: usize, section: &TopSection) {
        let rows = usize::from(area.height.saturating_sub(FRAME_LINES));
        // Limit the scroll position, so that the last row stays at the bottom of the panel.
        self.scrolled[at] = self.scrolled[at].min(section.rows.len().saturating_sub(rows));
        let first = self.scrolled[at];
        let hidden = section.rows.len() > rows;
        let title = match hidden {
            true => {
                let last = section.rows.len().min(first + rows);
                format!(" {} ({} to {last} of {}) ", section.title, first + 1, section.rows.len())
            }
            false => format!(" {} ", section.title),
        };
        let style = if at == self.focus { Style::new().bold() } else { Style::new().dim() };
        let widths = widths(section);
        // Draws plain text lines. Columns that do not fit are cut off, and the other columns keep their
        // positions.
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells = cells.zip(&widths).map(|(text, (width, right))| match right {
                true => format!("{text:>width$}"),
                false => format!("{text:<width$}"),
            });
            cells.collect::<Vec<_>>().join("  ")
        };
        let head = Line::styled(line(&mut section.head.iter().copied()), Modifier::UNDERLINED);
        let body = section.rows.iter().skip(first).take(rows);
        let body = body.map(|row| Line::raw(line(&mut row.iter().map(String::as_str))));
        let text = Text::from_iter(std::iter::once(head).chain(body));
        let block = Block::bordered().title(title).border_style(style);
        frame.render_widget(Paragraph::new(text).block(block), area);
    }
}

/// Returns each column's width, and whether it has figures and is right-aligned.
fn widths(section: &TopSection) -> Vec<(usize, bool)> {
    let column = |(at, name): (usize, &&str)| {
        let cells = || section.rows.iter().filter_map(|row| row.get(at));
        let longest = cells().map(|cell| cell.chars().count()).max().unwrap_or(0).max(name.len());
        let figures =
            cells().all(|cell| cell == "-" || cell.starts_with(|first: char| first.is_ascii_digit()));
        (longest, figures)
    };
    section.head.iter().enumerate().map(column).collect()
}

#[cfg(test)]
mod tests;
