// SPDX-License-Identifier: Apache-2.0
//! Arguments in an item's parentheses: `(a,b,c)` or `(name=a,other=b)`.

use super::error::{Fault, Parsed};

/// Reads an item's arguments one after another.
#[derive(Debug)]
pub(super) struct Arguments<'t> {
    whole: &'t str,
    rest: Option<&'t str>,
    form: &'static str,
}

impl<'t> Arguments<'t> {
    /// Creates a reader. `form` describes the expected syntax for error messages.
    pub fn new(whole: &'t str, arguments: Option<&'t str>, form: &'static str) -> Parsed<'t, Self> {
        match arguments {
            Some(text) if !text.trim_ascii().is_empty() => Ok(Self { whole, rest: Some(text), form }),
            _ => Err(Fault::new(whole, format!("has no arguments; {form}"))),
        }
    }

    fn next(&mut self) -> Option<&'t str> {
        let rest = self.rest?;
        let (argument, after) = rest.split_once(',').map_or((rest, None), |(a, b)| (a, Some(b)));
        self.rest = after;
        Some(argument.trim_ascii())
    }

    /// Returns the next argument. It may also be written as `name=value`.
    pub fn positional(&mut self, name: &str) -> Parsed<'t, &'t str> {
        let argument =
            self.next().ok_or_else(|| Fault::new(self.whole, format!("lacks {name}; {}", self.form)))?;
        match argument.split_once('=') {
            None => Ok(argument),
            Some((found, value)) if found == name => Ok(value),
            Some(_) => Err(Fault::new(argument, format!("is given instead of {name}; {}", self.form))),
        }
    }

    /// Returns the next `name=value` pair, or `None` at the end.
    pub fn named(&mut self) -> Parsed<'t, Option<(&'t str, &'t str)>> {
        let Some(argument) = self.next() else { return Ok(None) };
        argument
            .split_once('=')
            .map(Some)
            .ok_or_else(|| Fault::new(argument, format!("has no value; {}", self.form)))
    }

    /// Refuses further arguments.
    pub fn end(&mut self) -> Parsed<'t, ()> {
        match self.next() {
            None => Ok(()),
            Some(more) => Err(Fault::new(more, format!("is one argument too many; {}", self.form))),
        }
    }
}
