// SPDX-License-Identifier: Apache-2.0
//! Man pages and completions of shells, which packages install. They are made from [`crate::arguments`].

use crate::arguments::Arguments;
use crate::error::CommandError;
use clap::CommandFactory;
use clap_complete::Shell;
use std::fs;
use std::io;
use std::path::Path;

/// Shells with completions.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Fish, Shell::Zsh];

/// Writes the man pages to `man` and the completions to `completions`, both in `folder`.
pub fn generate(folder: &Path) -> Result<(), CommandError> {
    let write = || -> io::Result<()> {
        let (man, completions) = (folder.join("man"), folder.join("completions"));
        fs::create_dir_all(&man)?;
        fs::create_dir_all(&completions)?;
        clap_mangen::generate_to(Arguments::command(), &man)?;
        for shell in SHELLS {
            clap_complete::generate_to(shell, &mut Arguments::command(), "shunt", &completions)?;
        }
        Ok(())
    };
    write().map_err(|source| CommandError::Generate { folder: folder.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    /// Calls `check` with each command that help shows, and its name with those of the commands above.
    fn visit(command: &Command, name: &str, check: &mut dyn FnMut(&Command, &str)) {
        check(command, name);
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            if below.get_name() != "help" {
                visit(below, &format!("{name}-{}", below.get_name()), check);
            }
        }
    }

    #[test]
    fn every_command_has_a_man_page_and_completions_with_all_its_options() {
        let folder = std::env::temp_dir().join(format!("shunt-generate-{}", std::process::id()));
        generate(&folder).unwrap();
        let read =
            |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let completions =
            ["shunt.bash", "shunt.fish", "_shunt"].map(|name| read(&format!("completions/{name}")));
        let mut command = Arguments::command();
        command.build();
        let mut pages = 0;
        visit(&command, "shunt", &mut |command, name| {
            let page = read(&format!("man/{name}.1"));
            pages += 1;
            let about = command.get_about().unwrap().to_string();
            let first = about.split([',', ':', '-', '\'']).next().unwrap();
            assert!(page.contains(first), "{name}: {first}");
            for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
                let Some(long) = option.get_long() else { continue };
                let escaped = format!("\\-\\-{}", long.replace('-', "\\-"));
                assert!(page.contains(&escaped), "{name}: --{long}");
                for text in &completions {
                    assert!(text.contains(long), "{name}: --{long} has no completion");
                }
            }
            for text in &completions {
                assert!(text.contains(command.get_name()), "{name} has no completion");
            }
        });
        let files = fs::read_dir(folder.join("man")).unwrap().count();
        assert_eq!(pages, files, "a hidden command has a page");
        assert!(pages > 20, "{pages}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let message = generate(Path::new("/proc/shunt")).unwrap_err().to_string();
        assert!(message.starts_with("/proc/shunt: cannot write"), "{message}");
    }
}
