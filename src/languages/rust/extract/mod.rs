//! One walk over a Rust tree: definitions, the surface that other files see, and the references of the bodies.
//!
//! Must not know other files: a name that no local binding has is left to be searched among items. Invariant: no recursion deeper than
//! [`MAX_DEPTH`]; what is nested deeper is passed over, and chains of calls, fields and operators do not count.

mod definitions;
mod expressions;
mod items;
mod macros;
mod members;
mod paths;
mod patterns;
mod scopes;
mod types;

use std::num::NonZeroU16;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;
use tree_sitter::{Language, Node, TreeCursor};

use crate::languages::grammar::node_kinds;
use crate::model::facts::{
    Body, Expression, Handle, ItemMeaning, ItemScope, NameId, Outline, Primitive, Reference, Subject, Surface,
};
use crate::model::{Definition, EdgeKind, Place};

use crate::languages::outline::{OutlineBuilder, Side};
pub(super) use macros::rewrite;
use scopes::Scopes;

/// How deep blocks, types and expressions may nest.
const MAX_DEPTH: u32 = 150;

node_kinds! {
    /// The kinds of nodes that mean something here.
    Kind {
        LineComment = "line_comment",
        BlockComment = "block_comment",
        Attribute = "attribute_item",
        InnerAttribute = "inner_attribute_item",
        Visibility = "visibility_modifier",
        Module = "mod_item",
        ForeignModule = "foreign_mod_item",
        DeclarationList = "declaration_list",
        Struct = "struct_item",
        Union = "union_item",
        Enum = "enum_item",
        EnumVariant = "enum_variant",
        FieldDeclarations = "field_declaration_list",
        FieldDeclaration = "field_declaration",
        OrderedFields = "ordered_field_declaration_list",
        TypeItem = "type_item",
        AssociatedType = "associated_type",
        Function = "function_item",
        FunctionSignature = "function_signature_item",
        Implementation = "impl_item",
        Trait = "trait_item",
        Const = "const_item",
        Static = "static_item",
        Use = "use_declaration",
        UseList = "use_list",
        ScopedUseList = "scoped_use_list",
        UseAs = "use_as_clause",
        UseWildcard = "use_wildcard",
        ExternCrate = "extern_crate_declaration",
        MacroDefinition = "macro_definition",
        MacroInvocation = "macro_invocation",
        TokenTree = "token_tree",
        TypeParameters = "type_parameters",
        TypeParameter = "type_parameter",
        ConstParameter = "const_parameter",
        TraitBounds = "trait_bounds",
        WhereClause = "where_clause",
        WherePredicate = "where_predicate",
        Parameter = "parameter",
        SelfParameter = "self_parameter",
        TypeIdentifier = "type_identifier",
        ScopedTypeIdentifier = "scoped_type_identifier",
        GenericType = "generic_type",
        GenericTurbofish = "generic_type_with_turbofish",
        TypeArguments = "type_arguments",
        TypeBinding = "type_binding",
        ReferenceType = "reference_type",
        PointerType = "pointer_type",
        ArrayType = "array_type",
        TupleType = "tuple_type",
        UnitType = "unit_type",
        FunctionType = "function_type",
        NeverType = "never_type",
        DynamicType = "dynamic_type",
        AbstractType = "abstract_type",
        BoundedType = "bounded_type",
        PrimitiveType = "primitive_type",
        BracketedType = "bracketed_type",
        QualifiedType = "qualified_type",
        RemovedBound = "removed_trait_bound",
        HigherRanked = "higher_ranked_trait_bound",
        Lifetime = "lifetime",
        Block = "block",
        UnsafeBlock = "unsafe_block",
        AsyncBlock = "async_block",
        ConstBlock = "const_block",
        TryBlock = "try_block",
        GenBlock = "gen_block",
        ExpressionStatement = "expression_statement",
        EmptyStatement = "empty_statement",
        Let = "let_declaration",
        LetCondition = "let_condition",
        LetChain = "let_chain",
        If = "if_expression",
        ElseClause = "else_clause",
        Match = "match_expression",
        MatchArm = "match_arm",
        MatchPattern = "match_pattern",
        While = "while_expression",
        Loop = "loop_expression",
        For = "for_expression",
        Label = "label",
        Identifier = "identifier",
        SelfValue = "self",
        Super = "super",
        Crate = "crate",
        Metavariable = "metavariable",
        ScopedIdentifier = "scoped_identifier",
        GenericFunction = "generic_function",
        Call = "call_expression",
        Arguments = "arguments",
        FieldExpression = "field_expression",
        FieldIdentifier = "field_identifier",
        IntegerLiteral = "integer_literal",
        FloatLiteral = "float_literal",
        BooleanLiteral = "boolean_literal",
        CharLiteral = "char_literal",
        StringLiteral = "string_literal",
        RawStringLiteral = "raw_string_literal",
        NegativeLiteral = "negative_literal",
        Index = "index_expression",
        Try = "try_expression",
        Await = "await_expression",
        Binary = "binary_expression",
        Assignment = "assignment_expression",
        CompoundAssignment = "compound_assignment_expr",
        Unary = "unary_expression",
        Reference = "reference_expression",
        Cast = "type_cast_expression",
        Range = "range_expression",
        Tuple = "tuple_expression",
        Array = "array_expression",
        Unit = "unit_expression",
        Parenthesized = "parenthesized_expression",
        StructExpression = "struct_expression",
        FieldInitializer = "field_initializer",
        ShorthandInitializer = "shorthand_field_initializer",
        BaseInitializer = "base_field_initializer",
        Closure = "closure_expression",
        ClosureParameters = "closure_parameters",
        Return = "return_expression",
        MutPattern = "mut_pattern",
        RefPattern = "ref_pattern",
        ReferencePattern = "reference_pattern",
        CapturedPattern = "captured_pattern",
        TuplePattern = "tuple_pattern",
        TupleStructPattern = "tuple_struct_pattern",
        StructPattern = "struct_pattern",
        FieldPattern = "field_pattern",
        ShorthandField = "shorthand_field_identifier",
        SlicePattern = "slice_pattern",
        OrPattern = "or_pattern",
        RangePattern = "range_pattern",
        RemainingFields = "remaining_field_pattern",
        GenericPattern = "generic_pattern",
    }
}

