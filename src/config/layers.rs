//! The layers of a configuration, file below environment below flags (contract §2), and the place
//! of every value in them.

use std::collections::BTreeMap;
use std::ops::Bound;

use figment::error::{Actual, Kind};
use figment::value::{Dict, Map, Value};
use figment::{Error, Figment, Metadata, Profile, Provider};

use super::error::{ConfigError, Path, Place, Problem, did_you_mean};
use super::raw::Raw;
use super::{unavailable, upstream};

/// The values of one source, and where each was written.
#[derive(Default)]
pub(super) struct Layer {
    pub values: Dict,
    pub places: BTreeMap<Path, Place>,
}

impl Layer {
    /// Puts a value at `path`. Where something that is no table is in its way, that stays: it will
    /// be refused for being no table.
    pub fn set(&mut self, path: Path, value: Value, place: Place) {
        if let Some((last, parents)) = path.split_last()
            && let Some(table) = descend(&mut self.values, parents)
        {
            table.insert(last.clone(), value);
        }
        self.places.insert(path, place);
    }

    /// The value of a key.
    pub fn value(&self, section: &str, key: &str) -> Option<&Value> {
        self.values.get(section)?.as_dict()?.get(key)
    }

    /// Takes a key out, as if it had not been written.
    pub fn remove(&mut self, section: &str, key: &str) {
        if let Some(Value::Dict(_, section)) = self.values.get_mut(section) {
            section.remove(key);
        }
        self.places.retain(|path, _| !path.iter().take(2).eq([section, key]));
    }

    /// The names of headers in lower case: any case means the same, and so a name in a stronger
    /// layer replaces that of a weaker one.
    fn unify_headers(&mut self) {
        if let Some(Value::Dict(_, upstream)) = self.values.get_mut("upstream")
            && let Some(Value::Dict(_, headers)) = upstream.get_mut("headers")
        {
            let lower = |(name, value): (String, Value)| (name.to_ascii_lowercase(), value);
            *headers = std::mem::take(headers).into_iter().map(lower).collect();
        }
    }

    /// The place of `path`, else of the first key in it.
    fn place(&self, path: &[String]) -> Option<&Place> {
        let from = (Bound::Included(path), Bound::Unbounded);
        let (first, place) = self.places.range::<[String], _>(from).next()?;
        first.starts_with(path).then_some(place)
    }
}

fn descend<'a>(mut table: &'a mut Dict, parents: &[String]) -> Option<&'a mut Dict> {
    for name in parents {
        match table.entry(name.clone()).or_insert_with(|| Dict::new().into()) {
            Value::Dict(_, inner) => table = inner,
            _ => return None,
        }
    }
    Some(table)
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named("unhurry")
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        Ok(Map::from([(Profile::Default, self.values.clone())]))
    }
}

/// The merged values; the strongest layer is the last one.
///
/// # Errors
/// The first key that is not available yet, unknown, of the wrong form, or of another kind of server
/// than the one that holds.
pub(super) fn merge(layers: &mut [Layer]) -> Result<Raw, ConfigError> {
    let keys = layers.iter().flat_map(|layer| layer.places.keys());
    if let Some(problem) = unavailable::first(keys, &merged(layers)) {
        return Err(locate(layers, problem));
    }
    // Each by itself too: a bad value is an error even where a stronger layer hides it.
    for layer in layers.iter() {
        extract(&Figment::from(layer), std::slice::from_ref(layer))?;
    }
    upstream::settle(layers).map_err(|problem| locate(layers, problem))?;
    layers.iter_mut().for_each(Layer::unify_headers);
    extract(&merged(layers), layers)
}

fn merged(layers: &[Layer]) -> Figment {
    layers.iter().fold(Figment::new(), |merged, layer| merged.merge(layer))
}

fn extract(values: &Figment, layers: &[Layer]) -> Result<Raw, ConfigError> {
    values.extract().map_err(|error| locate(layers, Problem::from(error)))
}

/// `problem` with the place where its key got the value that holds, or, for what was not written
/// down by itself, that of something in it, or of the nearest table around it.
pub(super) fn locate(layers: &[Layer], problem: Problem) -> ConfigError {
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
