// SPDX-License-Identifier: Apache-2.0
//! Text form of the stateless forwarder's settings, for configurations, the control socket and `shunt show`.
//!
//! Begin with [`StatelessForm::read_all`].

use crate::mistakes::Mistakes;
use flow::PortNo;
use flow::stateless::{
    Arithmetic, Bank, Gate, GateFlag, Gates, Label, NodeId, StatelessConfig, StatelessError, TagTypes,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

/// Settings of the stateless forwarder. Numbers are `i64`, so that this crate, and not serde, reports values
/// out of range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatelessForm {
    /// Trusted ports, which lead to other switches.
    #[serde(default)]
    pub trusted: Vec<i64>,
    /// MTU of each port in bytes, without the Ethernet header, by port number.
    #[serde(default)]
    pub mtu: Vec<(i64, i64)>,
    /// EtherTypes of tagged packets.
    #[serde(default)]
    pub types: TypesForm,
    /// Banks of KeyFlow.
    #[serde(default)]
    pub bank: Vec<BankForm>,
    /// Bank of freeRtr's PolKA. Its `epoch` must be 0.
    pub polka: Option<BankForm>,
    /// Gates of Tag-and-Forward.
    pub gates: Option<GatesForm>,
}

/// EtherTypes of tagged packets. Each has a default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypesForm {
    /// EtherType of KeyFlow.
    pub keyflow: Option<i64>,
    /// EtherType of PolKA.
    pub polka: Option<i64>,
    /// EtherType of Tag-and-Forward.
    pub tf: Option<i64>,
    /// EtherType of the wide form of Tag-and-Forward.
    pub tf_wide: Option<i64>,
}

/// A bank: the switch's ID, and what each label selects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BankForm {
    /// Epoch, 0 or 1.
    #[serde(default)]
    pub epoch: i64,
    /// Arithmetic, `integer` (default) or `polynomial`.
    pub arithmetic: Option<String>,
    /// ID of the switch, which is the modulus. With polynomial arithmetic, its bits are the coefficients.
    pub id: i64,
    /// What label 0, label 1 and so on select.
    #[serde(default)]
    pub labels: Vec<LabelForm>,
    /// Backup port of each port, by port number.
    #[serde(default)]
    pub backups: Vec<(i64, i64)>,
}

/// What a label selects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LabelForm {
    /// Port number, or 0 for none.
    Port(i64),
    /// The word `tables`: the packet is looked up in the tables.
    Word(String),
}

/// Gates of Tag-and-Forward.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatesForm {
    /// Difference between the numbers of downward gates, or 0 without such gates.
    #[serde(default)]
    pub down_d: i64,
    /// Difference between the numbers of upward gates, or 0 without such gates.
    #[serde(default)]
    pub up_d: i64,
    /// Difference between the numbers of external gates, or 0 without such gates.
    #[serde(default)]
    pub external_d: i64,
    /// Highest server gate. A greater value of DOWN selects an external gate if `external_d` is not 0.
    #[serde(default)]
    pub server_gate_max: i64,
    /// Ports, each with its gate number and a flag: `server`, `external`, `assists` or empty.
    #[serde(default)]
    pub ports: Vec<(i64, i64, String)>,
}

/// A mistake: the key within the settings, and a sentence that describes the problem.
pub type Wrong = (String, String);

fn number(key: &str, value: i64, from: i64, to: i64) -> Result<u32, Wrong> {
    match u32::try_from(value) {
        Ok(number) if (from..=to).contains(&value) => Ok(number),
        _ => Err((key.to_owned(), format!("{value} is out of range; use {from} to {to}"))),
    }
}

fn port(key: &str, value: i64) -> Result<PortNo, Wrong> {
    number(key, value, 1, flow::port_no::MAX.0.into()).map(PortNo)
}

/// Inserts a port and its value into a map. Returns a mistake for `key` if the map already has the port.
fn once<V>(key: &str, map: &mut BTreeMap<PortNo, V>, at: PortNo, value: V) -> Result<(), Wrong> {
    match map.insert(at, value) {
        None => Ok(()),
        Some(_) => Err((key.to_owned(), format!("port {at} is given twice; name each once"))),
    }
}

