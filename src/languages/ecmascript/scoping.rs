//! What every use of a name in one file means: the innermost scope that gives it a fitting meaning decides.
//!
//! Must not know other files. Invariant: a binding whose name has no meaning of the asked sort does not hide one further out.

use std::collections::HashMap;

use super::raw::*;
use crate::model::{Definition, SymbolKind};

/// How many assignments are kept as evidence for one variable.
const MAX_EVIDENCE: usize = 4;

/// What a name means where it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Free,
    One(u32),
    /// Index of a set of bindings.
    Many(u32),
}

/// What every use of the file means.
pub(super) struct Bindings {
    pub uses: Vec<Bound>,
    pub sets: Vec<Vec<u32>>,
}

/// Binds the uses of a file, and gives what is assigned later to the variables it is assigned to.
pub(super) fn bind_uses(raw: &mut Raw<'_>, definitions: &[Definition]) -> Bindings {
    let mut known: QuickMap<(u64, u8), Bound> = QuickMap::default();
    let mut bindings = Bindings { uses: Vec::with_capacity(raw.uses.len()), sets: Vec::new() };
    for used in &raw.uses {
        let key = (group_key(used.scope, used.name), used.meanings);
        let bound = *known.entry(key).or_insert_with(|| find(raw, definitions, *used, &mut bindings.sets));
        bindings.uses.push(bound);
    }
    let mut counts: HashMap<u32, usize> = HashMap::new();
    for (used, value) in std::mem::take(&mut raw.assignments) {
        let Bound::One(index) = bindings.uses[used as usize] else { continue };
        let binding = raw.bindings[index as usize];
        match binding.role {
            RawRole::Function | RawRole::Class | RawRole::Import(_) => raw.bindings[index as usize].written = true,
            RawRole::Variable | RawRole::Parameter if value != NONE && value != binding.value => {
                let count = counts.entry(index).or_default();
                *count += 1;
                if *count > MAX_EVIDENCE {
                    continue;
                }
                let before = raw.bindings[index as usize].value;
                let nothing = before == NONE || raw.expressions[before as usize] == RawExpression::Literal;
                raw.bindings[index as usize].value = if nothing {
                    value
                } else {
                    raw.expressions.push(RawExpression::Either(before, value));
                    raw.expressions.len() as u32 - 1
                };
            }
            _ => {}
        }
    }
    bindings
}

/// Finds what a name means: the innermost scope that gives it a fitting meaning decides.
fn find(raw: &Raw<'_>, definitions: &[Definition], used: RawUse, sets: &mut Vec<Vec<u32>>) -> Bound {
    let mut scope = used.scope;
    while scope != NONE {
        let entry = raw.scopes[scope as usize];
        let mut found = Vec::new();
        let mut next = raw.groups.get(&group_key(scope, used.name)).copied().unwrap_or(NONE);
        while next != NONE {
            let binding = &raw.bindings[next as usize];
            if binding.meanings & used.meanings != 0 {
                found.push(next);
            }
            next = binding.previous;
        }
        if found.is_empty() && entry.space != NONE {
            let statics = &raw.classes[entry.space as usize].statics;
            let fits = |binding: u32| raw.bindings[binding as usize].meanings & used.meanings != 0;
            found.extend(
                statics.iter().filter(|(name, binding)| *name == used.name && fits(*binding)).map(|(_, binding)| *binding),
            );
        }
        if !found.is_empty() {
            found.sort_by_key(|binding| rank(raw, definitions, *binding, used.meanings));
            if found.len() == 1 || used.meanings.count_ones() == 1 {
                return Bound::One(found[0]);
            }
            sets.push(found);
            return Bound::Many(sets.len() as u32 - 1);
        }
        scope = entry.parent;
    }
    Bound::Free
}

/// Orders the declarations that one name merges: which of them is meant by a use of a meaning.
fn rank(raw: &Raw<'_>, definitions: &[Definition], binding: u32, meanings: Meanings) -> u8 {
    let bound = &raw.bindings[binding as usize];
    let kind = raw.declarations.get(bound.declaration as usize).map(|declared| definitions[declared.definition as usize].kind);
    let space = meanings == SPACE;
    match kind {
        Some(SymbolKind::Namespace) => 7 * u8::from(!space),
        Some(SymbolKind::Class) => 1,
        Some(SymbolKind::Function) => 2,
        Some(SymbolKind::Enum) => 3,
        Some(SymbolKind::Interface) => 4,
        Some(_) => 5,
        None => 6,
    }
}
