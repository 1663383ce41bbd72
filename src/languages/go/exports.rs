//! What packages declare: a table of names and of methods (`Type.Method`) for each view on a package.
//!
//! Must not follow names. Invariant: a table follows from the surfaces of its own files alone, and holds every variant of a name that
//! build constraints tell apart.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::smallvec;

use super::modules::{Package, Part};
use super::universe::is_exported;
use crate::languages::{Export, ExportTable, Lookup, ModuleKey};
use crate::model::{Reason, Resolution, Target};

/// Makes the table of one view on a package.
pub(super) fn table(key: &ModuleKey, lookup: &dyn Lookup) -> ExportTable {
    let mut names: BTreeMap<Arc<str>, Export> = BTreeMap::new();
    let Some((package, part)) = Package::of_key(key) else { return ExportTable::default() };
    if part == Part::Files {
        let files = package.files(false, lookup).into_iter();
        let names = files.map(|file| (Arc::from(file.as_str()), export(Target { file, definition: None }))).collect();
        return ExportTable { names, star: None, open: false };
    }
    for file in package.files(part == Part::Test, lookup) {
        let Some(surface) = lookup.surface(&file) else { continue };
        for declaration in &surface.outline.declarations {
            let qualified = &declaration.key.qualified;
            let visible = part != Part::Public || qualified.rsplit('.').next().is_some_and(is_exported);
            // Functions named `init` cannot be referred to.
            if !visible || qualified.as_ref() == "init" {
                continue;
            }
            let target = Target { file: file.clone(), definition: Some(declaration.key.clone()) };
            names
                .entry(Arc::clone(qualified))
                .and_modify(|export| {
                    export.targets.push(target.clone());
                    export.resolution = Resolution::Candidate;
                    export.reason = Some(Reason::ConditionalBinding);
                })
                .or_insert_with(|| export(target));
        }
    }
    for export in names.values_mut() {
        export.targets.sort();
    }
    ExportTable { names, star: None, open: false }
}

fn export(target: Target) -> Export {
    Export {
        targets: smallvec![target],
        aliases: Vec::new(),
        resolution: Resolution::ResolvedStatic,
        rule: "go_package",
        reason: None,
    }
}
