//! The layers of a configuration, file below environment below flags (contract §2), and how they
//! become one table. Nothing in here knows what a key means, but for those that name the server.

mod environment;
mod expand;
mod file;
mod flags;
mod layer;
mod merge;
mod server_kind;
mod unavailable;

use std::path::PathBuf;

use super::error::{ConfigError, Problem};
use super::raw::RawConfig;
use expand::Variables;
use layer::Layer;

pub use flags::Overrides;

/// All layers, the weakest first.
pub(crate) struct Layers([Layer; 3]);

impl Layers {
    /// Reads the layers, and says which config file was read, if any.
    ///
    /// # Errors
    /// A config file that can't be read or is no TOML, a flag that can't be taken apart, or an unset
    /// variable in one of them.
    pub(crate) fn read(
        overrides: &Overrides,
        variables: &Variables,
    ) -> Result<(Self, Option<PathBuf>), ConfigError> {
        let (file, from_file) = match file::load(overrides.config_file.as_deref(), variables)? {
            Some((file, layer)) => (Some(file), layer),
            None => (None, Layer::default()),
        };
        let from_environment = environment::from_variables(variables);
        let from_flags = flags::from_overrides(overrides, variables)?;
        Ok((Layers([from_file, from_environment, from_flags]), file))
    }

    /// The merged values.
    ///
    /// # Errors
    /// The first key that is not available yet, unknown, of the wrong form, or of another kind of
    /// server than the one that holds.
    pub(crate) fn merge(&mut self) -> Result<RawConfig, ConfigError> {
        merge::merge(&mut self.0)
    }

    /// `problem` with the place where its key was written.
    pub(crate) fn locate(&self, problem: Problem) -> ConfigError {
        merge::locate(&self.0, problem)
    }
}