impl StatelessForm {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Returns the first mistake in the settings.
    pub fn read(&self) -> Result<StatelessConfig, Wrong> {
        self.read_all().map_err(|all| all.into_iter().next().unwrap_or_default())
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Returns the first mistake of each part.
    pub fn read_all(&self) -> Result<StatelessConfig, Vec<Wrong>> {
        let mut stateless_config = StatelessConfig::default();
        let mut all = Vec::new();
        let parts = [
            self.read_types(&mut stateless_config),
            self.read_trusted(&mut stateless_config),
            self.read_mtu(&mut stateless_config),
            self.read_polka(&mut stateless_config),
        ];
        all.extend(parts.into_iter().filter_map(Result::err));
        let banks = self.bank.iter().enumerate().map(|(n, bank)| bank.read_into(n, &mut stateless_config));
        all.extend(banks.filter_map(Result::err));
        match self.gates.as_ref().map(|gates| gates.read("gates")).transpose() {
            Ok(gates) => stateless_config.gates = gates,
            Err(wrong) => all.push(wrong),
        }
        if all.is_empty() {
            let checked = stateless_config.check();
            all.extend(checked.err().map(|error: StatelessError| (String::new(), error.to_string())));
        }
        if all.is_empty() { Ok(stateless_config) } else { Err(all) }
    }

    /// Checks the settings of the table at `key`. Returns `None` if any of them is wrong.
    pub fn checked(&self, key: &str, mistakes: &mut Mistakes) -> Option<StatelessConfig> {
        let wrong = match self.read_all() {
            Ok(stateless_config) => return Some(stateless_config),
            Err(wrong) => wrong,
        };
        for (name, problem) in wrong {
            let dot = if name.is_empty() { "" } else { "." };
            mistakes.wrong(format!("{key}{dot}{name}"), problem);
        }
        None
    }

    fn read_types(&self, stateless_config: &mut StatelessConfig) -> Result<(), Wrong> {
        stateless_config.types = self.types.read()?;
        Ok(())
    }

    fn read_trusted(&self, stateless_config: &mut StatelessConfig) -> Result<(), Wrong> {
        for (n, trusted) in self.trusted.iter().enumerate() {
            let key = format!("trusted[{n}]");
            if !stateless_config.trusted.insert(port(&key, *trusted)?) {
                return Err((key, format!("port {trusted} is given twice; name each once")));
            }
        }
        Ok(())
    }

    fn read_mtu(&self, stateless_config: &mut StatelessConfig) -> Result<(), Wrong> {
        for (n, (number_of, bytes)) in self.mtu.iter().enumerate() {
            let key = format!("mtu[{n}]");
            let bytes = number(&key, *bytes, 68, 65_535)? as usize;
            once(&key, &mut stateless_config.mtu_bytes, port(&key, *number_of)?, bytes)?;
        }
        Ok(())
    }

    fn read_polka(&self, stateless_config: &mut StatelessConfig) -> Result<(), Wrong> {
        if let Some(polka) = self.polka.as_ref().filter(|polka| polka.epoch != 0) {
            let problem = format!("{} has no meaning for PolKA; leave it out", polka.epoch);
            return Err(("polka.epoch".to_owned(), problem));
        }
        stateless_config.polka = self.polka.as_ref().map(|bank| bank.read("polka")).transpose()?;
        Ok(())
    }
}

impl TypesForm {
    fn read(self) -> Result<TagTypes, Wrong> {
        let usual = TagTypes::default();
        let one = |name: &str, given: Option<i64>, usual: u16| match given {
            None => Ok(usual),
            Some(given) => number(&format!("types.{name}"), given, 0x600, 0xffff).map(|it| it as u16),
        };
        Ok(TagTypes {
            keyflow: one("keyflow", self.keyflow, usual.keyflow)?,
            polka: one("polka", self.polka, usual.polka)?,
            tf: one("tf", self.tf, usual.tf)?,
            tf_wide: one("tf_wide", self.tf_wide, usual.tf_wide)?,
        })
    }
}

impl BankForm {
    /// Reads the bank at index `n` into the bank of its epoch.
    fn read_into(&self, n: usize, stateless_config: &mut StatelessConfig) -> Result<(), Wrong> {
        let key = format!("bank[{n}]");
        let epoch = number(&format!("{key}.epoch"), self.epoch, 0, 1)? as usize;
        let bank = self.read(&key)?;
        match stateless_config.banks[epoch].replace(bank) {
            None => Ok(()),
            Some(_) => {
                Err((format!("{key}.epoch"), format!("{epoch} has a bank already; use the other epoch")))
            }
        }
    }

