//! Many threads at the desk of one scope.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::config::ParserHost;
use crate::engine::Desks;

use super::*;

/// Returns the configuration and the scope of a fixture.
fn binding(fixture: &Fixture, settings: &str) -> (Config, crate::config::Scope) {
    let environment = Environment { current_dir: fixture.root(), ..Environment::default() };
    let text = format!(
        "cache_dir = {:?}\n{settings}\n[scopes.test]\nroot = {:?}\ninclude_untracked = true\n",
        fixture.folder.path().canonicalize().expect("it exists").join("cache"),
        fixture.root().canonicalize().expect("it exists"),
    );
    let config = Config::parse(&text, "sextant.toml", &environment).expect("a valid configuration");
    let scope = config.scope(&Selection { root: None, scope: Some("test".to_owned()) }, &environment).expect("a scope");
    (config, scope)
}

#[test]
fn one_desk_for_all_who_ask_for_the_same_scope_and_configuration() {
    let fixture = Fixture::small();
    let (desks, host) = (Desks::new(2), ParserHost::ThisProcess);
    let desk = |settings: &str| {
        let (config, scope) = binding(&fixture, settings);
        desks.desk(&config, &scope, &host).expect("opened")
    };
    let (plain, limited) = (desk(""), desk("[limits]\nquery_seconds = 7"));
    assert!(Arc::ptr_eq(&plain, &desk("")) && !Arc::ptr_eq(&plain, &limited));
    plain.sync().expect("the first build");
    // The other one was used longest ago.
    desk("[limits]\nquery_seconds = 8");
    assert!(Arc::ptr_eq(&plain, &desk("")) && !Arc::ptr_eq(&limited, &desk("[limits]\nquery_seconds = 7")));
    assert_eq!((desks.drop_gone(), desks.all().len()), (0, 2));
    std::fs::remove_dir_all(fixture.root()).expect("removed");
    assert_eq!((desks.drop_gone(), desks.all().len()), (2, 0));
}

#[test]
fn who_panics_leaves_the_desk_to_others() {
    let fixture = Fixture::small();
    let (config, scope) = binding(&fixture, "");
    let desk = Desks::new(1).desk(&config, &scope, &ParserHost::ThisProcess).expect("opened");
    desk.sync().expect("the first build");
    let asked = || desk.ask(admission(OnStale::Refuse), |_| panic!("a defect of an operation"));
    assert!(catch_unwind(AssertUnwindSafe(asked)).is_err());
    assert_eq!(desk.ask(admission(OnStale::Refuse), |_| 7).expect("answered").value, 7);
    fixture.write("util.py", "def other(): pass\n");
    assert_eq!(desk.sync().expect("synced").extracted_files, 1);
    desk.unload();
    assert_eq!(desk.sync().expect("synced").extracted_files, 0);
}
