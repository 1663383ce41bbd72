//! Which ids the nodes of a file have: gaps for a bulk load, and places between neighbours for what an edit adds.
//!
//! Must not know a database. Invariant: ids ascend with the start bytes of their definitions, all of them between that of the file and
//! that of the next file.

use std::collections::HashMap;

use crate::model::{Definition, DefinitionKey};

/// From one definition of a bulk load to the next. Ids of a million nodes stay below what four bytes hold.
const STRIDE: i64 = 8;
/// Ids that stay free behind a file of a bulk load, beside a quarter of its own.
const BETWEEN_FILES: i64 = 64;

/// The ids of one file.
#[derive(Clone, Debug)]
pub(super) struct FileNodes<'a> {
    /// Of the file itself.
    pub node: i64,
    /// Of each definition, by its index in the facts.
    pub definitions: Vec<i64>,
    pub keys: HashMap<&'a DefinitionKey, i64>,
}

impl<'a> FileNodes<'a> {
    fn new(node: i64, definitions: &'a [Definition], order: &[usize], ids: impl IntoIterator<Item = i64>) -> Self {
        let mut by_index = vec![node; definitions.len()];
        for (&index, id) in order.iter().zip(ids) {
            by_index[index] = id;
        }
        let keys = definitions.iter().zip(&by_index).map(|(definition, id)| (&definition.key, *id)).collect();
        Self { node, definitions: by_index, keys }
    }

    /// Returns the ids of a file in a bulk load, the first one given, and the id that the next file may have.
    pub fn spread(node: i64, definitions: &'a [Definition]) -> (Self, i64) {
        let order = by_place(definitions);
        let count = definitions.len() as i64;
        let nodes = Self::new(node, definitions, &order, (1..=count).map(|rank| node + rank * STRIDE));
        (nodes, node + count * STRIDE + BETWEEN_FILES + count / 4 * STRIDE)
    }

    /// Returns ids for a file that had definitions before, at `before`, by key; all of them above `node` and below `end`. What survives keeps
    /// its id as far as the order allows. `None` when there is no room.
    pub fn revise(node: i64, definitions: &'a [Definition], before: &HashMap<DefinitionKey, i64>, end: i64) -> Option<Self> {
        let order = by_place(definitions);
        let known: Vec<Option<i64>> = order.iter().map(|&index| before.get(&definitions[index].key).copied()).collect();
        let kept = longest_ascent(&known);
        let ids = fill(node, &kept, end).or_else(|| {
            // All of them anew, so that the room is shared out evenly.
            fill(node, &vec![None; order.len()], end)
        })?;
        Some(Self::new(node, definitions, &order, ids))
    }

    /// Returns ids for a new file between the last id of the file before and the first one of the file after it, if there is one.
    pub fn insert(before: i64, definitions: &'a [Definition], after: Option<i64>) -> Option<Self> {
        let count = definitions.len() as i64;
        let wanted = (count + 1) * STRIDE;
        let after = after.unwrap_or(i64::MAX).min(before + 2 * (wanted + BETWEEN_FILES));
        let free = after - before - 1;
        if free < count + 1 {
            return None;
        }
        // Half of what is to spare stays with the file before, which may grow, too.
        let node = before + 1 + (free - wanted).max(0) / 2;
        let stride = ((after - node) / (count + 1)).clamp(1, STRIDE);
        let order = by_place(definitions);
        Some(Self::new(node, definitions, &order, (1..=count).map(|rank| node + rank * stride)))
    }

    /// Returns the largest id.
    pub fn last(&self) -> i64 {
        self.definitions.iter().copied().max().unwrap_or(self.node)
    }
}

/// Returns the indexes of definitions in the order of their ids.
pub(super) fn by_place(definitions: &[Definition]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..definitions.len()).collect();
    order.sort_by_key(|&index| definitions[index].span.start);
    order
}

/// Returns the ids of a longest part that ascends, the others as `None`.
fn longest_ascent(ids: &[Option<i64>]) -> Vec<Option<i64>> {
    // For each length the position at which an ascent of it ends lowest.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; ids.len()];
    for (position, id) in ids.iter().enumerate() {
        let Some(id) = id else { continue };
        let length = ends.partition_point(|&end| ids[end] < Some(*id));
        before[position] = length.checked_sub(1).map(|shorter| ends[shorter]);
        if length == ends.len() {
            ends.push(position);
        } else {
            ends[length] = position;
        }
    }
    let mut kept = vec![None; ids.len()];
    let mut next = ends.last().copied();
    while let Some(position) = next {
        kept[position] = ids[position];
        next = before[position];
    }
    kept
}

/// Puts ids in the place of `None`, evenly between their neighbours; `None` when there is no room.
fn fill(node: i64, ids: &[Option<i64>], end: i64) -> Option<Vec<i64>> {
    let mut filled = Vec::with_capacity(ids.len());
    let mut last = node;
    let mut rest = ids;
    while let Some(missing) = rest.iter().position(Option::is_some).or((!rest.is_empty()).then_some(rest.len())) {
        let at_end = missing == rest.len();
        let next = if at_end { end } else { rest[missing].unwrap_or(end) };
        let count = missing as i64;
        if next <= last + count {
            return None;
        }
        // What is added at the end takes no more than it needs.
        let stride = ((next - last) / (count + 1)).min(STRIDE);
        filled.extend((1..=count).map(|rank| last + rank * stride));
        if at_end {
            break;
        }
        filled.push(next);
        last = next;
        rest = &rest[missing + 1..];
    }
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ids` are numbers, or `.` for what is new.
    fn check(ids: &str, end: i64, expected: &str) {
        let ids: Vec<Option<i64>> = ids.split_whitespace().map(|id| id.parse().ok()).collect();
        let filled = fill(0, &longest_ascent(&ids), end);
        let text = filled.map(|ids| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        assert_eq!(text.as_deref().unwrap_or("no room"), expected);
    }

    #[test]
    fn survivors_keep_their_ids() {
        check("8 16 24", 100, "8 16 24");
        check("8 . 16 24", 100, "8 12 16 24");
        check(". . 8", 100, "2 4 8");
        check("8 . .", 100, "8 16 24");
        check("8 . .", 12, "8 9 10");
        check("8 . . .", 11, "no room");
        check("8 . 9", 100, "no room");
        check("", 1, "");
    }

    #[test]
    fn the_longest_ascent_is_kept() {
        check("24 8 16", 100, "4 8 16");
        check("16 24 8", 100, "16 24 32");
        check("32 8 16 24 40", 100, "4 8 16 24 40");
    }

    #[test]
    fn a_new_file_stands_between_its_neighbours() {
        let place = |before, after| FileNodes::insert(before, &[], after).map(|nodes| nodes.node);
        assert_eq!(place(8, Some(72)), Some(36));
        assert_eq!(place(8, Some(10)), Some(9));
        assert_eq!(place(8, Some(9)), None);
        assert_eq!(place(8, None), Some(76));
    }
}
