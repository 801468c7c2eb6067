// SPDX-License-Identifier: Apache-2.0
//! Checks who may connect to the control sockets, and the settings of the table `security`.

use crate::file::{ControlSection, SecuritySection};
use crate::mistakes::Mistakes;
use std::fmt;

/// Mode of a control socket that only its owner may use.
const OWNER_ONLY: u32 = 0o600;
/// Mode of a control socket that its owner and a group may use.
const OWNER_AND_GROUP: u32 = 0o660;

/// Who may connect to a control socket. Its `Display` is a part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketAccess {
    /// Name or number of the user to whom the socket belongs, or `None` for the user of the process.
    pub owner: Option<String>,
    /// Name or number of the group to which the socket belongs, or `None` for the group of the process.
    pub group: Option<String>,
    /// Permission bits of the socket. A client needs the bit to write.
    pub mode: u32,
}

impl Default for SocketAccess {
    fn default() -> Self {
        Self { owner: None, group: None, mode: OWNER_ONLY }
    }
}

impl fmt::Display for SocketAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, group, mode } = self;
        let [owner, group] = [owner, group].map(|name| name.as_deref().unwrap_or("that of the switch"));
        write!(f, "the owner {owner}, the group {group} and the mode {mode:04o}")
    }
}

/// Whether threads may make only the system calls that they need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeccompMode {
    /// Another call ends the process.
    #[default]
    On,
    /// The kernel logs other calls.
    Log,
    /// Threads may make all calls.
    Off,
}

/// Privileges that the process gives up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecuritySettings {
    /// Name or number of the user that the process becomes at the start, if any.
    pub user: Option<String>,
    /// Whether system calls are limited.
    pub seccomp: SeccompMode,
}

/// Checks who may connect to the control sockets.
pub(crate) fn socket_access(section: &ControlSection, mistakes: &mut Mistakes) -> SocketAccess {
    let ControlSection { owner, group, mode, .. } = section;
    let mut named = |key: &str, name: &Option<String>| {
        let name = name.clone()?;
        mistakes.at(key, is_name(&name).then_some(name).ok_or_else(|| not_a_name(key)))
    };
    let (owner, group) = (named("control.owner", owner), named("control.group", group));
    let usual = if group.is_some() { OWNER_AND_GROUP } else { OWNER_ONLY };
    let mode = mode.as_deref().and_then(|mode| mistakes.at("control.mode", mode_of(mode)));
    SocketAccess { owner, group, mode: mode.unwrap_or(usual) }
}

/// Checks the table `security`.
pub(crate) fn security_settings(section: &SecuritySection, mistakes: &mut Mistakes) -> SecuritySettings {
    let user = section.user.clone().and_then(|user| {
        let key = "security.user";
        mistakes.at(key, is_name(&user).then_some(user).ok_or_else(|| not_a_name(key)))
    });
    let seccomp = match section.seccomp.as_deref() {
        None => SeccompMode::default(),
        Some("on") => SeccompMode::On,
        Some("log") => SeccompMode::Log,
        Some("off") => SeccompMode::Off,
        Some(other) => {
            let problem = format!("\"{other}\" is unknown; use \"on\", \"log\" or \"off\"");
            mistakes.wrong("security.seccomp", problem);
            SeccompMode::default()
        }
    };
    SecuritySettings { user, seccomp }
}

/// Returns whether the text can be the name or number of a user or group.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control() || c == ':')
}

fn not_a_name(key: &str) -> String {
    let kind = if key.ends_with("group") { "group" } else { "user" };
    format!("is not the name or number of a {kind}; write for example \"shunt\"")
}

