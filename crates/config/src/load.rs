// SPDX-License-Identifier: Apache-2.0
//! Reads the daemon's configuration file. Begin with [`Config::load`].

use crate::check;
use crate::machine::Scope;
use crate::mistakes::{FileMistakes, Mistake, wrong};
use crate::settings::Config;
use crate::text;
use std::path::{Path, PathBuf};

/// Error of [`Config::load`].
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot read the configuration: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The contents are wrong. Each mistake is one line.
    #[error(transparent)]
    Wrong(FileMistakes),
}

impl Config {
    /// Reads and checks a file. Only the file itself is checked.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or an error that lists all mistakes in the file.
    pub fn load(path: &Path) -> Result<Vec<Self>, ConfigError> {
        Self::load_for(path, Scope::File)
    }

    /// Reads and checks a file as [`Config::load`] does, with the additional checks of `scope`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or an error that lists all mistakes in the file.
    pub fn load_for(path: &Path, scope: Scope) -> Result<Vec<Self>, ConfigError> {
        text::load(path, |text| Self::parse_for(text, scope))
            .map_err(|source| ConfigError::Read { path: path.into(), source })?
            .map_err(ConfigError::Wrong)
    }

    /// Reads the text of a file without checking it.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is too long, or is not UTF-8 text.
    pub fn read(path: &Path) -> Result<String, ConfigError> {
        text::read_text(path)
            .map_err(|source| ConfigError::Read { path: path.into(), source })?
            .map_err(ConfigError::Wrong)
    }

    /// Checks the text of the file at `path`, as [`Config::load`] does.
    ///
    /// # Errors
    ///
    /// Returns an error that lists all mistakes in the text.
    pub fn parse_file(path: &Path, text: &str) -> Result<Vec<Self>, ConfigError> {
        Self::parse_all(text).map_err(|list| ConfigError::Wrong(FileMistakes::new(path, list)))
    }

    /// Checks the text of a file.
    ///
    /// # Errors
    ///
    /// Returns all mistakes, in the order of the text.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, Vec<Mistake>> {
        Self::parse_for(text, Scope::File)
    }

    /// Checks the text of a file as [`Config::parse_all`] does, with the additional checks of `scope`.
    pub(crate) fn parse_for(text: &str, scope: Scope) -> Result<Vec<Self>, Vec<Mistake>> {
        text::parse(text, text::CONFIGURATION, |file, mistakes| Some(check::configs(file, scope, mistakes)))
    }

    /// Checks the text of a file that configures one datapath.
    ///
    /// # Errors
    ///
    /// Returns all mistakes in the order of the text, or an error if the number of datapaths is not one.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let [one] = <[Self; 1]>::try_from(Self::parse_all(text)?).map_err(|all| {
            vec![wrong("datapath", format!("there are {}, but one is expected", all.len()))]
        })?;
        Ok(one)
    }
}
