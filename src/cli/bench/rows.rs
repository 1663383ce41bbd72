//! Measurements by name, and the table of their medians.
//!
//! Must not know how anything is measured. Invariant: rows stand in the order in which their names came first, and a ratio is one of two
//! medians of the same run.

use super::seconds;
pub use super::warm::Taken as Sample;

/// All measurements of one benchmark.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
    notes: Vec<(String, Vec<f64>)>,
}

#[derive(Debug)]
struct Row {
    name: String,
    /// The row that this one is compared with; that of the whole table when there is none.
    against: Option<String>,
    reach: String,
    samples: Vec<Sample>,
}

impl Table {
    /// Adds a measurement to the row of its name.
    pub fn add(&mut self, name: &str, reach: &str, sample: Sample) {
        self.push(name, None, reach, sample);
    }

    /// Adds a measurement that is compared with another row than the others are.
    pub fn add_against(&mut self, against: &str, name: &str, reach: &str, sample: Sample) {
        self.push(name, Some(against), reach, sample);
    }

    fn push(&mut self, name: &str, against: Option<&str>, reach: &str, sample: Sample) {
        match self.rows.iter_mut().find(|row| row.name == name) {
            Some(row) => row.samples.push(sample),
            None => self.rows.push(Row {
                name: name.to_owned(),
                against: against.map(str::to_owned),
                reach: reach.to_owned(),
                samples: vec![sample],
            }),
        }
    }

    /// Adds a number that is no time.
    pub fn note(&mut self, name: &str, value: f64) {
        match self.notes.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => values.push(value),
            None => self.notes.push((name.to_owned(), vec![value])),
        }
    }

    pub fn absorb(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.notes.extend(other.notes);
    }

    fn median(&self, name: &str) -> Option<Sample> {
        let row = self.rows.iter().find(|row| row.name == name)?;
        Some(Sample {
            cpu: middle(row.samples.iter().map(|sample| sample.cpu)),
            wall: middle(row.samples.iter().map(|sample| sample.wall)),
        })
    }

    /// Returns the table as Markdown, each row compared with that of the name `base`.
    pub fn text(&self, base: &str, runs: usize) -> String {
        let mut text = format!(
            "medians of {runs} runs; ratios are to {base} unless the row says otherwise\n\n\
             | measured | CPU | wall | ratio (CPU) | ratio (wall) | to reach |\n|---|---|---|---|---|---|\n"
        );
        for row in &self.rows {
            let own = self.median(&row.name).unwrap_or_default();
            let against = row.against.as_deref().unwrap_or(base);
            let ratio = |of: f64, base: f64| if row.name == against { String::new() } else { format!("{:.2} ×", of / base) };
            let base = self.median(against).unwrap_or_default();
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} | {} |\n",
                row.name,
                seconds(own.cpu),
                seconds(own.wall),
                ratio(own.cpu, base.cpu),
                ratio(own.wall, base.wall),
                row.reach
            ));
        }
        text.push('\n');
        for (name, values) in &self.notes {
            text.push_str(&format!("- {name}: {:.2} MB\n", middle(values.iter().copied()) / 1e6));
        }
        text
    }
}

fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_medians_and_ratios() {
        let mut table = Table::default();
        for (cpu, wall) in [(3.0, 1.0), (1.0, 3.0), (2.0, 2.0)] {
            table.add("floor", "", Sample { cpu, wall });
            table.add("work", "≤ 4 ×", Sample { cpu: cpu * 3.0, wall });
            table.add_against("work", "more", "", Sample { cpu: cpu * 6.0, wall });
            table.note("written", 2e6);
        }
        let text = table.text("floor", 3);
        let rows: Vec<&str> = text.lines().skip(4).collect();
        assert_eq!(
            rows,
            [
                "| floor | 2.00 s | 2.00 s |  |  |  |",
                "| work | 6.00 s | 2.00 s | 3.00 × | 1.00 × | ≤ 4 × |",
                "| more | 12.00 s | 2.00 s | 2.00 × | 1.00 × |  |",
                "",
                "- written: 2.00 MB",
            ]
        );
    }
}
