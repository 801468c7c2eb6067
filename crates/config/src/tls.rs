// SPDX-License-Identifier: Apache-2.0
//! Checks the settings of TLS connections.

use crate::check::Context;
use crate::endpoint::Endpoint;
use crate::file::TlsSection;
use crate::mistakes::Mistakes;
use crate::settings::{OpenFlow, Pof, TlsFiles};
use std::path::PathBuf;

/// Checks the section at `key`. All three files are required, because peers are always authenticated.
pub(crate) fn tls_files(key: &str, section: &TlsSection, mistakes: &mut Mistakes) -> Option<TlsFiles> {
    let mut file = |name: &str, text: &Option<String>| {
        let example = format!("{name} = \"/etc/shunt/{name}.pem\"");
        let text = mistakes.needed(format!("{key}.{name}"), text.as_ref(), &example)?;
        if text.is_empty() || text.contains('\0') {
            mistakes.wrong(format!("{key}.{name}"), format!("is not the path of a file; write {example}"));
            return None;
        }
        Some(PathBuf::from(text))
    };
    let certificate = file("certificate", &section.certificate);
    let private_key = file("private_key", &section.private_key);
    let ca = file("ca", &section.ca);
    let check_address = section.check_address.unwrap_or(true);
    Some(TlsFiles { certificate: certificate?, private_key: private_key?, ca: ca?, check_address })
}

/// Returns the files of a datapath: of its own section, else of the file's. Endpoints with TLS need them.
pub(crate) fn tls_of(
    own: Option<&TlsSection>,
    context: &Context<'_>,
    openflow: &OpenFlow,
    pof: Option<&Pof>,
    notes: &mut Vec<String>,
    mistakes: &mut Mistakes,
) -> Option<TlsFiles> {
    let key = format!("{}.tls", context.key);
    let files = match own {
        Some(section) => Some(tls_files(&key, section, mistakes)?),
        None => context.tls.cloned(),
    };
    let none = Vec::new();
    let lists = [
        ("openflow.controllers", &openflow.controllers),
        ("openflow.listen", &openflow.listen),
        ("pof.controllers", pof.map_or(&none, |pof| &pof.controllers)),
        ("pof.listen", pof.map_or(&none, |pof| &pof.listen)),
    ];
    let mut uses = lists.iter().flat_map(|(list, ends)| {
        let uses = ends.iter().filter(|end| matches!(end, Endpoint::Ssl(_)));
        uses.map(move |end| (list, end))
    });
    match (uses.next(), files) {
        (Some((list, end)), None) => {
            let problem =
                format!("\"{end}\" needs certificates; add [tls] with certificate, private_key and ca");
            mistakes.wrong(format!("{}.{list}", context.key), problem);
            None
        }
        (None, Some(_)) => {
            if own.is_some() {
                notes.push(format!("{key} has no effect: no address begins with \"ssl:\"."));
            }
            None
        }
        (_, files) => files,
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    const FILES: &str = "certificate = \"c.pem\"\nprivate_key = \"k.pem\"\nca = \"ca.pem\"\n";

    fn parse(top: &str, openflow: &str, more: &str) -> Result<Config, String> {
        let text =
            format!("{top}\n[[worker]]\n[[datapath]]\nid = 1\n[datapath.openflow]\n{openflow}\n{more}\n");
        let lines = |all: Vec<crate::Mistake>| all.iter().map(|one| format!("{one}\n")).collect::<String>();
        Config::parse(&text).map_err(lines)
    }

    #[test]
    fn tls_needs_all_three_files() {
        let listen = "listen = \"ssl:127.0.0.1:6654\"";
        let problem = parse("", listen, "").unwrap_err();
        assert!(problem.contains("openflow.listen: \"ssl:127.0.0.1:6654\" needs certificates"), "{problem}");
        for (missing, name) in
            [("certificate", "certificate"), ("private_key", "private_key"), ("ca =", "ca")]
        {
            let some: String = FILES
                .lines()
                .filter(|line| !line.starts_with(missing))
                .map(|line| format!("{line}\n"))
                .collect();
            let problem = parse(&format!("[tls]\n{some}"), listen, "").unwrap_err();
            assert!(problem.contains(&format!("tls.{name}")), "{problem}");
        }
        let tls = parse(&format!("[tls]\n{FILES}"), listen, "").unwrap().datapath.tls.unwrap();
        assert_eq!((tls.ca.to_str(), tls.check_address), (Some("ca.pem"), true));
        assert!(parse("[tls]\ncertificate = \"\"\n", "", "").is_err());
    }

    #[test]
    fn a_datapath_may_have_files_of_its_own() {
        let own = "[datapath.tls]\ncertificate = \"own.pem\"\nprivate_key = \"k.pem\"\nca = \"ca.pem\"\ncheck_address = false";
        let listen = "controllers = [\"ssl:10.0.0.1\"]";
        let config = parse(&format!("[tls]\n{FILES}"), listen, own).unwrap();
        let tls = config.datapath.tls.unwrap();
        assert_eq!((tls.certificate.to_str(), tls.check_address), (Some("own.pem"), false));
        // Files without a use are not read.
        let config = parse(&format!("[tls]\n{FILES}"), "", own).unwrap();
        assert_eq!(config.datapath.tls, None);
        assert!(config.notes.iter().any(|note| note.starts_with("datapath.tls has no effect")));
    }

    #[test]
    fn an_address_is_used_once_with_and_without_tls() {
        let listen = "listen = \"127.0.0.1:6654\"";
        let pof = format!("[datapath.pof]\nlisten = \"ssl:127.0.0.1:6654\"\n[datapath.tls]\n{FILES}");
        assert!(parse("", listen, &pof).unwrap_err().contains("pof.listen[0]"));
    }
}
