// SPDX-License-Identifier: Apache-2.0
//! The screen: a panel for each section, of which one has the focus and scrolls.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Paragraph};
use switch::top::{Board, Section};

/// Lines of a panel beside its rows: borders and the names of columns.
const FRAME_LINES: u16 = 3;

/// What is looked at.
#[derive(Debug, Default)]
pub struct Screen {
    /// The section with the focus.
    focus: usize,
    /// Rows scrolled off, by section.
    scrolled: [usize; 4],
    /// Figures stand still.
    pub paused: bool,
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The next section.
    Next,
    /// The one before.
    Previous,
    /// Rows further down; up if negative.
    Scroll(isize),
}

impl Screen {
    /// Does what a key asks for.
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

    /// Draws everything.
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

    /// Where each section stands: as high as it needs where there is room for all, else what is left goes to the one with
    /// the focus; alone where not even that is.
    fn panels(&self, area: Rect, board: &Board) -> Vec<(usize, Rect)> {
        let wanted =
            |section: &Section| FRAME_LINES + u16::try_from(section.rows.len().max(1)).unwrap_or(u16::MAX);
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

    fn panel(&mut self, frame: &mut Frame<'_>, area: Rect, at: usize, section: &Section) {
        let rows = usize::from(area.height.saturating_sub(FRAME_LINES));
        // A panel is never scrolled further than its last row needs.
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
        // As text: columns that have no room are cut off, and the others stay where they are.
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

/// Each column's width, and whether it has figures and stands to the right.
fn widths(section: &Section) -> Vec<(usize, bool)> {
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