    fn read(&self, key: &str) -> Result<Bank, Wrong> {
        let arithmetic = match self.arithmetic.as_deref() {
            None | Some("integer") => Arithmetic::Integer,
            Some("polynomial") => Arithmetic::Polynomial,
            Some(other) => {
                let problem = format!("\"{other}\" is unknown; use \"integer\" or \"polynomial\"");
                return Err((format!("{key}.arithmetic"), problem));
            }
        };
        let modulus = number(&format!("{key}.id"), self.id, 2, u32::MAX.into())?;
        let Some(id) = NodeId::new(arithmetic, modulus) else {
            return Err((format!("{key}.id"), "is not an ID; use 2 or more".to_owned()));
        };
        let mut labels = BTreeMap::new();
        for (label, what) in (0_u32..).zip(&self.labels) {
            let key = || format!("{key}.labels[{label}]");
            match what {
                LabelForm::Port(0) => {}
                LabelForm::Port(number) => drop(labels.insert(label, Label::Port(port(&key(), *number)?))),
                LabelForm::Word(word) if word == "tables" => drop(labels.insert(label, Label::Tables)),
                LabelForm::Word(word) => {
                    let problem = format!("\"{word}\" is unknown; use a port, \"tables\", or 0 for nothing");
                    return Err((key(), problem));
                }
            }
        }
        let mut backups = BTreeMap::new();
        for (n, (of, backup)) in self.backups.iter().enumerate() {
            let key = format!("{key}.backups[{n}]");
            once(&key, &mut backups, port(&key, *of)?, port(&key, *backup)?)?;
        }
        Ok(Bank { id, labels, backups })
    }
}

impl GatesForm {
    /// Checks the gates of the table at `key`.
    ///
    /// # Errors
    ///
    /// Returns the first mistake.
    pub fn read(&self, key: &str) -> Result<Gates, Wrong> {
        let d = |name: &str, value| number(&format!("{key}.{name}"), value, 0, u32::MAX.into());
        let mut ports = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for (n, (of, gate, flag)) in self.ports.iter().enumerate() {
            let key = format!("{key}.ports[{n}]");
            let gate = number(&key, *gate, 1, u32::MAX.into())?;
            let Some(number) = NonZeroU32::new(gate).filter(|_| taken.insert(gate)) else {
                return Err((key, format!("gate {gate} is given twice; give each port a different gate")));
            };
            let flag = flag_of(flag).map_err(|problem| (key.clone(), problem))?;
            once(&key, &mut ports, port(&key, *of)?, Gate { number, flag })?;
        }
        Ok(Gates {
            down_d: d("down_d", self.down_d)?,
            up_d: d("up_d", self.up_d)?,
            external_d: d("external_d", self.external_d)?,
            server_gate_max: d("server_gate_max", self.server_gate_max)?,
            ports,
        })
    }
}

fn flag_of(word: &str) -> Result<GateFlag, String> {
    Ok(match word {
        "" => GateFlag::None,
        "server" => GateFlag::Server,
        "external" => GateFlag::External,
        "assists" => GateFlag::Assists,
        other => {
            return Err(format!("\"{other}\" is unknown; use \"server\", \"external\", \"assists\" or \"\""));
        }
    })
}

fn word_of(flag: GateFlag) -> &'static str {
    match flag {
        GateFlag::None => "",
        GateFlag::Server => "server",
        GateFlag::External => "external",
        GateFlag::Assists => "assists",
    }
}

impl From<&StatelessConfig> for StatelessForm {
    fn from(stateless_config: &StatelessConfig) -> Self {
        let TagTypes { keyflow, polka, tf, tf_wide } = stateless_config.types;
        let some = |it: u16| Some(i64::from(it));
        Self {
            trusted: stateless_config.trusted.iter().map(|port| i64::from(port.0)).collect(),
            mtu: stateless_config
                .mtu_bytes
                .iter()
                .map(|(port, bytes)| (port.0.into(), *bytes as i64))
                .collect(),
            types: TypesForm {
                keyflow: some(keyflow),
                polka: some(polka),
                tf: some(tf),
                tf_wide: some(tf_wide),
            },
            bank: (0..)
                .zip(&stateless_config.banks)
                .filter_map(|(e, bank)| Some(bank_form(e, bank.as_ref()?)))
                .collect(),
            polka: stateless_config.polka.as_ref().map(|bank| bank_form(0, bank)),
            gates: stateless_config.gates.as_ref().map(GatesForm::from),
        }
    }
}

fn bank_form(epoch: i64, bank: &Bank) -> BankForm {
    let count = bank.labels.last_key_value().map_or(0, |(label, _)| label + 1);
    let label = |label: u32| match bank.labels.get(&label) {
        None => LabelForm::Port(0),
        Some(Label::Port(port)) => LabelForm::Port(port.0.into()),
        Some(Label::Tables) => LabelForm::Word("tables".to_owned()),
    };
    let arithmetic = match bank.id.arithmetic() {
        Arithmetic::Integer => "integer",
        Arithmetic::Polynomial => "polynomial",
    };
    BankForm {
        epoch,
        arithmetic: Some(arithmetic.to_owned()),
        id: bank.id.modulus().into(),
        labels: (0..count).map(label).collect(),
        backups: bank.backups.iter().map(|(port, backup)| (port.0.into(), backup.0.into())).collect(),
    }
}

