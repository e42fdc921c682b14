//! The config file as a layer: which file, what stands in it, and on which line.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};

use figment::value::{Dict, Value};
use toml_edit::{ImDocument, Item, TableLike};

use super::error::{ConfigError, Path, Place};
use super::expand::{Environment, expand, variable};
use super::layers::Layer;

/// The config file, if there is one, and its values.
///
/// It is the one that `--config` or `UNHURRY_CONFIG` names, which must exist, else
/// `unhurry/config.toml` in the user's config directory, which may be absent; never one in the
/// working directory, since a cloned repository must not choose what is run (contract §2).
pub(super) fn load(
    named: Option<&FilePath>,
    environment: &Environment,
) -> Result<Option<(PathBuf, Layer)>, ConfigError> {
    let variable = variable(environment, "UNHURRY_CONFIG").filter(|file| !file.is_empty());
    let named = named.or(variable.map(FilePath::new)).map(FilePath::to_path_buf);
    let must_exist = named.is_some();
    let Some(file) = named.or_else(|| default_file(environment)) else { return Ok(None) };
    match std::fs::read_to_string(&file) {
        Ok(text) => read(&file, &text, environment).map(|layer| Some((file, layer))),
        Err(cause) if !must_exist && is_absent(cause.kind()) => Ok(None),
        Err(cause) => Err(ConfigError::Unreadable { file, cause }),
    }
}

/// A home such as `/dev/null`, which service accounts have, is no directory.
fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn default_file(environment: &Environment) -> Option<PathBuf> {
    let directory = |name| variable(environment, name).map(PathBuf::from);
    // Relative paths have no meaning here (XDG), and would lead into the working directory.
    let absolute = |path: &PathBuf| path.is_absolute();
    let own = if cfg!(windows) { directory("APPDATA") } else { None };
    directory("XDG_CONFIG_HOME")
        .filter(absolute)
        .or_else(|| own.filter(absolute))
        .or_else(|| directory("HOME").filter(absolute).map(|home| home.join(".config")))
        .map(|config| config.join("unhurry").join("config.toml"))
}

fn read(file: &FilePath, text: &str, environment: &Environment) -> Result<Layer, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { file, text, environment, layer: Layer::default() };
    let document = ImDocument::parse(text).map_err(|error| ConfigError::Syntax {
        place: reader.place(error.span()),
        problem: error.message().trim().replace('\n', ", "),
    })?;
    reader.layer.values = reader.table(document.as_table(), &Path::new())?;
    Ok(reader.layer)
}

/// Turns TOML items into values, expands their strings, and notes their places.
struct Reader<'a> {
    file: &'a FilePath,
    text: &'a str,
    environment: &'a Environment,
    layer: Layer,
}

impl Reader<'_> {
    fn table(&mut self, table: &dyn TableLike, path: &Path) -> Result<Dict, ConfigError> {
        let mut values = Dict::new();
        for (name, item) in table.iter() {
            let span = table.key(name).and_then(|key| key.span()).or_else(|| item.span());
            let path = self.note(path, name, span);
            values.insert(name.into(), self.item(item, &path)?);
        }
        Ok(values)
    }

    fn item(&mut self, item: &Item, path: &Path) -> Result<Value, ConfigError> {
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

    fn value(&mut self, value: &toml_edit::Value, path: &Path) -> Result<Value, ConfigError> {
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

    fn list(&mut self, list: &toml_edit::Array, path: &Path) -> Result<Vec<Value>, ConfigError> {
        let mut values = Vec::new();
        for (index, value) in list.iter().enumerate() {
            let path = self.note(path, &index.to_string(), value.span());
            values.push(self.value(value, &path)?);
        }
        Ok(values)
    }

    fn expand(&self, text: &str, path: &Path) -> Result<String, ConfigError> {
        expand(text, self.environment).map_err(|problem| ConfigError::Key {
            place: self.layer.places[path].clone(),
            path: path.clone(),
            problem,
        })
    }

    /// The path of what is called `name` in `path`, after its place was noted.
    fn note(&mut self, path: &Path, name: &str, span: Option<Range<usize>>) -> Path {
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