/// Parses an octal mode.
fn mode_of(text: &str) -> Result<u32, String> {
    let is_octal = text.len() <= 4 && text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    let mode = u32::from_str_radix(text, 8).ok().filter(|_| is_octal);
    let mode = mode.ok_or_else(|| format!("\"{text}\" is not an octal mode; write \"0600\" or \"0660\""))?;
    if mode & 0o007 != 0 {
        return Err(format!(
            "\"{text}\" would let every user of this machine control the switch; use \"0660\", and give the \
             socket a group with control.group"
        ));
    }
    if mode & !0o660 != 0 || mode & 0o200 == 0 {
        return Err(format!(
            "\"{text}\" does not fit a socket, whose clients need to read and write; use \"0600\" or \"0660\""
        ));
    }
    Ok(mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Mistake};
    use std::path::Path;

    fn parse(top: &str) -> Result<Config, String> {
        let all = |mistakes: Vec<Mistake>| mistakes.iter().map(|one| format!("{one}\n")).collect::<String>();
        Config::parse(&format!("{top}\n[[worker]]\n[[datapath]]\nid = 1\n")).map_err(all)
    }

    fn access(owner: Option<&str>, group: Option<&str>, mode: u32) -> SocketAccess {
        SocketAccess { owner: owner.map(str::to_owned), group: group.map(str::to_owned), mode }
    }

    #[test]
    fn the_control_socket_is_a_path_or_a_table() {
        let path = "/x/s.sock";
        for (text, expected) in [
            ("control = \"/x/s.sock\"".to_owned(), access(None, None, 0o600)),
            (format!("control = {{ path = \"{path}\" }}"), access(None, None, 0o600)),
            (format!("[control]\npath = \"{path}\"\ngroup = \"shunt\""), access(None, Some("shunt"), 0o660)),
            (
                format!("[control]\npath = \"{path}\"\nowner = \"0\"\ngroup = \"7\"\nmode = \"640\""),
                access(Some("0"), Some("7"), 0o640),
            ),
        ] {
            let config = parse(&text).unwrap();
            assert_eq!((config.control.as_path(), config.process.control), (Path::new(path), expected));
        }
        let config = parse("[control]\ngroup = \"shunt\"").unwrap();
        assert_eq!(config.control, Path::new(crate::DEFAULT_CONTROL));
    }

    #[test]
    fn wrong_settings_of_the_control_socket_are_named() {
        for (text, expected) in [
            ("control = 1", "control: is the number 1, but a string or a table is needed"),
            ("[control]\nusers = \"x\"", "control.users: unknown key; use one of `path`, `owner`, `group`"),
            ("[control]\nmode = 660", "control.mode: is the number 660, but a string is needed"),
            ("[control]\nmode = \"0666\"", "control.mode: \"0666\" would let every user"),
            ("[control]\nmode = \"0440\"", "control.mode: \"0440\" does not fit a socket"),
            ("[control]\nmode = \"0770\"", "control.mode: \"0770\" does not fit a socket"),
            ("[control]\nmode = \"rw\"", "control.mode: \"rw\" is not an octal mode"),
            ("[control]\nmode = \"06600\"", "control.mode: \"06600\" is not an octal mode"),
            ("[control]\ngroup = \"\"", "control.group: is not the name or number of a group"),
            ("[control]\nowner = \"a b\"", "control.owner: is not the name or number of a user"),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.contains(expected), "{text}: {found}");
        }
    }

    #[test]
    fn system_calls_are_limited_unless_the_file_says_otherwise() {
        assert_eq!(parse("").unwrap().process.security, SecuritySettings::default());
        for (text, seccomp) in [("on", SeccompMode::On), ("log", SeccompMode::Log), ("off", SeccompMode::Off)]
        {
            let settings = parse(&format!("[security]\nseccomp = \"{text}\"\nuser = \"shunt\""))
                .unwrap()
                .process
                .security;
            assert_eq!(settings, SecuritySettings { user: Some("shunt".into()), seccomp });
        }
        let found = parse("[security]\nseccomp = true").unwrap_err();
        assert!(found.contains("security.seccomp: is true, but a string is needed"), "{found}");
        let found = parse("[security]\nseccomp = \"kill\"\nuser = \"\"").unwrap_err();
        assert!(found.contains("security.seccomp: \"kill\" is unknown"), "{found}");
        assert!(found.contains("security.user: is not the name"), "{found}");
    }
}
