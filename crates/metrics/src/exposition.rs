// SPDX-License-Identifier: Apache-2.0
//! Metric families, and their text form by the OpenMetrics specification, version 1.0.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// Media type of the text that [`encode`] returns.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Labels of a sample. A name must not occur twice.
pub type Labels = Vec<(&'static str, String)>;

/// Type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, or restarts from 0. The text adds `_total` to the name.
    Counter,
    /// May grow and shrink.
    Gauge,
    /// Distribution over buckets.
    Histogram,
    /// Constant text in labels. The text adds `_info` to the name.
    Info,
}

/// A metric family: samples of one kind with different labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Name without the suffixes of the unit and the kind.
    pub name: &'static str,
    /// Description in one sentence. The text form adds a full stop.
    pub help: &'static str,
    /// Base unit, such as `seconds`. The text adds it to the name.
    pub unit: Option<&'static str>,
    /// Type of all samples.
    pub kind: Kind,
    /// Samples, each with different labels.
    pub samples: Vec<Sample>,
}

/// A sample of a metric family.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Labels of the sample.
    pub labels: Labels,
    /// Value of the sample.
    pub value: Value,
}

/// Value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer, for counters and gauges.
    Integer(u64),
    /// A number in the unit of the family, for counters and gauges.
    Number(f64),
    /// A distribution.
    Histogram(Histogram),
    /// The labels are the value.
    Info,
}

/// Distribution of observations over buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Upper bound of each bucket in the unit of the family, ascending, and the observations in this bucket
    /// alone. The last bound is `f64::INFINITY`, which the text form shows as `+Inf`.
    pub buckets: Vec<(f64, u64)>,
    /// Sum of all observations.
    pub sum: f64,
}

impl Histogram {
    /// Returns the number of observations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

impl Family {
    /// Returns the name of the samples in the text form, without the suffixes of histograms.
    #[must_use]
    pub fn full_name(&self) -> String {
        let unit = self.unit.map(|unit| format!("_{unit}")).unwrap_or_default();
        let kind = match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        };
        format!("{}{unit}{kind}", self.name)
    }
}

/// Returns families in the text form of OpenMetrics. Families without samples are left out.
///
/// # Errors
///
/// Returns an error if the encoder fails, which happens only if a sample's value does not fit its family.
pub fn encode(families: Vec<Family>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families)));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.0
            .iter()
            .filter(|family| !family.samples.is_empty())
            .try_for_each(|family| encode_family(family, &mut encoder))
    }
}

fn encode_family(family: &Family, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let unit = family.unit.map(|unit| Unit::Other(unit.to_owned()));
    let kind = match family.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
        Kind::Info => MetricType::Info,
    };
    let help = format!("{}.", family.help);
    let mut metric = encoder.encode_descriptor(family.name, &help, unit.as_ref(), kind)?;
    for sample in &family.samples {
        if sample.value == Value::Info {
            metric.encode_info(&sample.labels)?;
        } else {
            encode_value(family.kind, &sample.value, metric.encode_family(&sample.labels)?)?;
        }
    }
    Ok(())
}

fn encode_value(kind: Kind, value: &Value, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
    const NO_EXEMPLAR: Option<&Exemplar<Labels, f64>> = None;
    match (kind, value) {
        (Kind::Counter, Value::Integer(count)) => encoder.encode_counter(count, NO_EXEMPLAR),
        (Kind::Counter, Value::Number(number)) => encoder.encode_counter(number, NO_EXEMPLAR),
        (Kind::Gauge, Value::Integer(count)) => encoder.encode_gauge(count),
        (Kind::Gauge, Value::Number(number)) => encoder.encode_gauge(number),
        (Kind::Histogram, Value::Histogram(histogram)) => {
            encoder.encode_histogram::<Labels>(histogram.sum, histogram.count(), &histogram.buckets, None)
        }
        _ => Err(fmt::Error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(kind: Kind, unit: Option<&'static str>, samples: Vec<Sample>) -> Family {
        Family { name: "shunt_x", help: "Things", unit, kind, samples }
    }

    fn sample(labels: &[(&'static str, &str)], value: Value) -> Sample {
        Sample { labels: labels.iter().map(|(name, text)| (*name, (*text).to_owned())).collect(), value }
    }

    #[test]
    fn families_follow_the_specification() {
        let one = vec![sample(&[("port", "1")], Value::Integer(u64::MAX))];
        let text = encode(vec![family(Kind::Counter, Some("bytes"), one)]).unwrap();
        let expected = "# HELP shunt_x_bytes Things.\n# TYPE shunt_x_bytes counter\n# UNIT shunt_x_bytes bytes\n\
                        shunt_x_bytes_total{port=\"1\"} 18446744073709551615\n# EOF\n";
        assert_eq!(text, expected);
        let histogram = Histogram { buckets: vec![(0.5, 2), (1.0, 0), (f64::INFINITY, 3)], sum: 9.5 };
        let one = vec![sample(&[("lane", "a")], Value::Histogram(histogram))];
        let text = encode(vec![family(Kind::Histogram, Some("seconds"), one)]).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "shunt_x_seconds_sum{lane=\"a\"} 9.5",
            "shunt_x_seconds_count{lane=\"a\"} 5",
            "shunt_x_seconds_bucket{le=\"0.5\",lane=\"a\"} 2",
            "shunt_x_seconds_bucket{le=\"1.0\",lane=\"a\"} 2",
            "shunt_x_seconds_bucket{le=\"+Inf\",lane=\"a\"} 5",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn names_have_the_suffixes_of_unit_and_kind() {
        let name = |kind, unit| family(kind, unit, Vec::new()).full_name();
        assert_eq!(name(Kind::Counter, Some("bytes")), "shunt_x_bytes_total");
        assert_eq!(
            (name(Kind::Info, None), name(Kind::Gauge, None)),
            ("shunt_x_info".into(), "shunt_x".into())
        );
    }

    #[test]
    fn labels_are_escaped_and_empty_families_left_out() {
        let odd = vec![sample(&[("name", "a\"b\\c\nd")], Value::Number(0.25))];
        let text =
            encode(vec![family(Kind::Gauge, None, odd), family(Kind::Gauge, None, Vec::new())]).unwrap();
        assert!(text.contains("\nshunt_x{name=\"a\\\"b\\\\c\\nd\"} 0.25\n"), "{text}");
        assert_eq!(text.matches("# TYPE").count(), 1);
        let info = vec![sample(&[("version", "1")], Value::Info)];
        let text = encode(vec![family(Kind::Info, None, info)]).unwrap();
        assert!(text.contains("\nshunt_x_info{version=\"1\"} 1\n"), "{text}");
    }

    #[test]
    fn a_value_that_does_not_fit_its_family_is_an_error() {
        let wrong = vec![sample(&[], Value::Histogram(Histogram::default()))];
        assert!(encode(vec![family(Kind::Counter, None, wrong)]).is_err());
    }
}