macro_rules! fields {
    ($($name:ident = $text:literal,)+) => {
        /// The fields of nodes that mean something here, by the grammar's numbers.
        struct Fields { $($name: Option<NonZeroU16>,)+ }

        impl Fields {
            fn of(language: &Language) -> Self {
                Self { $($name: language.field_id_for_name($text),)+ }
            }
        }
    };
}

fields! {
    alias = "alias",
    alternative = "alternative",
    argument = "argument",
    arguments = "arguments",
    body = "body",
    bounds = "bounds",
    condition = "condition",
    consequence = "consequence",
    default_type = "default_type",
    field = "field",
    function = "function",
    left = "left",
    length = "length",
    list = "list",
    macro_ = "macro",
    name = "name",
    operator = "operator",
    parameters = "parameters",
    path = "path",
    pattern = "pattern",
    return_type = "return_type",
    right = "right",
    trait_ = "trait",
    type_ = "type",
    type_arguments = "type_arguments",
    type_parameters = "type_parameters",
    value = "value",
}

struct Grammar {
    language: Language,
    kinds: Vec<Kind>,
    fields: Fields,
}

fn grammar() -> &'static Grammar {
    static GRAMMAR: OnceLock<Grammar> = OnceLock::new();
    GRAMMAR.get_or_init(|| {
        let language: Language = tree_sitter_rust::LANGUAGE.into();
        let (kinds, fields) = (Kind::table(&language), Fields::of(&language));
        Grammar { language, kinds, fields }
    })
}

/// Returns the grammar of the language, made once a process.
pub(super) fn language() -> &'static Language {
    &grammar().language
}

/// What one walk found.
pub(super) struct Extracted {
    pub definitions: Vec<Definition>,
    pub surface: Surface,
    pub body: Body,
}

/// Where the walk is among definitions and scopes.
#[derive(Clone)]
struct Position {
    /// Whether what is declared here is seen by other files.
    side: Side,
    scope: Handle,
    /// What goes before the names of definitions.
    prefix: Arc<str>,
    /// Index plus one of the definition that new ones stand in.
    parent: u32,
}

struct Walk<'s> {
    text: &'s str,
    line_starts: Vec<u32>,
    kinds: &'static [Kind],
    fields: &'static Fields,
    surface: OutlineBuilder<'s>,
    body: OutlineBuilder<'s>,
    references: Vec<Reference>,
    local_uses: u32,
    definitions: Vec<Definition>,
    /// Members, with the qualified name of their type.
    owners: Vec<(u32, Arc<str>)>,
    /// References in the head of an implementation, which belong to the type of that name.
    heads: Vec<(std::ops::Range<usize>, Arc<str>)>,
    ordinals: FxHashMap<Arc<str>, u32>,
    scopes: Scopes<'s>,
    position: Position,
    /// Index plus one of the definition that references belong to.
    source: u32,
    depth: u32,
    pending: definitions::Pending<'s>,
    literal: Option<Handle>,
    primitives: [Option<Handle>; Primitive::Owned as usize + 1],
}

/// Extracts the facts of a tree of `text`.
pub(super) fn extract(text: &str, root: Node<'_>, line_starts: Vec<u32>) -> Extracted {
    let grammar = grammar();
    let mut surface = OutlineBuilder::default();
    let scope = surface.scope(Side::Surface, ItemScope::default());
    let mut walk = Walk {
        text,
        line_starts,
        kinds: &grammar.kinds,
        fields: &grammar.fields,
        surface,
        body: OutlineBuilder::default(),
        references: Vec::with_capacity(text.len() / 32),
        local_uses: 0,
        definitions: Vec::new(),
        owners: Vec::new(),
        heads: Vec::new(),
        ordinals: FxHashMap::default(),
        scopes: Scopes::default(),
        position: Position { side: Side::Surface, scope, prefix: "".into(), parent: 0 },
        source: 0,
        depth: 0,
        pending: definitions::Pending::default(),
        literal: None,
        primitives: Default::default(),
    };
    let mut cursor = root.walk();
    walk.items(&mut cursor);
    walk.finish()
}

