//! One layer of the configuration: values, and the place of each.

use std::collections::BTreeMap;
use std::ops::Bound;

use figment::value::{Dict, Map, Value};
use figment::{Error, Metadata, Profile, Provider};

use crate::config::error::{KeyPath, Place};

/// The values of one source, and where each was written.
#[derive(Default)]
pub(crate) struct Layer {
    pub values: Dict,
    pub places: BTreeMap<KeyPath, Place>,
}

impl Layer {
    /// Puts a value at `path`. Where something that is no table is in its way, that stays: it will
    /// be refused for being no table.
    pub(crate) fn set(&mut self, path: KeyPath, value: Value, place: Place) {
        if let Some((last, parents)) = path.split_last()
            && let Some(table) = descend(&mut self.values, parents)
        {
            table.insert(last.clone(), value);
        }
        self.places.insert(path, place);
    }

    /// The value of a key.
    pub(crate) fn value(&self, section: &str, key: &str) -> Option<&Value> {
        self.values.get(section)?.as_dict()?.get(key)
    }

    /// Takes a key out, as if it had not been written.
    pub(crate) fn remove(&mut self, section: &str, key: &str) {
        if let Some(Value::Dict(_, section)) = self.values.get_mut(section) {
            section.remove(key);
        }
        self.places.retain(|path, _| !path.iter().take(2).eq([section, key]));
    }

    /// The names of headers in lower case: any case means the same, and so a name in a stronger
    /// layer replaces that of a weaker one.
    pub(crate) fn lowercase_header_names(&mut self) {
        if let Some(Value::Dict(_, upstream)) = self.values.get_mut("upstream")
            && let Some(Value::Dict(_, headers)) = upstream.get_mut("headers")
        {
            let lower = |(name, value): (String, Value)| (name.to_ascii_lowercase(), value);
            *headers = std::mem::take(headers).into_iter().map(lower).collect();
        }
    }

    /// The place of `path`, else of the first key in it.
    pub(crate) fn place(&self, path: &[String]) -> Option<&Place> {
        let from = (Bound::Included(path), Bound::Unbounded);
        let (first, place) = self.places.range::<[String], _>(from).next()?;
        first.starts_with(path).then_some(place)
    }
}

/// The table at `parents`, made where it is missing.
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
