//! Figures in columns.

use std::fmt;

/// A table whose first column is aligned left and all others right.
pub(super) struct Table {
    rows: Vec<[String; 4]>,
}

impl Table {
    pub(super) fn new(head: [&str; 4]) -> Self {
        Self {
            rows: vec![head.map(str::to_string)],
        }
    }

    pub(super) fn row(&mut self, cells: [&str; 4]) {
        self.rows.push(cells.map(str::to_string));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let widths = self.rows.iter().map(|row| row[column].chars().count());
            widths.max().unwrap_or(0)
        };
        for [label, cells @ ..] in &self.rows {
            write!(f, "  {label:<width$}", width = width(0))?;
            for (column, cell) in (1..).zip(cells) {
                write!(f, "  {cell:>width$}", width = width(column))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A number with its digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// What is saved, in per cent; a dash where there was nothing.
pub(super) fn percent(without: u64, with: u64) -> String {
    if without == 0 {
        return "–".to_string();
    }
    let saved = 100.0 * (1.0 - with as f64 / without as f64);
    match saved.round() as i64 {
        0 => "0%".to_string(),
        saved => format!("{saved}%"),
    }
}

/// A large number in thousands or millions.
pub(super) fn scaled(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.2} G", n / 1e9),
        n if n >= 1e6 => format!("{:.2} M", n / 1e6),
        n if n >= 1e4 => format!("{:.1} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_to_be_read() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (16_991_945, "16,991,945"),
        ] {
            assert_eq!(grouped(number), text);
        }
        for (without, with, text) in [
            (0, 5, "–"),
            (100, 100, "0%"),
            (100, 25, "75%"),
            (100, 150, "-50%"),
        ] {
            assert_eq!(percent(without, with), text);
        }
        for (number, text) in [
            (999.0, "999"),
            (12_340.0, "12.3 k"),
            (16_991_945.0, "16.99 M"),
        ] {
            assert_eq!(scaled(number), text);
        }
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(["", "a", "b", "c"]);
        table.row(["long label", "1,000", "2", "–"]);
        assert_eq!(
            table.to_string(),
            "                  a  b  c\n  long label  1,000  2  –\n"
        );
    }
}
