// SPDX-License-Identifier: Apache-2.0
//! Collects the metrics of all reports by family.

use metrics::{Family, Kind, Labels, Sample, Value};
use std::collections::BTreeMap;

/// A metric that is a number of a report of type `T`.
pub struct MetricField<T: 'static> {
    name: &'static str,
    unit: Option<&'static str>,
    kind: Kind,
    help: &'static str,
    value: Getter<T>,
}

/// Reads a value from a report.
enum Getter<T: 'static> {
    Integer(fn(&T) -> u64),
    /// The metric has no sample if the report has no value.
    Optional(fn(&T) -> Option<u64>),
    Number(fn(&T) -> f64),
}

impl<T> MetricField<T> {
    /// Defines a counter.
    pub const fn counter(name: &'static str, help: &'static str, value: fn(&T) -> u64) -> Self {
        Self { name, unit: None, kind: Kind::Counter, help, value: Getter::Integer(value) }
    }

    /// Defines a gauge.
    pub const fn gauge(name: &'static str, help: &'static str, value: fn(&T) -> u64) -> Self {
        Self { name, unit: None, kind: Kind::Gauge, help, value: Getter::Integer(value) }
    }

    /// Defines a gauge that may have no value.
    pub const fn optional(name: &'static str, help: &'static str, value: fn(&T) -> Option<u64>) -> Self {
        Self { name, unit: None, kind: Kind::Gauge, help, value: Getter::Optional(value) }
    }

    /// Defines a gauge in seconds.
    pub const fn seconds(name: &'static str, help: &'static str, value: fn(&T) -> f64) -> Self {
        Self { name, unit: Some("seconds"), kind: Kind::Gauge, help, value: Getter::Number(value) }
    }

    /// Sets the unit, which becomes the last part of the name.
    pub const fn of(self, unit: &'static str) -> Self {
        let Self { name, unit: _, kind, help, value } = self;
        Self { name, unit: Some(unit), kind, help, value }
    }
}

/// Metric families by name.
#[derive(Default)]
pub struct Catalogue(BTreeMap<&'static str, Family>);

impl Catalogue {
    /// Adds a sample to the family of this name.
    pub fn add(
        &mut self,
        name: &'static str,
        unit: Option<&'static str>,
        kind: Kind,
        help: &'static str,
        labels: Labels,
        value: Value,
    ) {
        let new = || Family { name, help, unit, kind, samples: Vec::new() };
        let family = self.0.entry(name).or_insert_with(new);
        debug_assert_eq!((family.unit, family.kind, family.help), (unit, kind, help), "{name}");
        family.samples.push(Sample { labels, value });
    }

    /// Adds a counter for each named count, with the name as a label.
    pub fn add_by_name<'a>(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &Labels,
        label: &'static str,
        counts: impl IntoIterator<Item = (&'a String, &'a u64)>,
    ) {
        for (text, count) in counts {
            self.add(name, None, Kind::Counter, help, with(labels, label, text), Value::Integer(*count));
        }
    }

    /// Adds the metrics of a report.
    pub fn add_fields<T>(&mut self, fields: &[MetricField<T>], report: &T, labels: &Labels) {
        for field in fields {
            let value = match field.value {
                Getter::Integer(value) => Value::Integer(value(report)),
                Getter::Number(value) => Value::Number(value(report)),
                Getter::Optional(value) => match value(report) {
                    Some(value) => Value::Integer(value),
                    None => continue,
                },
            };
            self.add(field.name, field.unit, field.kind, field.help, labels.clone(), value);
        }
    }

    /// Returns the families in the order of their names.
    pub fn families(self) -> Vec<Family> {
        self.0.into_values().collect()
    }
}

/// Returns the labels with one more.
pub fn with(labels: &Labels, name: &'static str, value: impl ToString) -> Labels {
    let mut labels = labels.clone();
    labels.push((name, value.to_string()));
    labels
}