impl<'s> Walk<'s> {
    fn finish(mut self) -> Extracted {
        let order = self.order_definitions();
        for reference in &mut self.references {
            if let Some(source) = reference.source() {
                reference.source = order[source as usize] as u32 + 1;
            }
        }
        self.references.sort_by_key(|reference| reference.start);
        self.references.shrink_to_fit();
        let (mut outer, surface_places) = self.surface.finish();
        let (mut inner, body_places) = self.body.finish();
        follow(&mut outer, &surface_places, &body_places);
        follow(&mut inner, &surface_places, &body_places);
        let surface = Surface { outline: outer, ..Surface::default() };
        let body =
            Body { outline: inner, line_starts: self.line_starts, references: self.references, local_uses: self.local_uses };
        Extracted { definitions: self.definitions, surface, body }
    }

    fn kind(&self, node: Node<'_>) -> Kind {
        self.kinds.get(usize::from(node.kind_id())).copied().unwrap_or(Kind::Other)
    }

    fn text_of(&self, node: Node<'_>) -> &'s str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    /// Returns the name that a token writes: without the mark of a raw identifier.
    fn name_of(&self, node: Node<'_>) -> &'s str {
        let text = self.text_of(node);
        text.strip_prefix("r#").unwrap_or(text)
    }

    fn place(&self, node: Node<'_>) -> Place {
        let position = node.start_position();
        Place { line: position.row as u32 + 1, column: position.column as u32, start: node.start_byte() as u32 }
    }

    fn outline(&mut self, side: Side) -> &mut OutlineBuilder<'s> {
        match side {
            Side::Surface => &mut self.surface,
            Side::Body => &mut self.body,
        }
    }

    fn name(&mut self, side: Side, text: &'s str) -> NameId {
        self.outline(side).name(text)
    }

    fn push(&mut self, side: Side, expression: Expression) -> Handle {
        self.outline(side).expression(side, expression)
    }

    /// Returns a value of one of the language's own types.
    fn primitive(&mut self, primitive: Primitive) -> Handle {
        if let Some(known) = self.primitives[primitive as usize] {
            return known;
        }
        let made = self.push(Side::Body, Expression::Primitive(primitive));
        self.primitives[primitive as usize] = Some(made);
        made
    }

    /// Returns a value of which nothing is known but that it is the language's own.
    fn literal(&mut self) -> Handle {
        if let Some(known) = self.literal {
            return known;
        }
        let literal = self.push(Side::Body, Expression::Literal);
        self.literal = Some(literal);
        literal
    }

    /// Makes a chain of handles, what is not known being kept in its place.
    fn list(&mut self, side: Side, entries: &[Option<Handle>]) -> Option<Handle> {
        let mut rest = None;
        for entry in entries.iter().rev() {
            let entry = match entry {
                Some(entry) => *entry,
                None => self.push(side, Expression::Unknown),
            };
            rest = Some(self.push(side, Expression::List(entry, rest)));
        }
        rest
    }

    fn refer(&mut self, start: usize, kind: EdgeKind, qualifier: bool, subject: Subject) {
        self.references.push(Reference { start: start as u32, kind, qualifier, source: self.source, subject });
    }

    /// Returns the child of the cursor's node under a field.
    fn field<'t>(&self, cursor: &TreeCursor<'t>, field: Option<NonZeroU16>) -> Option<Node<'t>> {
        cursor.node().child_by_field_id(field?.get())
    }

    /// Runs `inner` one level deeper; too deep it does nothing.
    fn deeper<R>(&mut self, inner: impl FnOnce(&mut Self) -> Option<R>) -> Option<R> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }
}

/// Brings what scopes mention into order, and the handles of declarations in an outline to the places these have in the end.
fn follow(outline: &mut Outline, surface: &[usize], body: &[usize]) {
    let moved = |handle: &mut Handle| {
        let places = if handle.in_body() { body } else { surface };
        if let Some(place) = places.get(handle.index()) {
            *handle = Side::of(*handle).handle(*place);
        }
    };
    for scope in &mut outline.scopes {
        scope.mentioned.sort_unstable();
        scope.mentioned.dedup();
        for item in &mut scope.items {
            match &mut item.meaning {
                ItemMeaning::Declaration(declaration) | ItemMeaning::Module { declaration, .. } => moved(declaration),
                ItemMeaning::Import(_) | ItemMeaning::Star(_) | ItemMeaning::File { .. } => {}
            }
        }
    }
    for block in &mut outline.blocks {
        block.members.iter_mut().for_each(moved);
        if let Some((declared, _)) = &mut block.declares {
            moved(declared);
        }
    }
}
