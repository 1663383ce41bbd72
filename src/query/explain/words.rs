//! What reasons and rules mean, in words: the one table from which every explanation is made.
//!
//! Must not know any reference. Invariant: each reason and each rule that an edge can have stands here; `{name}` and `{receiver}` in a text
//! are the only gaps.

use crate::model::Reason;

/// What a reason says of a reference, by the form of the reference. Each is the end of a sentence.
pub struct ReasonWords {
    /// No edge, and the name stands alone.
    pub bare: &'static str,
    /// No edge, and the name is a member of something.
    pub member: &'static str,
    /// No edge, and the name stands in an import.
    pub import: &'static str,
    /// Candidates are there, and this is why none of them is certain.
    pub unsure: &'static str,
}

const fn words(bare: &'static str, member: &'static str, import: &'static str, unsure: &'static str) -> ReasonWords {
    ReasonWords { bare, member, import, unsure }
}

const fn always(all: &'static str) -> ReasonWords {
    ReasonWords { bare: all, member: all, import: all, unsure: all }
}

/// Returns the words of a reason.
pub fn of_reason(reason: Reason) -> ReasonWords {
    match reason {
        Reason::ExternalImport => words(
            "it is a name of the language itself or comes from outside the indexed files",
            "{receiver} comes from outside the indexed files, or is of a type from there",
            "it leads outside the indexed files",
            "but part of what it may mean lies outside the indexed files",
        ),
        Reason::UnresolvedImport => words(
            "it is imported from a module of this repository that no indexed file is",
            "{receiver} is imported from a module of this repository that no indexed file is",
            "by its path the module belongs to this repository, but no indexed file is it",
            "but an import on the way to it leads nowhere",
        ),
        Reason::UnresolvedExport => words(
            "the module that it is imported from is indexed, but neither defines `{name}` nor passes it on",
            "the module or package {receiver} is indexed, but neither defines `{name}` nor passes it on",
            "the module is indexed, but neither defines `{name}` nor passes it on",
            "but one of the modules that it may come from does not give it away",
        ),
        Reason::UnresolvedName => words(
            "no definition, no import and no name of the language binds it here",
            "nothing binds it here",
            "nothing binds it here",
            "but on some way to it nothing binds it",
        ),
        Reason::UnresolvedMember => words(
            "what it is taken from is known, and no definition in it is called `{name}`",
            "what {receiver} stands for is known, and no definition in it is called `{name}` (an attribute that is only set is none)",
            "the module is known, and no definition in it is called `{name}`",
            "but not everything that {receiver} may be has it",
        ),
        Reason::AmbiguousBinding => words(
            "several definitions have an equal right to the name",
            "several definitions have an equal right to the name",
            "several definitions have an equal right to the name",
            "and they have an equal right to the name",
        ),
        Reason::AmbiguousModule => words(
            "several files have an equal right to be the module that it comes from",
            "several files have an equal right to be the module {receiver}",
            "several files have an equal right to be the module",
            "and several files have an equal right to be the module",
        ),
        Reason::AmbiguousMember => words(
            "more members of this name may be meant than say anything",
            "more members called `{name}` may be meant than say anything",
            "more definitions of this name may be meant than say anything",
            "and which of them it is depends on what {receiver} is as the program runs",
        ),
        Reason::DynamicReceiver => words(
            "what it is taken from cannot be told from the source",
            "what {receiver} is cannot be told from the source",
            "what it is taken from cannot be told from the source",
            "which is evidence and no proof",
        ),
        Reason::WildcardImport => words(
            "a `*` import of a module that is not wholly known may bring it",
            "a `*` import of a module that is not wholly known may bring it",
            "a `*` import of a module that is not wholly known may bring it",
            "but a `*` import may bring another of this name",
        ),
        Reason::ConditionalBinding => words(
            "the program binds it in several ways and takes one as it runs",
            "the program binds it in several ways and takes one as it runs",
            "the program binds it in several ways and takes one as it runs",
            "and which binding holds is decided as the program is built or runs",
        ),
        Reason::AttributeRebinding => words(
            "something in the repository assigns it anew, so that it may be another by then",
            "something in the repository assigns it anew, so that it may be another by then",
            "something in the repository assigns it anew, so that it may be another by then",
            "but something in the repository assigns it anew, so that it may be another by then",
        ),
        Reason::CyclicBinding => always("its imports lead round in a circle"),
        Reason::LocalBinding => words(
            "it leads to a value that is no definition of the index: a local name, a parameter or a property",
            "the member is a plain property or value, which is no definition of the index",
            "it leads to a value that is no definition of the index",
            "but it may also be a value that is no definition of the index",
        ),
        Reason::PartialParse => words(
            "a file involved has syntax errors, and what is read past them is no proof",
            "a file involved has syntax errors, and what is read past them is no proof",
            "a file involved has syntax errors, and what is read past them is no proof",
            "but a file involved has syntax errors, and what is read past them is no proof",
        ),
        Reason::ParseTimeout => always("the parser took too long over the file, so that what it holds is not known"),
        Reason::ParserCrashed => always("the parser crashed on the file, so that what it holds is not known"),
        Reason::ParserMemory => always("the parser took too much memory for the file, so that what it holds is not known"),
    }
}

