// SPDX-License-Identifier: Apache-2.0
use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn rows(lines: &[&str]) -> Vec<Vec<String>> {
    lines.iter().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

fn board(ports: usize) -> Board {
    let port = |n: usize| rows(&[&format!("{n} p{n} up 1.20k 614k 0 0 0 3")]).remove(0);
    Board {
        summary: "packets/s: received 1.20k".to_owned(),
        sections: [
            TopSection {
                title: "ports",
                head: vec!["port", "name", "link", "rx", "bit/s", "lost", "tx", "bit/s", "lost"],
                rows: (1..=ports).map(port).collect(),
            },
            TopSection {
                title: "lanes",
                head: vec!["lane", "frames/s", "p99"],
                rows: rows(&["low_latency 200 0.812", "normal 0 -"]),
            },
            TopSection {
                title: "tables",
                head: vec!["table", "LUT", "engine"],
                rows: rows(&["0 99.8 exact", "12 - lpm"]),
            },
            TopSection { title: "drops", head: vec!["reason", "in all"], rows: Vec::new() },
        ],
    }
}

fn drawn(screen: &mut Screen, board: &Board, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame, "/run/shunt/s1.sock", board)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(|y| line(y) + "\n").collect()
}

#[test]
fn all_sections_stand_below_one_another() {
    let expected = "\
shunt top  /run/shunt/s1.sock
packets/s: received 1.20k
┌ ports ───────────────────────────────────────────────┐
│port  name  link     rx  bit/s  lost  tx  bit/s  lost │
│   1  p1    up    1.20k   614k     0   0      0     3 │
│   2  p2    up    1.20k   614k     0   0      0     3 │
└──────────────────────────────────────────────────────┘
┌ lanes ───────────────────────────────────────────────┐
│lane         frames/s    p99                          │
│low_latency       200  0.812                          │
│normal              0      -                          │
└──────────────────────────────────────────────────────┘
┌ tables ──────────────────────────────────────────────┐
│table   LUT  engine                                   │
│    0  99.8  exact                                    │
│   12     -  lpm                                      │
└──────────────────────────────────────────────────────┘
┌ drops ───────────────────────────────────────────────┐
│reason  in all                                        │
│                                                      │
└──────────────────────────────────────────────────────┘


q quit  p pause  tab, left, right: section  up, down: sc
";
    assert_eq!(drawn(&mut Screen::default(), &board(2), 56, 24), expected);
}

#[test]
fn the_section_with_the_focus_gets_the_spare_lines_and_scrolls() {
    let board = board(40);
    let mut screen = Screen::default();
    let before = drawn(&mut screen, &board, 60, 26);
    assert!(before.contains("┌ ports (1 to 6 of 40) ─"), "{before}");
    assert!(before.contains("│reason  in all"), "{before}");
    screen.go(Move::Scroll(10), &board);
    screen.go(Move::Scroll(-3), &board);
    screen.paused = true;
    let after = drawn(&mut screen, &board, 60, 26);
    assert!(after.contains("┌ ports (8 to 13 of 40) ─") && after.contains("│  13  p13   up"), "{after}");
    assert!(after.contains("s1.sock  [paused]"), "{after}");
    screen.go(Move::Scroll(1_000), &board);
    let end = drawn(&mut screen, &board, 60, 26);
    assert!(end.contains("┌ ports (35 to 40 of 40) ─"), "{end}");
    screen.go(Move::Scroll(-1), &board);
    assert!(drawn(&mut screen, &board, 60, 26).contains("┌ ports (34 to 39 of 40) ─"));
}

#[test]
fn on_a_small_screen_the_section_with_the_focus_stands_alone() {
    let board = board(3);
    let mut screen = Screen::default();
    screen.go(Move::Previous, &board);
    screen.go(Move::Previous, &board);
    let small = drawn(&mut screen, &board, 40, 9);
    assert!(small.contains("┌ tables ─") && small.contains("│   12     -  lpm"), "{small}");
    assert!(!small.contains("ports"), "{small}");
    (0..3).for_each(|_| screen.go(Move::Next, &board));
    assert!(drawn(&mut screen, &board, 40, 9).contains("┌ lanes ─"));
    // Columns that are cut off do not move the other columns.
    let narrow = drawn(&mut screen, &board, 20, 9);
    assert!(
        narrow.contains("│lane         frame│") && narrow == drawn(&mut screen, &board, 20, 9),
        "{narrow}"
    );
    // Screens that are too small for any panel must not panic.
    for (width, height) in [(1, 1), (3, 2), (20, 3), (5, 40)] {
        drawn(&mut screen, &board, width, height);
    }
}

#[test]
fn a_board_may_lose_rows_while_it_is_scrolled() {
    let mut screen = Screen::default();
    screen.go(Move::Scroll(39), &board(40));
    let less = drawn(&mut screen, &board(2), 60, 26);
    assert!(less.contains("│   1  p1"), "{less}");
}
