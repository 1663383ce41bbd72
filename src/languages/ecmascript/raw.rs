//! What one walk over a tree collects before names are bound: scopes, bindings, uses and expressions, by number.
//!
//! Must not know other files. Invariant: numbers point into the tables of the same [`Raw`]; [`NONE`] stands for nothing.

use crate::model::{Definition, EdgeKind};

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// What a name may mean: a name can have one meaning of each sort at the same time.
pub(super) type Meanings = u8;
pub(super) const VALUE: Meanings = 1;
pub(super) const TYPE: Meanings = 2;
/// Something whose members are named with a dot in types: a namespace.
pub(super) const SPACE: Meanings = 4;

/// A map of keys that come from the file itself; its order never reaches a value.
pub(super) type QuickMap<K, V> = rustc_hash::FxHashMap<K, V>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScopeKind {
    /// The file, a namespace, or the body of a function: where `var` stays.
    Body,
    /// A block, a class, or type parameters.
    Block,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    pub kind: ScopeKind,
    pub parent: u32,
    /// Whether other files may see what the scope binds: no function stands around it.
    pub outer: bool,
    /// The shape of the namespace whose body it is: what its exported names go into.
    pub space: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawRole {
    Function,
    /// A class, interface, enum or namespace.
    Class,
    Variable,
    /// A type alias.
    Alias,
    Parameter,
    TypeParameter,
    Import(u32),
    Star(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RawBinding {
    pub name: u32,
    pub role: RawRole,
    pub meanings: Meanings,
    pub outer: bool,
    /// Something else may be assigned to it.
    pub written: bool,
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
    pub meanings: Meanings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawExpression {
    Name(u32),
    /// A binding that no name leads to: what `require` of a module gives.
    Binding(u32),
    Attribute(u32, u32),
    Call(u32, u32),
    New(u32, u32),
    Subscript(u32, u32),
    Either(u32, u32),
    List(u32, u32),
    Element(u32),
    Part(u32, u32),
    Await(u32),
    Promise(u32),
    /// (callee, which argument)
    Expected(u32, u8),
    /// (function, which parameter)
    Parameter(u32, u8),
    /// A value of the declared type.
    Instance(u32),
    TypeOf(u32),
    Property(u32, u32),
    Sequence(u32),
    Object(u32),
    Structure(u32),
    Function(u32),
    This(u32, bool),
    Above(u32, bool),
    Literal,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum RawShape {
    Class(u32),
    Function(u32),
    /// A type alias; its type parameters are those of the class shape of this number.
    Alias(u32),
    Value,
}

#[derive(Clone, Debug)]
pub(super) struct RawDeclaration {
    /// Index of the definition of the file.
    pub definition: u32,
    pub shape: RawShape,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RawImport {
    pub module: u32,
    /// The name taken from the module, `default` and `export=` among them; [`NONE`] for the module itself.
    pub name: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum RawSubject {
    Name(u32),
    Type(u32),
    Member(u32, u32),
    TypeMember(u32, u32),
    Module(u32, u32),
    Imported(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RawReference {
    pub start: u32,
    pub kind: EdgeKind,
    pub qualifier: bool,
    /// Index of the innermost enclosing definition plus one.
    pub source: u32,
    pub subject: RawSubject,
}

/// What instances and the value itself have: a class, interface, enum, namespace, object literal, type literal, or the properties that a
/// function is given.
#[derive(Clone, Debug, Default)]
pub(super) struct RawClass {
    pub outer: bool,
    pub bases: Vec<u32>,
    /// (name, binding)
    pub members: Vec<(u32, u32)>,
    pub statics: Vec<(u32, u32)>,
    /// Bindings.
    pub parameters: Vec<u32>,
    /// Functions.
    pub calls: Vec<u32>,
    pub constructs: Vec<u32>,
    pub elements: Option<u32>,
    pub spreads: Vec<u32>,
    pub open: bool,
}

#[derive(Clone, Debug)]
pub(super) struct RawFunction {
    pub type_parameters: Vec<u32>,
    pub parameters: Vec<u32>,
    pub returns: Vec<u32>,
    pub returned: Vec<u32>,
    pub property: bool,
    pub is_async: bool,
    pub generator: bool,
    pub shape: u32,
}

/// All that the walk found.
pub(super) struct Raw<'s> {
    pub names: Vec<&'s str>,
    pub scopes: Vec<Scope>,
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
    /// (exported name, what it stands for)
    pub exports: Vec<(u32, RawExport)>,
    /// Bindings of the role [`RawRole::Star`].
    pub stars: Vec<u32>,
    /// Uses that something is assigned to, with the value.
    pub assignments: Vec<(u32, u32)>,
    /// (object, name)
    pub writes: Vec<(u32, u32)>,
    /// Whether the file has imports or exports: it is a module and its top is no global scope.
    pub is_module: bool,
    /// Whether the file gives something to `exports` of CommonJS.
    pub is_commonjs: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawExport {
    Use(u32),
    Binding(u32),
}

/// The key of [`Raw::groups`].
pub(super) fn group_key(scope: u32, name: u32) -> u64 {
    u64::from(scope) << 32 | u64::from(name)
}