/// The rules that draw edges, each with how it finds a target. A text goes on after "may be X: " or "is bound to X: ".
pub const RULES: &[(&str, &str)] = &[
    ("ambiguous_binding", "each of them has an equal right to the name"),
    ("annotation_receiver", "the declared type of {receiver} has it"),
    ("attribute_rebinding", "the name is bound to it first"),
    ("class_attribute", "the class {receiver} has it"),
    ("conditional_binding", "each is bound to the name on some condition"),
    ("constructor_receiver", "the class of what {receiver} is set to has it"),
    ("esm_import", "an import or `require` of the file brings it"),
    ("explicit_import", "an import of the file brings it"),
    ("global_script", "a script, which declares its names for all files, declares it"),
    ("go_default_build", "of the variants that build constraints tell apart, it is the one of a build without tags"),
    ("go_embedding", "a type embedded in that of {receiver} has the method"),
    ("go_import", "the imported package declares it"),
    ("go_interface", "the type of {receiver} is an interface that has the method"),
    ("go_interface_impl", "its type has all methods of the interface"),
    ("go_package", "the package of the file declares it"),
    ("go_receiver", "the declared type of {receiver} has the method"),
    ("lexical_binding", "the file itself defines it in a scope around the use"),
    ("module_export", "the module {receiver} defines it or passes it on"),
    ("namespace_member", "the namespace, enum or merged declaration {receiver} has it"),
    ("object_member", "{receiver} is an object literal that has it"),
    ("partial_parse", "as far as the file can be read, it is this one"),
    ("pytest_fixture", "it is the nearest fixture of this name that pytest finds"),
    ("receiver_hint", "what {receiver} may be has it, as far as assignments and declared types lead"),
    ("result_receiver", "{receiver} is, or is set to, the result of a call, whose type has it"),
    ("rust_associated", "the type {receiver} has it"),
    ("rust_glob_import", "a `*` import brings it, and nothing that goes before"),
    ("rust_macro", "the macro is in scope there by the order of the text, or is exported by its crate"),
    ("rust_macro_tokens", "a macro or an attribute is given the name, which means it where it stands"),
    ("rust_module", "the module is that file"),
    ("rust_path", "the path leads to it"),
    ("rust_receiver", "the declared type of {receiver} has the method"),
    ("rust_trait", "a trait that {receiver} is bound by declares it"),
    ("rust_trait_impl", "an implementation of the trait has it, or the trait itself gives it"),
    ("self_member", "the class around the use, or a base of it, has it"),
    ("static_member", "the class or module object {receiver} itself has it"),
    ("super_member", "a base of the class around the use has it"),
    ("syntax_contains", "it stands inside"),
    ("wildcard_import", "a `*` import brings it"),
];

/// Returns how a rule finds a target, in words; `None` for a rule that the table does not have.
pub fn of_rule(rule: &str) -> Option<&'static str> {
    RULES.iter().find(|(known, _)| *known == rule).map(|(_, words)| *words)
}

