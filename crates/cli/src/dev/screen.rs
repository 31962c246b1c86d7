//! The terminal: a screen of its own while `windlass dev` runs, and everything as before when it ends.

use std::io::{IsTerminal, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::board::{Line, Span};
use crate::view::paint::paint;

/// The other screen, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the first place; and, after each line, away with what was there before.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
/// What a terminal has that does not say.
const SIZE_DEFAULT: (usize, usize) = (80, 24);

/// A terminal that is drawn on; dropped, it is as it was.
pub(crate) struct Screen {
    before: Option<Termios>,
    drawn: Option<(usize, usize, Vec<String>)>,
}

impl Screen {
    /// Takes the terminal, if standard output is one.
    pub(crate) fn take() -> Option<Self> {
        if !std::io::stdout().is_terminal() {
            return None;
        }
        // What is typed would be drawn over the screen.
        let before = tcgetattr(std::io::stdin()).ok();
        if let Some(mut quiet) = before.clone() {
            quiet.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet);
        }
        put(ENTER);
        Some(Self { before, drawn: None })
    }

    /// Its width and height.
    pub(crate) fn size() -> (usize, usize) {
        let size = tcgetwinsize(std::io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        size.map_or(SIZE_DEFAULT, |size| (size.ws_col.into(), size.ws_row.into()))
    }

    /// Draws all lines, if they are not what is there already.
    pub(crate) fn draw(&mut self, lines: &[Line]) {
        let (width, height) = Self::size();
        let painted: Vec<String> = lines.iter().take(height).map(|line| paint_line(line)).collect();
        let drawing = (width, height, painted);
        if self.drawn.as_ref() == Some(&drawing) {
            return;
        }
        put(&format!("{HOME}{}{CLEAR_LINE}", drawing.2.join(&format!("{CLEAR_LINE}\r\n"))));
        self.drawn = Some(drawing);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        put(LEAVE);
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

fn paint_line(line: &[Span]) -> String {
    line.iter().map(|(colour, text)| colour.map_or_else(|| text.clone(), |colour| paint(colour, text))).collect()
}

/// Writes to the terminal; one that is gone is no reason to stop in disorder.
fn put(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}
