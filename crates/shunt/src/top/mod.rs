// SPDX-License-Identifier: Apache-2.0
//! `shunt top`: reads the counters of a switch once a second and shows the rates, full-screen or as plain
//! text.
//!
//! Begin with [`run`].

mod screen;

use crate::error::CommandError;
use crate::print;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use screen::{Move, Screen};
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;
use switch::control::{Client, ClientError};
use switch::top::Reading;

/// Time between two readings.
const PERIOD: Duration = Duration::from_secs(1);

/// Longest wait for a key press before new readings are checked.
const KEY_WAIT: Duration = Duration::from_millis(50);

/// Shows the rates and gauges of a switch until the user quits. If `boards` is given, prints them `boards`
/// times as plain text instead. Without a terminal, the output is always plain text.
pub fn run(client: Client, switch: &str, boards: Option<u64>) -> Result<(), CommandError> {
    match boards {
        Some(boards) => text(client, Some(boards)),
        None if !io::stdout().is_terminal() || !io::stdin().is_terminal() => text(client, None),
        None => {
            let mut terminal = ratatui::try_init().map_err(CommandError::Output)?;
            let done = watch(&mut terminal, client, switch);
            // Restore the terminal before an error is printed.
            ratatui::try_restore().map_err(CommandError::Output)?;
            done
        }
    }
}

/// Prints the rates and gauges once a second, `boards` times or until the output is closed.
fn text(mut client: Client, boards: Option<u64>) -> Result<(), CommandError> {
    let mut before = Reading::take(&mut client)?;
    let mut printed = 0;
    while boards.is_none_or(|boards| printed < boards) {
        thread::sleep(PERIOD);
        let now = Reading::take(&mut client)?;
        let mut out = io::stdout().lock();
        if printed > 0 {
            writeln!(out)?;
        }
        print::board(&mut out, &now.since(&before))?;
        out.flush()?;
        (before, printed) = (now, printed + 1);
    }
    Ok(())
}

/// Starts a thread that takes readings, so that keys work while a switch is slow to answer.
fn readings(mut client: Client) -> Receiver<Result<Reading, ClientError>> {
    let (sender, readings) = channel();
    thread::spawn(move || {
        loop {
            let reading = Reading::take(&mut client);
            let failed = reading.is_err();
            if sender.send(reading).is_err() || failed {
                return;
            }
            thread::sleep(PERIOD);
        }
    });
    readings
}

fn watch(terminal: &mut DefaultTerminal, client: Client, switch: &str) -> Result<(), CommandError> {
    let readings = readings(client);
    // There is no earlier reading yet, so the first board has gauges and no rates.
    let mut last = readings.recv().map_err(|_| CommandError::Output(io::ErrorKind::BrokenPipe.into()))??;
    let mut board = last.since(&last);
    let mut screen = Screen::default();
    loop {
        terminal.draw(|frame| screen.draw(frame, switch, &board)).map_err(CommandError::Output)?;
        if event::poll(KEY_WAIT).map_err(CommandError::Input)? {
            // Other events, such as a new window size, need at most a redraw.
            match event::read().map_err(CommandError::Input)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match asked(key) {
                    Asked::Quit => return Ok(()),
                    Asked::Pause => screen.paused = !screen.paused,
                    Asked::Move(to) => screen.go(to, &board),
                    Asked::Nothing => {}
                },
                _ => {}
            }
        }
        match readings.try_recv() {
            Ok(reading) => {
                let now = reading?;
                if !screen.paused {
                    board = now.since(&last);
                }
                last = now;
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Quit,
    Pause,
    Move(Move),
    Nothing,
}

fn asked(key: KeyEvent) -> Asked {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Asked::Quit,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Asked::Quit,
        KeyCode::Char('p' | ' ') => Asked::Pause,
        KeyCode::Tab | KeyCode::Right => Asked::Move(Move::Next),
        KeyCode::BackTab | KeyCode::Left => Asked::Move(Move::Previous),
        KeyCode::Down => Asked::Move(Move::Scroll(1)),
        KeyCode::Up => Asked::Move(Move::Scroll(-1)),
        KeyCode::PageDown => Asked::Move(Move::Scroll(10)),
        KeyCode::PageUp => Asked::Move(Move::Scroll(-10)),
        _ => Asked::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_what_the_bottom_line_says() {
        let key = |code| asked(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!((key(KeyCode::Char('q')), key(KeyCode::Char('p'))), (Asked::Quit, Asked::Pause));
        assert_eq!(
            (key(KeyCode::Tab), key(KeyCode::Left)),
            (Asked::Move(Move::Next), Asked::Move(Move::Previous))
        );
        assert_eq!(key(KeyCode::Up), Asked::Move(Move::Scroll(-1)));
        assert_eq!(key(KeyCode::Char('c')), Asked::Nothing);
        assert_eq!(asked(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Asked::Quit);
    }
}
