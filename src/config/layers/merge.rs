//! From layers to one table of typed values.

use figment::error::{Actual, Kind};
use figment::{Error, Figment};

use crate::config::error::{ConfigError, Place, Problem, did_you_mean};
use crate::config::raw::RawConfig;

use super::layer::Layer;
use super::{server_kind, unavailable};

/// The merged values; the strongest layer is the last one.
///
/// # Errors
/// The first key that is not available yet, unknown, of the wrong form, or of another kind of server
/// than the one that holds.
pub(crate) fn merge(layers: &mut [Layer]) -> Result<RawConfig, ConfigError> {
    let keys = layers.iter().flat_map(|layer| layer.places.keys());
    if let Some(problem) = unavailable::first(keys, &merged(layers)) {
        return Err(locate(layers, problem));
    }
    // Each by itself too: a bad value is an error even where a stronger layer hides it.
    for layer in layers.iter() {
        extract(&Figment::from(layer), std::slice::from_ref(layer))?;
    }
    server_kind::keep_one(layers).map_err(|problem| locate(layers, problem))?;
    layers.iter_mut().for_each(Layer::lowercase_header_names);
    extract(&merged(layers), layers)
}

fn merged(layers: &[Layer]) -> Figment {
    layers.iter().fold(Figment::new(), |merged, layer| merged.merge(layer))
}

fn extract(values: &Figment, layers: &[Layer]) -> Result<RawConfig, ConfigError> {
    values.extract().map_err(|error| locate(layers, Problem::from(error)))
}

/// `problem` with the place where its key got the value that holds, or, for what was not written
/// down by itself, that of something in it, or of the nearest table around it.
pub(crate) fn locate(layers: &[Layer], problem: Problem) -> ConfigError {
    let place = |depth| layers.iter().rev().find_map(|layer| layer.place(&problem.path[..depth]));
    // Every value was written somewhere, so the name at the end is never seen.
    let nowhere = Place::Flag("configuration");
    let place = (1..=problem.path.len()).rev().find_map(place).cloned().unwrap_or(nowhere);
    ConfigError::Key { place, path: problem.path, problem: problem.text }
}

/// figment's own texts hold the value, so they are not used.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let text = match error.kind {
            Kind::UnknownField(key, known) => {
                format!("unknown key{}", did_you_mean(&key, known.iter().copied()))
            }
            Kind::InvalidType(actual, expected) | Kind::InvalidValue(actual, expected) => {
                mismatch(&actual, &expected)
            }
            Kind::Message(text) => text,
            _ => "bad value".into(),
        };
        Problem { path: error.path, text }
    }
}

fn mismatch(actual: &Actual, expected: &str) -> String {
    match (actual, expected) {
        (Actual::Unsigned(number), "a string") => format!("a bare number; write \"{number}\""),
        (Actual::Signed(number), "a string") => format!("a bare number; write \"{number}\""),
        (_, "a map") => "expected a table".into(),
        (_, "a sequence") => "expected a list".into(),
        (_, "a boolean") => "expected true or false".into(),
        (_, "usize" | "u64") => "expected a whole number, 0 or more".into(),
        (_, expected) => format!("expected {expected}"),
    }
}
