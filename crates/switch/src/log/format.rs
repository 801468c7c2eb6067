// SPDX-License-Identifier: Apache-2.0
//! Form of the log's lines: text, or a JSON object per line.

use config::LogFormat;
use serde_json::{Value, json};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Json, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Whether lines are JSON objects. The log belongs to the process, as stderr does.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Maximum number of bytes that are kept of a line that is too long for the queue. Escapes may make them six
/// times as long, which still fits.
const CUT_BYTES: usize = 600;

/// Sets the form of all further lines.
pub fn set(format: LogFormat) {
    IS_JSON.store(format == LogFormat::Json, Ordering::Relaxed);
}

/// Returns the form of lines.
pub fn current() -> LogFormat {
    if IS_JSON.load(Ordering::Relaxed) { LogFormat::Json } else { LogFormat::Text }
}

/// Formats events in the current form.
pub struct LineFormat {
    text: Format<Full>,
    json: Format<Json>,
}

impl Default for LineFormat {
    fn default() -> Self {
        Self { text: Format::default(), json: Format::default().json().flatten_event(true) }
    }
}

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        match current() {
            LogFormat::Text => self.text.format_event(context, writer, event),
            LogFormat::Json => self.json.format_event(context, writer, event),
        }
    }
}

/// Returns a line that is written regardless of the level, in the current form.
pub fn said(line: &str) -> String {
    match current() {
        LogFormat::Text => line.to_owned(),
        LogFormat::Json => object("INFO", line, &[]),
    }
}

/// Returns a JSON object with the beginning of a JSON line that is too long for the queue.
pub fn cut(line: &[u8]) -> String {
    let start = String::from_utf8_lossy(line.get(..CUT_BYTES).unwrap_or(line));
    object("WARN", "a line was too long for the log", &[("cut", start.as_ref().into())])
}

fn object(level: &str, message: &str, more: &[(&str, Value)]) -> String {
    let mut time = String::new();
    // Writing to a string does not fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    let mut line = json!({ "timestamp": time, "level": level, "message": message, "target": "shunt" });
    more.iter().for_each(|(name, value)| line[*name] = value.clone());
    line.to_string()
}

#[cfg(test)]
mod tests {
    use super::super::queue::LINE_BYTES;
    use super::*;

    #[test]
    fn objects_have_the_members_of_events() {
        let line: Value = serde_json::from_str(&object("INFO", "a \"b\"\n", &[])).unwrap();
        assert_eq!((&line["level"], &line["message"]), (&json!("INFO"), &json!("a \"b\"\n")));
        assert_eq!(line["target"], "shunt");
        assert!(line["timestamp"].as_str().unwrap().starts_with("20"), "{line}");
    }

    #[test]
    fn a_line_that_is_too_long_stays_an_object() {
        for byte in [b'x', 1, 0xff] {
            let line = cut(&vec![byte; 100_000]);
            assert!(line.len() < LINE_BYTES);
            let line: Value = serde_json::from_str(&line).unwrap();
            assert!(line["cut"].as_str().unwrap().len() >= CUT_BYTES);
        }
    }
}
