//! What one walk over a Python tree collects before names are bound: scopes, arms, bindings, uses and expressions, by number.
//!
//! Must not know other files. Invariant: numbers point into the tables of the same [`Raw`]; [`NONE`] stands for nothing.

use crate::model::{Definition, EdgeKind};

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// A map of keys that come from the file itself; its order never reaches a value.
pub(super) type QuickMap<K, V> = rustc_hash::FxHashMap<K, V>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScopeKind {
    Module,
    Class,
    /// Functions, lambdas and type parameters.
    Function,
    Comprehension,
}

#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub kind: ScopeKind,
    pub parent: u32,
    /// The arm in which the scope's statements run when nothing is conditional.
    pub arm: u32,
    /// Number of the class whose body it is, or whose method it is.
    pub class: u32,
    /// Name of the parameter that receives the instance, or the class.
    pub instance: u32,
    /// Whether other files may see what the scope binds: the module and class bodies not inside functions.
    pub outer: bool,
    /// Names declared `global` (true) or `nonlocal` (false).
    pub redirected: Vec<(u32, bool)>,
}

/// A block that may or may not run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arm {
    pub parent: u32,
    pub depth: u32,
    /// The statement whose alternatives exclude each other; [`NONE`] when this arm excludes none.
    pub statement: u32,
    /// The statement of which this arm is one way to go, whether or not the ways exclude each other; [`NONE`] when there is but one.
    pub choice: u32,
    pub repeats: bool,
    /// Control never leaves it at its end.
    pub terminates: bool,
    /// All its alternatives terminate, so that after the statement it has surely run.
    pub certain: bool,
    /// Runs for type checkers only.
    pub type_checking: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawRole {
    Function,
    Class,
    Variable,
    Parameter,
    /// Stands for a type; its annotation is the bound.
    TypeParameter,
    Instance(u32),
    Type(u32),
    Import(u32),
    Star(u32),
    Deleted,
    /// Not a binding but knowledge about the type (`isinstance`).
    Narrowed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RawBinding {
    pub name: u32,
    pub scope: u32,
    pub role: RawRole,
    pub tick: u32,
    pub arm: u32,
    /// Bound from another scope through `global` or `nonlocal`.
    pub foreign: bool,
    pub declaration: u32,
    pub annotation: u32,
    pub value: u32,
    /// The earlier binding of the same name in the same scope.
    pub previous: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RawUse {
    pub name: u32,
    pub scope: u32,
    pub tick: u32,
    pub arm: u32,
    pub annotation: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawExpression {
    Name(u32),
    Attribute(u32, u32),
    Call(u32),
    /// A call and what it is given.
    Invocation(u32, u32),
    Subscript(u32, u32),
    Either(u32, u32),
    List(u32, u32),
    /// Something that gives this when iterated.
    Sequence(u32),
    Mapping(u32, u32),
    Element(u32),
    /// One of several that a value is taken apart into, from 0.
    Part(u32, u32),
    /// What a test runner gives for a parameter of this name.
    Injected {
        name: u32,
        /// The class in which it is asked for.
        class: u32,
        /// Whether what asks bears the name itself.
        outer: bool,
    },
    /// A decorator that gives what it decorates another name.
    Named(u32, u32),
    Entered(u32),
    Await(u32),
    Instance(u32),
    Super(u32),
    Literal,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum RawShape {
    Class(u32),
    Function(u32),
    Value,
}

#[derive(Clone, Debug)]
pub(super) struct RawDeclaration {
    /// Index of the definition of the file.
    pub definition: u32,
    pub shape: RawShape,
    pub outer: bool,
    pub arm: u32,
    /// Only overloads so far: the next function of the name continues it.
    pub overloads: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RawImport {
    pub module: u32,
    pub name: u32,
    pub root_only: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum RawSubject {
    Name(u32),
    Member(u32, u32),
    Module(u32, u32),
    Imported(u32),
    /// The parameter of a test: what the runner gives for its name (an expression).
    Injected(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RawReference {
    pub start: u32,
    pub kind: EdgeKind,
    pub qualifier: bool,
    pub source: u32,
    pub subject: RawSubject,
}

#[derive(Clone, Debug, Default)]
pub(super) struct RawClass {
    pub declaration: u32,
    pub scope: u32,
    pub bases: Vec<u32>,
    /// The bindings of its type parameters, in order.
    pub parameters: Vec<u32>,
    /// (name, annotation, value)
    pub attributes: Vec<(u32, u32, u32)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct RawFunction {
    pub returns: Vec<u32>,
    pub returned: Vec<u32>,
    /// What a generator yields.
    pub yielded: Vec<u32>,
    /// The declared types of its parameters, in order.
    pub parameters: Vec<u32>,
    /// What decorates it asks a test runner to call it.
    pub fixture: bool,
    pub generator: bool,
    pub property: bool,
    pub unbound: bool,
    pub class_method: bool,
    pub context_manager: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum RawPublic {
    Add(u32),
    Remove(u32),
    Extend(u32),
    Unknown,
}

/// All that the walk found.
pub(super) struct Raw<'s> {
    pub names: Vec<&'s str>,
    pub scopes: Vec<Scope>,
    pub arms: Vec<Arm>,
    pub bindings: Vec<RawBinding>,
    /// (scope, name) → the latest binding.
    pub groups: QuickMap<u64, u32>,
    pub uses: Vec<RawUse>,
    pub expressions: Vec<RawExpression>,
    pub definitions: Vec<Definition>,
    pub declarations: Vec<RawDeclaration>,
    pub imports: Vec<RawImport>,
    pub references: Vec<RawReference>,
    pub classes: Vec<RawClass>,
    pub functions: Vec<RawFunction>,
    pub public: Option<Vec<RawPublic>>,
    pub writes: Vec<(u32, u32)>,
}

/// The key of [`Raw::groups`].
pub(super) fn group_key(scope: u32, name: u32) -> u64 {
    u64::from(scope) << 32 | u64::from(name)
}

/// Returns the arms directly below the place where the ways to two arms part, `NONE` for one that is that place itself; `None` when they share
/// no arm at all.
pub(super) fn fork(arms: &[Arm], left: u32, right: u32) -> Option<(u32, u32)> {
    let (mut left, mut right) = (left, right);
    let (mut below_left, mut below_right) = (NONE, NONE);
    while left != right {
        if left == NONE || right == NONE {
            return None;
        }
        if arms[left as usize].depth >= arms[right as usize].depth {
            below_left = left;
            left = arms[left as usize].parent;
        } else {
            below_right = right;
            right = arms[right as usize].parent;
        }
    }
    Some((below_left, below_right))
}
