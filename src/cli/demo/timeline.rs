//! Draws who waits for whom: time runs to the right, a bar is a wait or a work, an arrow its answer.

use std::fmt::Write;
use std::time::Duration;

/// Columns before the bars, for their names.
const NAMES: usize = 16;
/// Columns that the bars take together, whatever the time is that they show.
const BARS: usize = 55;
/// The fewest columns between two marks of the axis.
const APART: usize = 5;

/// One case.
pub(crate) struct Case<'a> {
    pub title: String,
    pub rows: Vec<Row<'a>>,
}

/// A line of a case: what somebody does, and a note behind it.
pub(crate) struct Row<'a> {
    pub name: &'a str,
    pub marks: Vec<Mark<'a>>,
    pub note: String,
}

/// What stands in a row; times count from the start of the axis.
pub(crate) enum Mark<'a> {
    /// Something that lasts, and how it ends.
    Bar { from: Duration, to: Duration, label: &'a str, end: BarEnd },
    /// A word that ends at a time.
    Word { at: Duration, text: &'a str },
}

/// How a bar ends.
#[derive(Clone, Copy)]
pub(crate) enum BarEnd {
    Answer,
    GaveUp,
}

/// The cases, one below the other on one axis.
pub(crate) fn draw(cases: &[Case]) -> String {
    let marks = cases.iter().flat_map(|case| &case.rows).flat_map(|row| &row.marks);
    let last = marks.map(Mark::end).max().unwrap_or_default();
    let scale = Scale::up_to(last);
    let mut drawing = scale.axis();
    for case in cases {
        let _ = writeln!(drawing, "{}", case.title);
        for row in &case.rows {
            let bars = scale.row(&row.marks);
            let line = format!("{:NAMES$}{bars:BARS$}  {}", row.name, row.note);
            let _ = writeln!(drawing, "{}", line.trim_end());
        }
    }
    drawing
}

impl Mark<'_> {
    fn end(&self) -> Duration {
        match self {
            Mark::Bar { to, .. } => *to,
            Mark::Word { at, .. } => *at,
        }
    }
}

/// Where a time stands.
struct Scale {
    /// The length of the axis in seconds, a whole number of steps.
    seconds: usize,
    /// Seconds between two marks of the axis.
    step: usize,
}

impl Scale {
    fn up_to(last: Duration) -> Self {
        // A last mark a moment after a full second needs no second of its own.
        let seconds = (last.as_secs_f64() - 0.2).ceil().max(1.0) as usize;
        let step = (seconds * APART).div_ceil(BARS).max(1);
        Scale { seconds: seconds.div_ceil(step) * step, step }
    }

    fn column(&self, time: Duration) -> usize {
        let column = time.as_secs_f64() * BARS as f64 / self.seconds as f64;
        (column.round() as usize).min(BARS)
    }

    fn axis(&self) -> String {
        let mut axis = format!("{:NAMES$}", "seconds");
        for second in (0..=self.seconds).step_by(self.step) {
            let column = NAMES + self.column(Duration::from_secs(second as u64));
            let _ = write!(axis, "{:1$}{second}", "", column.saturating_sub(axis.chars().count()));
        }
        axis + "\n"
    }

    fn row(&self, marks: &[Mark]) -> String {
        let mut row = String::new();
        for mark in marks {
            let used = row.chars().count();
            let (start, text) = match mark {
                Mark::Bar { from, to, label, end } => {
                    let start = self.column(*from).max(used);
                    (start, bar(self.column(*to).saturating_sub(start), label, *end))
                }
                Mark::Word { at, text } => {
                    let start = self.column(*at).saturating_sub(text.chars().count());
                    (start.max(used), (*text).to_owned())
                }
            };
            let _ = write!(row, "{:1$}{text}", "", start - used);
        }
        row
    }
}

/// A bar of so many columns, at least its two ends.
fn bar(columns: usize, label: &str, end: BarEnd) -> String {
    let inside = columns.saturating_sub(2);
    let spaced = if label.is_empty() { String::new() } else { format!(" {label} ") };
    let label = [&spaced, label].into_iter().find(|text| text.chars().count() <= inside);
    let end = match end {
        BarEnd::Answer => '►',
        BarEnd::GaveUp => '✗',
    };
    format!("├{:─<inside$}{end}", label.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn drawn(marks: Vec<Mark>) -> Vec<String> {
        let row = Row { name: "  client waits", marks, note: "a note".into() };
        let case = Case { title: "a case".into(), rows: vec![row] };
        draw(&[case]).lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_bar_has_its_place_its_label_and_its_end() {
        let first =
            Mark::Bar { from: seconds(0.0), to: seconds(3.0), label: "build", end: BarEnd::GaveUp };
        let second =
            Mark::Bar { from: seconds(4.0), to: seconds(5.01), label: "", end: BarEnd::Answer };
        let lines = drawn(vec![first, second]);
        assert_eq!(
            lines[0].trim_end(),
            format!("{:16}0{:10}1{:10}2{:10}3{:10}4{:10}5", "seconds", "", "", "", "", "")
        );
        assert_eq!(lines[1], "a case");
        let (first, second) = ("├ build ────────────────────────✗", "├─────────►");
        assert_eq!(lines[2], format!("  client waits  {first}{:11}{second}  a note", ""));
    }

    #[test]
    fn however_long_it_takes_the_width_is_the_same() {
        for end in [0.0, 0.4, 1.0, 7.3, 60.0, 4000.0] {
            let bar = Mark::Bar {
                from: seconds(end / 2.0),
                to: seconds(end),
                label: "a long name of a tool",
                end: BarEnd::Answer,
            };
            let word = Mark::Word { at: seconds(end), text: "result" };
            let lines = drawn(vec![bar, word]);
            assert!(lines.iter().all(|line| line.chars().count() <= 90), "{lines:#?}");
        }
    }
}