/// Returns how an import itself leads to its target, where the rule is one of imports.
pub fn of_import_rule(rule: &str) -> Option<&'static str> {
    matches!(rule, "explicit_import" | "esm_import" | "go_import" | "rust_path" | "rust_module").then_some("the import names it")
}

/// Returns why a target that a rule found is not certain; `None` where the words of the rule say so.
pub fn of_doubt(rule: &str, reason: Reason) -> Option<&'static str> {
    match (rule, reason) {
        (
            "conditional_binding" | "ambiguous_binding",
            Reason::ConditionalBinding | Reason::AmbiguousBinding | Reason::AmbiguousModule,
        ) => None,
        ("partial_parse", Reason::PartialParse) => Some("but it has syntax errors, and what is read past them is no proof"),
        ("self_member", Reason::DynamicReceiver) => Some("but a subclass may have its own"),
        ("pytest_fixture", Reason::DynamicReceiver) => Some("but pytest decides as the tests are run"),
        ("super_member", Reason::DynamicReceiver) => Some("but a class that joins several bases may put another between"),
        _ => Some(of_reason(reason).unsure),
    }
}

/// Fills the gaps of a text.
pub fn fill(text: &str, name: &str, receiver: &str) -> String {
    text.replace("{name}", name).replace("{receiver}", receiver)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn words_end_a_sentence_and_have_known_gaps() {
        let check = |text: &str| {
            assert!(!text.is_empty() && !text.ends_with(['.', ' ']) && !text.starts_with(char::is_uppercase), "{text}");
            let filled = fill(text, "n", "r");
            assert!(!filled.contains(['{', '}']), "{text}");
        };
        for reason in Reason::ALL {
            let ReasonWords { bare, member, import, unsure } = of_reason(*reason);
            [bare, member, import, unsure].into_iter().for_each(check);
            assert!(!bare.contains("{receiver}") && !import.contains("{receiver}"), "{}: there is none", reason.as_str());
        }
        RULES.iter().for_each(|(_, words)| check(words));
        assert!(RULES.is_sorted(), "sorted, so that each stands once");
    }

    /// Literals of the sources that are rules: what follows `rule` in an assignment or field, what a match on the kind of receiver gives,
    /// and the last argument of `followed`. Whatever else looks like one is no concern of this test, as scenarios show the rest.
    #[test]
    fn each_rule_in_the_sources_has_words() {
        let mut rules = BTreeSet::new();
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/languages");
        let mut folders = vec![root];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("the sources are readable") {
                let path = entry.expect("the sources are readable").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|suffix| suffix == "rs") && !path.ends_with("tests.rs") {
                    let text = std::fs::read_to_string(&path).expect("sources are UTF-8");
                    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
                    rules.extend(text.lines().filter_map(literal_rule).map(str::to_owned));
                }
            }
        }
        assert!(rules.len() > 20, "the test looks where the rules are: {rules:?}");
        let without: Vec<_> = rules.iter().filter(|rule| of_rule(rule).is_none()).collect();
        assert!(without.is_empty(), "rules without words: {without:?}");
    }

    /// Returns the rule that a line of the sources names as a literal.
    fn literal_rule(line: &str) -> Option<&str> {
        let is_rule = |text: &&str| text.contains('_') && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase());
        let after = |mark: &str| line.split(mark).nth(1).and_then(|rest| rest.split('"').next()).filter(is_rule);
        let marks = ["rule: \"", "rule = \"", "rule: Some(\"", "rule.or(Some(\"", "return \"", "followed(&followed, \""];
        let in_call = || line.contains("followed(").then(|| after(", \"")).flatten();
        let in_tuple = || line.contains("rule, reason").then(|| after("(\"")).flatten();
        // The arms of a match that gives rules, and those of one whose last value is a rule.
        let arm = || line.contains("=> ").then(|| after("=> \"").filter(|_| line.trim_end().ends_with("\","))).flatten();
        marks.into_iter().find_map(after).or_else(in_call).or_else(in_tuple).or_else(|| arm().filter(|_| !line.contains("Kind")))
    }
}
