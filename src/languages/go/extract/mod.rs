//! One walk over a Go tree: definitions, the surface that other files see, and the references of the bodies.
//!
//! Must not know other files: a name that no scope of the file binds is left free. Invariant: no recursion deeper than [`MAX_DEPTH`];
//! what is nested deeper is passed over, and chains of calls, selectors and operators do not count.

mod declarations;
mod expressions;
mod scopes;
mod statements;
mod types;

use std::num::NonZeroU16;
use std::sync::{Arc, OnceLock};

use tree_sitter::{Language, Node};

use super::conditions;
use crate::languages::grammar::node_kinds;
use crate::model::facts::{Body, Handle, NameId, Outline, Reference, Subject, Surface, Use};
use crate::model::{Definition, EdgeKind, Place};

use crate::languages::outline::{OutlineBuilder, Side, arrange_definitions};
use rustc_hash::FxHashMap;
use scopes::Scopes;

/// How deep blocks, types and expressions may nest.
const MAX_DEPTH: u32 = 150;

node_kinds! {
    /// The kinds of nodes that mean something here.
    Kind {
        Comment = "comment",
        PackageClause = "package_clause",
        PackageIdentifier = "package_identifier",
        Import = "import_declaration",
        ImportSpec = "import_spec",
        ImportSpecList = "import_spec_list",
        Dot = "dot",
        BlankIdentifier = "blank_identifier",
        Function = "function_declaration",
        Method = "method_declaration",
        Const = "const_declaration",
        ConstSpec = "const_spec",
        Var = "var_declaration",
        VarSpec = "var_spec",
        VarSpecList = "var_spec_list",
        Type = "type_declaration",
        TypeSpec = "type_spec",
        TypeAlias = "type_alias",
        TypeParameterList = "type_parameter_list",
        TypeParameter = "type_parameter_declaration",
        TypeConstraint = "type_constraint",
        ParameterList = "parameter_list",
        Parameter = "parameter_declaration",
        VariadicParameter = "variadic_parameter_declaration",
        TypeIdentifier = "type_identifier",
        QualifiedType = "qualified_type",
        GenericType = "generic_type",
        TypeArguments = "type_arguments",
        TypeElem = "type_elem",
        PointerType = "pointer_type",
        StructType = "struct_type",
        InterfaceType = "interface_type",
        ArrayType = "array_type",
        ImplicitArrayType = "implicit_length_array_type",
        SliceType = "slice_type",
        MapType = "map_type",
        ChannelType = "channel_type",
        FunctionType = "function_type",
        NegatedType = "negated_type",
        ParenthesizedType = "parenthesized_type",
        FieldDeclarationList = "field_declaration_list",
        FieldDeclaration = "field_declaration",
        FieldIdentifier = "field_identifier",
        MethodElem = "method_elem",
        Block = "block",
        StatementList = "statement_list",
        ShortVar = "short_var_declaration",
        Assignment = "assignment_statement",
        If = "if_statement",
        For = "for_statement",
        ForClause = "for_clause",
        RangeClause = "range_clause",
        Switch = "expression_switch_statement",
        Case = "expression_case",
        DefaultCase = "default_case",
        TypeSwitch = "type_switch_statement",
        TypeCase = "type_case",
        Select = "select_statement",
        CommunicationCase = "communication_case",
        Receive = "receive_statement",
        Labeled = "labeled_statement",
        LabelName = "label_name",
        ExpressionStatement = "expression_statement",
        ExpressionList = "expression_list",
        Identifier = "identifier",
        Selector = "selector_expression",
        Call = "call_expression",
        ArgumentList = "argument_list",
        VariadicArgument = "variadic_argument",
        Index = "index_expression",
        Slice = "slice_expression",
        TypeAssertion = "type_assertion_expression",
        TypeConversion = "type_conversion_expression",
        TypeInstantiation = "type_instantiation_expression",
        CompositeLiteral = "composite_literal",
        LiteralValue = "literal_value",
        LiteralElement = "literal_element",
        KeyedElement = "keyed_element",
        FunctionLiteral = "func_literal",
        Unary = "unary_expression",
        Binary = "binary_expression",
        Parenthesized = "parenthesized_expression",
        InterpretedString = "interpreted_string_literal",
        RawString = "raw_string_literal",
        Int = "int_literal",
        Float = "float_literal",
        Imaginary = "imaginary_literal",
        Rune = "rune_literal",
        Nil = "nil",
        True = "true",
        False = "false",
        Iota = "iota",
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
    arguments = "arguments",
    body = "body",
    element = "element",
    field = "field",
    initializer = "initializer",
    key = "key",
    left = "left",
    length = "length",
    name = "name",
    operand = "operand",
    operator = "operator",
    package = "package",
    parameters = "parameters",
    path = "path",
    receiver = "receiver",
    result = "result",
    right = "right",
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
        let language: Language = tree_sitter_go::LANGUAGE.into();
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

struct Walk<'s> {
    text: &'s str,
    line_starts: Vec<u32>,
    kinds: &'static [Kind],
    fields: &'static Fields,
    surface: OutlineBuilder<'s>,
    body: OutlineBuilder<'s>,
    module: Option<&'s str>,
    /// Bindings of variables and constants of the package, by name.
    scope: Vec<(&'s str, Handle)>,
    references: Vec<Reference>,
    local_uses: u32,
    definitions: Vec<Definition>,
    /// The type that the receiver of a method names, by the method's index.
    receivers: Vec<(u32, &'s str)>,
    ordinals: FxHashMap<Arc<str>, u32>,
    scopes: Scopes<'s>,
    /// Index plus one of the definition that references belong to.
    source: u32,
    depth: u32,
    /// The comments right before the current node: where the first starts, and the line after the last.
    comments: Vec<(usize, usize)>,
    next_line: usize,
}

/// Extracts the facts of a tree of `text`.
pub(super) fn extract(text: &str, root: Node<'_>, line_starts: Vec<u32>) -> Extracted {
    let grammar = grammar();
    let mut walk = Walk {
        text,
        line_starts,
        kinds: &grammar.kinds,
        fields: &grammar.fields,
        surface: OutlineBuilder::default(),
        body: OutlineBuilder::default(),
        module: None,
        scope: Vec::new(),
        references: Vec::with_capacity(text.len() / 24),
        local_uses: 0,
        definitions: Vec::new(),
        receivers: Vec::new(),
        ordinals: FxHashMap::default(),
        scopes: Scopes::default(),
        source: 0,
        depth: 0,
        comments: Vec::new(),
        next_line: 0,
    };
    let condition = conditions::of_source(text);
    let mut cursor = root.walk();
    walk.file(&mut cursor);
    walk.finish(condition)
}

impl<'s> Walk<'s> {
    fn finish(mut self, condition: Option<String>) -> Extracted {
        let order = self.order_definitions();
        let mut surface = Surface::default();
        self.scope.sort_by(|left, right| left.0.cmp(right.0));
        for (name, binding) in std::mem::take(&mut self.scope) {
            let name = self.surface.name(name);
            surface.scope.push((name, Use::One(binding)));
        }
        surface.module = self.module.map(|module| self.surface.name(module));
        surface.condition = condition.map(|condition| self.surface.own_name(condition));
        surface.outline = finished(self.surface);
        for reference in &mut self.references {
            if let Some(source) = reference.source() {
                reference.source = order[source as usize] as u32 + 1;
            }
        }
        self.references.sort_by_key(|reference| reference.start);
        self.references.shrink_to_fit();
        let body = Body {
            outline: finished(self.body),
            line_starts: self.line_starts,
            references: self.references,
            local_uses: self.local_uses,
        };
        Extracted { definitions: self.definitions, surface, body }
    }

    /// Gives methods the type of their receiver as parent, and brings parents before children. Returns the new index of each definition.
    fn order_definitions(&mut self) -> Vec<usize> {
        let types: FxHashMap<&str, u32> = self
            .definitions
            .iter()
            .enumerate()
            .filter(|(_, definition)| definition.parent.is_none() && declarations::is_type(definition.kind))
            .map(|(index, definition)| (definition.name.as_ref(), index as u32))
            .collect();
        let parents: Vec<(u32, u32)> =
            self.receivers.iter().filter_map(|(method, receiver)| Some((*method, *types.get(receiver)?))).collect();
        for (method, parent) in parents {
            self.definitions[method as usize].parent = Some(parent);
        }
        // A method goes to its own place, or right after its type where that comes later.
        let mut order: Vec<usize> = (0..self.definitions.len()).collect();
        order.sort_by_key(|&index| match self.definitions[index].parent.map(|parent| parent as usize) {
            Some(parent) if parent > index => (parent, 1, index),
            _ => (index, 0, index),
        });
        arrange_definitions(&mut self.definitions, &order)
    }

    fn kind(&self, node: Node<'_>) -> Kind {
        self.kinds.get(usize::from(node.kind_id())).copied().unwrap_or(Kind::Other)
    }

    fn text_of(&self, node: Node<'_>) -> &'s str {
        self.text.get(node.byte_range()).unwrap_or("")
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

    fn refer(&mut self, start: usize, kind: EdgeKind, qualifier: bool, subject: Subject) {
        self.references.push(Reference { start: start as u32, kind, qualifier, source: self.source, subject });
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

    /// Remembers a comment that may document what comes next.
    fn comment(&mut self, node: Node<'_>) {
        let row = node.start_position().row;
        let line = self.line_starts.get(row).map_or(0, |start| *start as usize);
        if !self.text.get(line..node.start_byte()).unwrap_or("").trim().is_empty() {
            // It stands behind what it speaks of.
            return;
        }
        if self.comments.is_empty() || row != self.next_line {
            self.comments.clear();
        }
        self.comments.push((node.start_byte(), node.end_byte()));
        self.next_line = node.end_position().row + 1;
    }

    /// Returns the comment that stands right above `node`, and forgets it.
    fn documentation(&mut self, row: usize) -> Option<Arc<str>> {
        let comments = std::mem::take(&mut self.comments);
        if self.next_line != row {
            return None;
        }
        let mut text = String::new();
        for (start, end) in comments {
            let comment = self.text.get(start..end).unwrap_or("");
            if let Some(line) = comment.strip_prefix("//") {
                // `//go:noinline` and its like are for tools.
                let directive = line.starts_with(|first: char| first.is_ascii_lowercase()) && line.contains(':');
                if !directive {
                    text.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
                    text.push('\n');
                }
            } else {
                let inner = comment.trim_start_matches("/*").trim_end_matches("*/");
                for line in inner.lines() {
                    let line = line.trim_end();
                    text.push_str(line.trim_start().strip_prefix("* ").unwrap_or(line));
                    text.push('\n');
                }
            }
        }
        let text = text.trim_matches('\n').trim_end();
        (!text.trim().is_empty()).then(|| Arc::from(text))
    }
}

/// Ends the making of an outline, whose bindings follow the declarations to their places.
fn finished(builder: OutlineBuilder<'_>) -> Outline {
    let (mut outline, places) = builder.finish();
    for declaration in outline.bindings.iter_mut().filter_map(|binding| binding.declaration.as_mut()) {
        *declaration = Handle::of_surface(places[declaration.index()]);
    }
    outline
}
