//! The config file as a layer: which file, what stands in it, and on which line.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use figment::value::{Dict, Value};
use toml_edit::{ImDocument, Item, TableLike};

use crate::config::error::{ConfigError, KeyPath, Place};

use super::expand::{Variables, expand, variable};
use super::layer::Layer;

/// The config file, if there is one, and its values.
///
/// It is the one that `--config` or `UNHURRY_CONFIG` names, which must exist, else
/// `unhurry/config.toml` in the user's config directory, which may be absent; never one in the
/// working directory, since a cloned repository must not choose what is run (contract §2).
///
/// # Errors
/// A file that can't be read, is no TOML, or has a `${VAR}` that can't be expanded.
#[expect(clippy::disallowed_methods, reason = "before the relay starts")]
pub(crate) fn load(
    named: Option<&Path>,
    variables: &Variables,
) -> Result<Option<(PathBuf, Layer)>, ConfigError> {
    let variable = variable(variables, "UNHURRY_CONFIG").filter(|file| !file.is_empty());
    let named = named.or(variable.map(Path::new)).map(Path::to_path_buf);
    let must_exist = named.is_some();
    let Some(file) = named.or_else(|| default_file(variables)) else { return Ok(None) };
    match std::fs::read_to_string(&file) {
        Ok(text) => read(&file, &text, variables).map(|layer| Some((file, layer))),
        Err(cause) if !must_exist && is_absent(cause.kind()) => Ok(None),
        Err(cause) => Err(ConfigError::Unreadable { file, cause }),
    }
}

/// A home such as `/dev/null`, which service accounts have, is no directory.
fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn default_file(variables: &Variables) -> Option<PathBuf> {
    let directory = |name| variable(variables, name).map(PathBuf::from);
    // Relative paths have no meaning here (XDG), and would lead into the working directory.
    let absolute = |path: &PathBuf| path.is_absolute();
    let own = if cfg!(windows) { directory("APPDATA") } else { None };
    directory("XDG_CONFIG_HOME")
        .filter(absolute)
        .or_else(|| own.filter(absolute))
        .or_else(|| directory("HOME").filter(absolute).map(|home| home.join(".config")))
        .map(|config| config.join("unhurry").join("config.toml"))
}

fn read(file: &Path, text: &str, variables: &Variables) -> Result<Layer, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { file, text, variables, layer: Layer::default() };
    let document = ImDocument::parse(text).map_err(|error| ConfigError::Syntax {
        place: reader.place(error.span()),
        problem: error.message().trim().replace('\n', ", "),
    })?;
    reader.layer.values = reader.table(document.as_table(), &KeyPath::new())?;
    Ok(reader.layer)
}

/// Turns TOML items into values, expands their strings, and notes their places.
struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
    variables: &'a Variables,
    layer: Layer,
}

impl Reader<'_> {
    fn table(&mut self, table: &dyn TableLike, path: &KeyPath) -> Result<Dict, ConfigError> {
        let mut values = Dict::new();
        for (name, item) in table.iter() {
            let span = table.key(name).and_then(|key| key.span()).or_else(|| item.span());
            let path = self.note(path, name, span);
            values.insert(name.into(), self.item(item, &path)?);
        }
        Ok(values)
    }

    fn item(&mut self, item: &Item, path: &KeyPath) -> Result<Value, ConfigError> {
        match item {
            Item::Value(value) => self.value(value, path),
            Item::Table(table) => Ok(self.table(table, path)?.into()),
            Item::ArrayOfTables(tables) => {
                let tables = tables.iter().map(|table| self.table(table, path));
                Ok(tables.collect::<Result<Vec<_>, _>>()?.into())
            }
            // Only an edited document has these.
            Item::None => Ok(Dict::new().into()),
        }
    }

    fn value(&mut self, value: &toml_edit::Value, path: &KeyPath) -> Result<Value, ConfigError> {
        Ok(match value {
            toml_edit::Value::String(text) => self.expand(text.value(), path)?.into(),
            toml_edit::Value::Integer(number) => (*number.value()).into(),
            toml_edit::Value::Float(number) => (*number.value()).into(),
            toml_edit::Value::Boolean(truth) => (*truth.value()).into(),
            // No key takes a date; as text it is refused like any other wrong text.
            toml_edit::Value::Datetime(date) => date.value().to_string().into(),
            toml_edit::Value::InlineTable(table) => self.table(table, path)?.into(),
            toml_edit::Value::Array(list) => self.list(list, path)?.into(),
        })
    }

    fn list(&mut self, list: &toml_edit::Array, path: &KeyPath) -> Result<Vec<Value>, ConfigError> {
        let mut values = Vec::new();
        for (index, value) in list.iter().enumerate() {
            let path = self.note(path, &index.to_string(), value.span());
            values.push(self.value(value, &path)?);
        }
        Ok(values)
    }

    fn expand(&self, text: &str, path: &KeyPath) -> Result<String, ConfigError> {
        expand(text, self.variables).map_err(|problem| ConfigError::Key {
            place: self.layer.places[path].clone(),
            path: path.clone(),
            problem: problem.to_string(),
        })
    }

    /// The path of what is called `name` in `path`, after its place was noted.
    fn note(&mut self, path: &KeyPath, name: &str, span: Option<Range<usize>>) -> KeyPath {
        let path = [path.as_slice(), &[name.into()]].concat();
        let place = self.place(span);
        self.layer.places.insert(path.clone(), place);
        path
    }

    fn place(&self, span: Option<Range<usize>>) -> Place {
        let before = &self.text.as_bytes()[..span.map_or(0, |span| span.start)];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        Place::Line { file: self.file.into(), line }
    }
}