impl From<&Gates> for GatesForm {
    fn from(gates: &Gates) -> Self {
        let row = |(port, gate): (&PortNo, &Gate)| {
            (port.0.into(), gate.number.get().into(), word_of(gate.flag).to_owned())
        };
        Self {
            down_d: gates.down_d.into(),
            up_d: gates.up_d.into(),
            external_d: gates.external_d.into(),
            server_gate_max: gates.server_gate_max.into(),
            ports: gates.ports.iter().map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
trusted = [1, 2, 3]
mtu = [[1, 1600], [2, 9000]]
types = { keyflow = 0x9999 }
bank = [
    { epoch = 1, id = 5, labels = ["tables", 1, 0, 2], backups = [[1, 2], [2, 1]] },
    { id = 0xb, arithmetic = "polynomial", labels = [3] },
]
polka = { id = 0x1002d, arithmetic = "polynomial", labels = ["tables", 1, 2] }
gates = { down_d = 4, up_d = 8, external_d = 2, server_gate_max = 30, ports = [[1, 2, "server"], [2, 4, ""], [3, 8, "assists"]] }
"#;

    fn read(text: &str) -> Result<StatelessConfig, Wrong> {
        toml::from_str::<StatelessForm>(text).unwrap().read()
    }

    #[test]
    fn formatted_settings_parse_back() {
        let stateless_config = read(WHOLE).unwrap();
        assert_eq!(StatelessForm::from(&stateless_config).read(), Ok(stateless_config.clone()));
        assert_eq!(stateless_config.types, TagTypes { keyflow: 0x9999, ..TagTypes::default() });
        let labels =
            BTreeMap::from([(0, Label::Tables), (1, Label::Port(PortNo(1))), (3, Label::Port(PortNo(2)))]);
        assert_eq!(stateless_config.banks[1].as_ref().unwrap().labels, labels);
        assert_eq!(stateless_config.mtu_bytes, BTreeMap::from([(PortNo(1), 1_600), (PortNo(2), 9_000)]));
        let gates = stateless_config.gates.unwrap();
        assert_eq!(gates.ports[&PortNo(3)], Gate { number: 8.try_into().unwrap(), flag: GateFlag::Assists });
        assert_eq!((gates.down_d, gates.up_d, gates.external_d, gates.server_gate_max), (4, 8, 2, 30));
    }

    #[test]
    fn mistakes_are_reported_with_their_places() {
        for (what, by, key, says) in [
            ("trusted = [1, 2, 3]", "trusted = [1, 1]", "trusted[1]", "port 1 is given twice"),
            ("trusted = [1, 2, 3]", "trusted = [0]", "trusted[0]", "0 is out of range; use 1 to"),
            ("[2, 9000]", "[1, 9000]", "mtu[1]", "twice"),
            ("[2, 9000]", "[2, 9]", "mtu[1]", "9 is out of range; use 68 to 65535"),
            ("0x9999", "0x99999", "types.keyflow", "out of range"),
            ("0x9999", "0x0800", "", "EtherType 0x0800 belongs to another protocol"),
            ("epoch = 1", "epoch = 2", "bank[0].epoch", "use 0 to 1"),
            ("epoch = 1, ", "", "bank[1].epoch", "0 has a bank already"),
            ("id = 5", "id = 1", "bank[0].id", "1 is out of range"),
            ("id = 0x1002d", "epoch = 1, id = 0x1002d", "polka.epoch", "1 has no meaning"),
            ("\"tables\", 1, 0", "\"table\", 1, 0", "bank[0].labels[0]", "use a port, \"tables\""),
            ("[1, 2], [2, 1]]", "[1, 2], [1, 1]]", "bank[0].backups[1]", "twice"),
            ("\"polynomial\", labels = [3]", "\"real\"", "bank[1].arithmetic", "\"real\" is unknown"),
            (
                "labels = [3]",
                "labels = [3,3,3,3,3,3,3,3,3]",
                "",
                "label 8 is not a residue modulo the ID 0xb",
            ),
            ("[2, 4, \"\"]", "[2, 2, \"\"]", "gates.ports[1]", "gate 2 is given twice"),
            ("[2, 4, \"\"]", "[2, 4, \"srv\"]", "gates.ports[1]", "\"srv\" is unknown"),
            ("down_d = 4", "down_d = -4", "gates.down_d", "-4 is out of range"),
        ] {
            let text = WHOLE.replacen(what, by, 1);
            assert_ne!(text, WHOLE, "{what}");
            let (at, problem) = read(&text).unwrap_err();
            assert!(at == key && problem.contains(says), "{by}: {at}: {problem}");
        }
    }
}
