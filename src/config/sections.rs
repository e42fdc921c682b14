//! Sections that are named by a pattern, such as `[tools."build_*"]`.

use std::collections::BTreeMap;

use globset::{Glob, GlobMatcher};

use super::error::Problem;

/// Sections by pattern. An exact name beats the longest glob (contract §3); of equally long ones the
/// first in alphabetical order holds.
#[derive(Debug)]
pub(super) struct Sections<T> {
    by_pattern: BTreeMap<String, T>,
    /// The longest pattern first.
    globs: Vec<(GlobMatcher, String)>,
}

impl<T> Sections<T> {
    /// Compiles the patterns of the table that is called `table`.
    ///
    /// # Errors
    /// The first pattern that is no glob.
    pub(crate) fn new(table: &str, by_pattern: BTreeMap<String, T>) -> Result<Self, Problem> {
        let compile = |pattern: &String| match Glob::new(pattern) {
            Ok(glob) => Ok((glob.compile_matcher(), pattern.clone())),
            Err(error) => Err(Problem {
                path: vec![table.into(), pattern.clone()],
                text: format!("not a glob: {}", error.kind()),
            }),
        };
        let mut globs = by_pattern.keys().map(compile).collect::<Result<Vec<_>, _>>()?;
        globs.sort_by_key(|(_, pattern)| std::cmp::Reverse(pattern.chars().count()));
        Ok(Self { by_pattern, globs })
    }

    /// All patterns.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &str> {
        self.by_pattern.keys().map(String::as_str)
    }

    /// The one section that holds for `name`, with its pattern.
    pub(crate) fn get(&self, name: &str) -> Option<(&str, &T)> {
        let glob = || self.globs.iter().find(|(glob, _)| glob.is_match(name));
        self.by_pattern
            .get_key_value(name)
            .or_else(|| self.by_pattern.get_key_value(&glob()?.1))
            .map(|(pattern, section)| (pattern.as_str(), section))
    }
}
