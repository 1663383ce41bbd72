//! One walk over a Python tree, collecting what names are bound and used where; binding them is the next step's work.
//!
//! Must not know other files. Invariant: no recursion deeper than [`MAX_DEPTH`]; what is nested deeper is passed over.

use std::sync::{Arc as Shared, OnceLock};

use smallvec::SmallVec;
use tree_sitter::{Language, Node, TreeCursor};

use super::raw::*;
use crate::languages::grammar::node_kinds;
use crate::model::{Definition, DefinitionKey, EdgeKind, Place, Span, SymbolKind};

/// How deep blocks and expressions may nest; chains of calls, attributes and operators do not count.
const MAX_DEPTH: u32 = 120;

/// How deep an expression may nest and still be kept as evidence for a type.
const MAX_EVIDENCE: u8 = 60;

node_kinds! {
    /// The kinds of nodes that mean something here.
    Kind {
        Identifier = "identifier",
        Attribute = "attribute",
        Call = "call",
        Subscript = "subscript",
        BinaryOperator = "binary_operator",
        BooleanOperator = "boolean_operator",
        ArgumentList = "argument_list",
        KeywordArgument = "keyword_argument",
        Parenthesized = "parenthesized_expression",
        Conditional = "conditional_expression",
        Named = "named_expression",
        Lambda = "lambda",
        Await = "await",
        Yield = "yield",
        String = "string",
        StringStart = "string_start",
        StringContent = "string_content",
        ConcatenatedString = "concatenated_string",
        Interpolation = "interpolation",
        FormatSpecifier = "format_specifier",
        FormatExpression = "format_expression",
        EscapeSequence = "escape_sequence",
        Integer = "integer",
        Float = "float",
        True = "true",
        False = "false",
        None = "none",
        Ellipsis = "ellipsis",
        Comment = "comment",
        List = "list",
        Tuple = "tuple",
        Dictionary = "dictionary",
        Set = "set",
        ListComprehension = "list_comprehension",
        SetComprehension = "set_comprehension",
        DictionaryComprehension = "dictionary_comprehension",
        GeneratorExpression = "generator_expression",
        ForInClause = "for_in_clause",
        IfClause = "if_clause",
        Type = "type",
        GenericType = "generic_type",
        UnionType = "union_type",
        MemberType = "member_type",
        SplatType = "splat_type",
        ConstrainedType = "constrained_type",
        TypeParameter = "type_parameter",
        AsPattern = "as_pattern",
        AsPatternTarget = "as_pattern_target",
        PatternList = "pattern_list",
        TuplePattern = "tuple_pattern",
        ListPattern = "list_pattern",
        ListSplatPattern = "list_splat_pattern",
        DictionarySplatPattern = "dictionary_splat_pattern",
        ListSplat = "list_splat",
        ExpressionList = "expression_list",
        Block = "block",
        ExpressionStatement = "expression_statement",
        Assignment = "assignment",
        AugmentedAssignment = "augmented_assignment",
        DecoratedDefinition = "decorated_definition",
        Decorator = "decorator",
        FunctionDefinition = "function_definition",
        ClassDefinition = "class_definition",
        Parameters = "parameters",
        LambdaParameters = "lambda_parameters",
        DefaultParameter = "default_parameter",
        TypedParameter = "typed_parameter",
        TypedDefaultParameter = "typed_default_parameter",
        If = "if_statement",
        ElifClause = "elif_clause",
        ElseClause = "else_clause",
        For = "for_statement",
        While = "while_statement",
        Try = "try_statement",
        ExceptClause = "except_clause",
        ExceptGroupClause = "except_group_clause",
        FinallyClause = "finally_clause",
        With = "with_statement",
        WithClause = "with_clause",
        WithItem = "with_item",
        Match = "match_statement",
        CaseClause = "case_clause",
        CasePattern = "case_pattern",
        ClassPattern = "class_pattern",
        KeywordPattern = "keyword_pattern",
        SplatPattern = "splat_pattern",
        UnionPattern = "union_pattern",
        DictPattern = "dict_pattern",
        ComplexPattern = "complex_pattern",
        DottedName = "dotted_name",
        Import = "import_statement",
        ImportFrom = "import_from_statement",
        FutureImport = "future_import_statement",
        RelativeImport = "relative_import",
        AliasedImport = "aliased_import",
        WildcardImport = "wildcard_import",
        Global = "global_statement",
        Nonlocal = "nonlocal_statement",
        Delete = "delete_statement",
        Return = "return_statement",
        Raise = "raise_statement",
        Assert = "assert_statement",
        Break = "break_statement",
        Continue = "continue_statement",
        Pass = "pass_statement",
        TypeAlias = "type_alias_statement",
    }
}

/// The grammar and its kinds, made once a process.
pub(super) fn grammar() -> &'static (Language, Vec<Kind>) {
    static GRAMMAR: OnceLock<(Language, Vec<Kind>)> = OnceLock::new();
    GRAMMAR.get_or_init(|| {
        let language: Language = tree_sitter_python::LANGUAGE.into();
        let kinds = Kind::table(&language);
        (language, kinds)
    })
}

/// How a target gets its value.
#[derive(Clone, Copy)]
struct Given {
    annotation: u32,
    value: u32,
}

const NOTHING: Given = Given { annotation: NONE, value: NONE };

/// A parameter, seen before the scope it belongs to is entered.
struct Parameter {
    name: u32,
    annotation: u32,
    starred: bool,
}

#[derive(Default)]
struct Decorators {
    /// Where the decorated definition starts.
    start: Option<usize>,
    overload: bool,
    property: bool,
    /// `@name.setter` and its like: the name.
    accessor_of: u32,
    static_method: bool,
    class_method: bool,
    context_manager: bool,
}

pub(super) struct Walk<'s> {
    text: &'s str,
    kinds: &'static [Kind],
    line_starts: &'s [u32],
    raw: Raw<'s>,
    /// How deep each of `raw.expressions` nests.
    expression_depths: Vec<u8>,
    interned: QuickMap<&'s [u8], u32>,
    ordinals: QuickMap<Shared<str>, u16>,
    /// (scope, name) → its latest declaration.
    declared: QuickMap<u64, u32>,
    scope: u32,
    arm: u32,
    tick: u32,
    depth: u32,
    statements: u32,
    /// Index plus one of the definition that references belong to.
    source_definition: u32,
    /// The innermost class or function, which is the parent of what is defined.
    container: Option<u32>,
    function: u32,
    in_annotation: bool,
    /// Whether the target being walked is that of an `except`.
    in_handler: bool,
    /// The last name token of the expression just walked.
    last_name: u32,
    /// The test `isinstance(name, type)` just walked: the name and the type.
    instance_test: Option<(u32, u32)>,
    known: Known,
}

/// Numbers of names that the language or its typing rules give a meaning.
struct Known {
    all: u32,
    super_: u32,
    cast: u32,
    literal: u32,
    annotated: u32,
    isinstance: u32,
    type_var: u32,
    bound: u32,
    underscore: u32,
    type_checking: u32,
    new: u32,
    init_subclass: u32,
    class_getitem: u32,
}

/// Iterates the children of the cursor's node, leaving the cursor where it was.
macro_rules! each_child {
    ($cursor:ident, $body:block) => {
        if $cursor.goto_first_child() {
            loop {
                $body
                if !$cursor.goto_next_sibling() {
                    break;
                }
            }
            $cursor.goto_parent();
        }
    };
}

impl<'s> Walk<'s> {
    pub(super) fn new(text: &'s str, line_starts: &'s [u32]) -> Self {
        let raw = Raw {
            names: Vec::new(),
            scopes: Vec::new(),
            arms: Vec::new(),
            bindings: Vec::new(),
            groups: QuickMap::default(),
            uses: Vec::with_capacity(text.len() / 24),
            expressions: Vec::with_capacity(text.len() / 48),
            definitions: Vec::new(),
            declarations: Vec::new(),
            imports: Vec::new(),
            references: Vec::with_capacity(text.len() / 24),
            classes: Vec::new(),
            functions: Vec::new(),
            public: None,
            writes: Vec::new(),
        };
        let known = Known {
            all: 0,
            super_: 0,
            cast: 0,
            literal: 0,
            annotated: 0,
            isinstance: 0,
            type_var: 0,
            bound: 0,
            underscore: 0,
            type_checking: 0,
            new: 0,
            init_subclass: 0,
            class_getitem: 0,
        };
        let mut walk = Self {
            text,
            kinds: &grammar().1,
            line_starts,
            raw,
            expression_depths: Vec::new(),
            interned: QuickMap::default(),
            ordinals: QuickMap::default(),
            declared: QuickMap::default(),
            scope: 0,
            arm: 0,
            tick: 0,
            depth: 0,
            statements: 0,
            source_definition: 0,
            container: None,
            function: NONE,
            in_annotation: false,
            in_handler: false,
            last_name: NONE,
            instance_test: None,
            known,
        };
        walk.known = Known {
            all: walk.intern("__all__"),
            super_: walk.intern("super"),
            cast: walk.intern("cast"),
            literal: walk.intern("Literal"),
            annotated: walk.intern("Annotated"),
            isinstance: walk.intern("isinstance"),
            type_var: walk.intern("TypeVar"),
            bound: walk.intern("bound"),
            underscore: walk.intern("_"),
            type_checking: walk.intern("TYPE_CHECKING"),
            new: walk.intern("__new__"),
            init_subclass: walk.intern("__init_subclass__"),
            class_getitem: walk.intern("__class_getitem__"),
        };
        walk
    }

    /// Walks the whole tree.
    pub(super) fn run(mut self, root: Node<'_>) -> Raw<'s> {
        self.raw.arms.push(Arm {
            parent: NONE,
            depth: 0,
            statement: NONE,
            choice: NONE,
            repeats: false,
            terminates: false,
            certain: false,
            type_checking: false,
        });
        self.raw.scopes.push(Scope {
            kind: ScopeKind::Module,
            parent: NONE,
            arm: 0,
            class: NONE,
            instance: NONE,
            outer: true,
            redirected: Vec::new(),
        });
        let mut cursor = root.walk();
        self.block(&mut cursor, None);
        self.raw
    }

    // ---- small services

    fn kind(&self, cursor: &TreeCursor<'_>) -> Kind {
        self.kinds.get(usize::from(cursor.node().kind_id())).copied().unwrap_or(Kind::Other)
    }

    fn node_kind(&self, node: &Node<'_>) -> Kind {
        self.kinds.get(usize::from(node.kind_id())).copied().unwrap_or(Kind::Other)
    }

    fn intern(&mut self, name: &'s str) -> u32 {
        let next = self.raw.names.len() as u32;
        let id = *self.interned.entry(name.as_bytes()).or_insert(next);
        if id == next {
            self.raw.names.push(name);
        }
        id
    }

    fn slice(&self, node: &Node<'_>) -> &'s str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    fn name_of(&mut self, node: &Node<'_>) -> u32 {
        let name = self.slice(node);
        self.intern(name)
    }

    fn name_text(&self, name: u32) -> &'s str {
        self.raw.names.get(name as usize).copied().unwrap_or("")
    }

    fn next_tick(&mut self) -> u32 {
        self.tick += 1;
        self.tick
    }

    /// Adds an expression; one nested too deeply to be followed is [`NONE`].
    fn push_expression(&mut self, expression: RawExpression) -> u32 {
        let depth_of = |index: u32| if index == NONE { 0 } else { self.expression_depths[index as usize] };
        let depth = 1 + match expression {
            RawExpression::Name(_) | RawExpression::Super(_) | RawExpression::Literal => 0,
            RawExpression::Attribute(inner, _)
            | RawExpression::Call(inner)
            | RawExpression::Element(inner)
            | RawExpression::Entered(inner)
            | RawExpression::Await(inner)
            | RawExpression::Instance(inner) => depth_of(inner),
            RawExpression::Subscript(left, right) | RawExpression::Either(left, right) | RawExpression::List(left, right) => {
                depth_of(left).max(depth_of(right))
            }
        };
        if depth > MAX_EVIDENCE {
            return NONE;
        }
        self.expression_depths.push(depth);
        self.raw.expressions.push(expression);
        self.raw.expressions.len() as u32 - 1
    }

    fn line_of(&self, offset: u32) -> u32 {
        self.line_starts.partition_point(|start| *start <= offset).max(1) as u32
    }

    fn place_of(&self, offset: u32) -> Place {
        let line = self.line_of(offset);
        Place { line, column: offset - self.line_starts[line as usize - 1], start: offset }
    }

    fn new_arm(&mut self, parent: u32, statement: u32) -> u32 {
        let depth = if parent == NONE { 0 } else { self.raw.arms[parent as usize].depth + 1 };
        let type_checking = parent != NONE && self.raw.arms[parent as usize].type_checking;
        self.raw.arms.push(Arm {
            parent,
            depth,
            statement,
            choice: statement,
            repeats: false,
            terminates: false,
            certain: false,
            type_checking,
        });
        self.raw.arms.len() as u32 - 1
    }

    fn new_scope(&mut self, kind: ScopeKind, arm: u32) -> u32 {
        let parent = &self.raw.scopes[self.scope as usize];
        let outer = kind == ScopeKind::Class && parent.outer;
        let (class, instance) = if kind == ScopeKind::Class { (NONE, NONE) } else { (parent.class, NONE) };
        self.raw.scopes.push(Scope { kind, parent: self.scope, arm, class, instance, outer, redirected: Vec::new() });
        self.raw.scopes.len() as u32 - 1
    }

    fn scope_kind(&self) -> ScopeKind {
        self.raw.scopes[self.scope as usize].kind
    }

    fn bind_in(&mut self, scope: u32, name: u32, role: RawRole, declaration: u32, given: Given) -> u32 {
        let mut target = scope;
        let mut foreign = false;
        if let Some((_, global)) = self.raw.scopes[scope as usize].redirected.iter().find(|entry| entry.0 == name).copied() {
            foreign = true;
            target = if global {
                0
            } else {
                let mut outer = self.raw.scopes[scope as usize].parent;
                while outer != 0
                    && (self.raw.scopes[outer as usize].kind != ScopeKind::Function
                        || !self.raw.groups.contains_key(&group_key(outer, name)))
                {
                    outer = self.raw.scopes[outer as usize].parent;
                }
                outer
            };
        }
        let tick = self.next_tick();
        let index = self.raw.bindings.len() as u32;
        let previous = self.raw.groups.insert(group_key(target, name), index).unwrap_or(NONE);
        self.raw.bindings.push(RawBinding {
            name,
            scope: target,
            role,
            tick,
            arm: self.arm,
            foreign: foreign && target != scope,
            declaration,
            annotation: given.annotation,
            value: given.value,
            previous,
        });
        index
    }

    fn bind(&mut self, name: u32, role: RawRole, declaration: u32, given: Given) -> u32 {
        self.bind_in(self.scope, name, role, declaration, given)
    }

    /// Records a use of a bare name and, when the use may have an edge, the reference.
    fn use_name(&mut self, name: u32, start: u32, kind: EdgeKind, qualifier: bool) -> u32 {
        let tick = self.next_tick();
        let index = self.raw.uses.len() as u32;
        self.raw.uses.push(RawUse { name, scope: self.scope, tick, arm: self.arm, annotation: self.in_annotation });
        self.raw.references.push(RawReference {
            start,
            kind,
            qualifier,
            source: self.source_definition,
            subject: RawSubject::Name(index),
        });
        self.last_name = name;
        index
    }

    // ---- definitions

    #[allow(clippy::too_many_arguments, reason = "all of them describe the one definition that is made")]
    fn define(
        &mut self,
        name: u32,
        kind: SymbolKind,
        shape: RawShape,
        span: Span,
        name_start: u32,
        signature: Option<Shared<str>>,
    ) -> u32 {
        let text = self.name_text(name);
        let qualified: Shared<str> = match self.container {
            Some(parent) => {
                let parent = &self.raw.definitions[parent as usize].key.qualified;
                let mut qualified = String::with_capacity(parent.len() + 1 + text.len());
                qualified.push_str(parent);
                qualified.push('.');
                qualified.push_str(text);
                qualified.into()
            }
            None => text.into(),
        };
        let ordinal = match self.ordinals.get_mut(&qualified) {
            Some(count) => {
                *count = count.saturating_add(1);
                *count
            }
            None => {
                self.ordinals.insert(qualified.clone(), 0);
                0
            }
        };
        let short: Shared<str> = if self.container.is_none() { qualified.clone() } else { text.into() };
        self.raw.definitions.push(Definition {
            key: DefinitionKey { qualified, ordinal },
            name: short,
            kind,
            parent: self.container,
            span,
            start_line: self.line_of(span.start),
            end_line: self.line_of(span.end.saturating_sub(1).max(span.start)),
            name_place: self.place_of(name_start),
            signature,
            docstring: None,
        });
        let definition = self.raw.definitions.len() as u32 - 1;
        self.raw.declarations.push(RawDeclaration {
            definition,
            shape,
            outer: self.raw.scopes[self.scope as usize].outer,
            arm: self.arm,
            overloads: false,
        });
        let declaration = self.raw.declarations.len() as u32 - 1;
        self.declared.insert(group_key(self.scope, name), declaration);
        declaration
    }

    /// Returns the declaration of a variable of the module or a class; locals make none, nor do the names that `except` unbinds again.
    fn declare_variable(&mut self, name: u32, span: Span, name_start: u32) -> u32 {
        if self.in_handler {
            return NONE;
        }
        let scope = self.declaring_scope(name);
        if !matches!(self.raw.scopes[scope as usize].kind, ScopeKind::Module | ScopeKind::Class) {
            return NONE;
        }
        if let Some(declaration) = self.declared.get(&group_key(scope, name)).copied()
            && matches!(self.raw.declarations[declaration as usize].shape, RawShape::Value)
            && !self.are_alternatives(self.raw.declarations[declaration as usize].arm, self.arm)
        {
            return declaration;
        }
        if scope != self.scope {
            // The function that says `global` defines what the module does not: its definition stands at the top all the same.
            let (own_scope, own_container) = (self.scope, self.container);
            (self.scope, self.container) = (scope, None);
            let declaration = self.define_variable(name, span, name_start);
            (self.scope, self.container) = (own_scope, own_container);
            return declaration;
        }
        self.define_variable(name, span, name_start)
    }

    /// Returns whether the two arms are different ways through one statement: what they bind are then different definitions.
    fn are_alternatives(&self, left: u32, right: u32) -> bool {
        let arms = &self.raw.arms;
        let Some((below_left, below_right)) = fork(arms, left, right) else { return false };
        let choice = |arm: u32| if arm == NONE { NONE } else { arms[arm as usize].choice };
        choice(below_left) != NONE && choice(below_left) == choice(below_right)
    }

    fn define_variable(&mut self, name: u32, span: Span, name_start: u32) -> u32 {
        let text = self.name_text(name);
        let kind = if is_constant_name(text) { SymbolKind::Constant } else { SymbolKind::Variable };
        let signature = fold(self.text.get(span.start as usize..span.end as usize).unwrap_or(""), 160);
        self.define(name, kind, RawShape::Value, span, name_start, Some(signature))
    }

    fn declaring_scope(&self, name: u32) -> u32 {
        match self.raw.scopes[self.scope as usize].redirected.iter().find(|entry| entry.0 == name) {
            Some((_, true)) => 0,
            _ => self.scope,
        }
    }

    // ---- statements

    /// Walks the statements of a block; returns whether control never leaves it at its end.
    fn block(&mut self, cursor: &mut TreeCursor<'_>, documents: Option<u32>) -> bool {
        let mut ends = false;
        let mut first = true;
        if self.depth >= MAX_DEPTH {
            return false;
        }
        self.depth += 1;
        each_child!(cursor, {
            let kind = self.kind(cursor);
            match kind {
                Kind::Other | Kind::Comment => {}
                _ => {
                    if first {
                        first = false;
                        if let Some(definition) = documents
                            && kind == Kind::ExpressionStatement
                        {
                            self.docstring(&cursor.node(), definition);
                        }
                    }
                    ends |= self.statement(cursor, kind);
                }
            }
        });
        self.depth -= 1;
        ends
    }

    fn docstring(&mut self, statement: &Node<'_>, definition: u32) {
        let Some(string) = statement.named_child(0) else { return };
        if self.node_kind(&string) != Kind::String {
            return;
        }
        let (Some(first), Some(last)) = (string.child(0), string.child(string.child_count().saturating_sub(1))) else {
            return;
        };
        let Some(text) = self.text.get(first.end_byte()..last.start_byte()) else { return };
        let text = clean_docstring(text);
        if !text.is_empty() {
            self.raw.definitions[definition as usize].docstring = Some(text.into());
        }
    }

    /// Walks one statement; returns whether control never goes on after it.
    fn statement(&mut self, cursor: &mut TreeCursor<'_>, kind: Kind) -> bool {
        match kind {
            Kind::ExpressionStatement => {
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::Assignment => {
                            self.assignment(cursor);
                        }
                        Kind::AugmentedAssignment => self.augmented_assignment(cursor),
                        Kind::Other | Kind::Comment => {}
                        Kind::Call => self.statement_call(cursor),
                        _ => {
                            self.expression(cursor, false, EdgeKind::References);
                        }
                    }
                });
                false
            }
            Kind::DecoratedDefinition => {
                self.decorated(cursor);
                false
            }
            Kind::FunctionDefinition => {
                self.function(cursor, &Decorators::none());
                false
            }
            Kind::ClassDefinition => {
                self.class(cursor, &Decorators::none());
                false
            }
            Kind::If => self.if_statement(cursor),
            Kind::For => self.loop_statement(cursor, true),
            Kind::While => self.loop_statement(cursor, false),
            Kind::Try => self.try_statement(cursor),
            Kind::With => self.with_statement(cursor),
            Kind::Match => {
                self.match_statement(cursor);
                false
            }
            Kind::Import => {
                self.import_statement(cursor);
                false
            }
            Kind::ImportFrom => {
                self.import_from(cursor);
                false
            }
            Kind::Global | Kind::Nonlocal => {
                each_child!(cursor, {
                    if self.kind(cursor) == Kind::Identifier {
                        let name = self.name_of(&cursor.node());
                        self.raw.scopes[self.scope as usize].redirected.push((name, kind == Kind::Global));
                    }
                });
                false
            }
            Kind::Delete => {
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::ExpressionList | Kind::Tuple | Kind::Parenthesized => {
                            each_child!(cursor, {
                                self.delete(cursor);
                            });
                        }
                        _ => self.delete(cursor),
                    }
                });
                false
            }
            Kind::Return => {
                each_child!(cursor, {
                    if self.kind(cursor) != Kind::Other && self.kind(cursor) != Kind::Comment {
                        let value = self.expression(cursor, self.function != NONE, EdgeKind::References);
                        if value != NONE && self.function != NONE {
                            self.raw.functions[self.function as usize].returned.push(value);
                        }
                    }
                });
                true
            }
            Kind::Raise => {
                self.expressions(cursor);
                true
            }
            Kind::Break | Kind::Continue => true,
            Kind::Assert => {
                self.instance_test = None;
                self.expressions(cursor);
                self.narrow();
                false
            }
            Kind::TypeAlias => {
                self.type_alias(cursor);
                false
            }
            Kind::FutureImport | Kind::Pass => false,
            // A clause or block outside its statement: what remains around an error.
            Kind::Block => self.block(cursor, None),
            _ => {
                self.expressions(cursor);
                false
            }
        }
    }

    /// Walks every child as an expression.
    fn expressions(&mut self, cursor: &mut TreeCursor<'_>) {
        each_child!(cursor, {
            self.expression(cursor, false, EdgeKind::References);
        });
    }

    /// A call as a statement, which is where `__all__` is changed by its methods.
    fn statement_call(&mut self, cursor: &mut TreeCursor<'_>) {
        if self.scope == 0 {
            let node = cursor.node();
            if let Some(function) = node.child_by_field_name("function")
                && self.node_kind(&function) == Kind::Attribute
                && let Some(object) = function.child_by_field_name("object")
                && self.node_kind(&object) == Kind::Identifier
                && self.slice(&object) == "__all__"
                && let Some(method) = function.child_by_field_name("attribute")
                && let Some(arguments) = node.child_by_field_name("arguments")
            {
                let mut steps = Vec::new();
                match (self.slice(&method), arguments.named_child(0)) {
                    ("extend", Some(argument)) => self.public_steps(argument, &mut steps),
                    ("append", Some(argument)) => match self.string_name(&argument) {
                        Some(name) => steps.push(RawPublic::Add(name)),
                        None => steps.push(RawPublic::Unknown),
                    },
                    ("remove", Some(argument)) => match self.string_name(&argument) {
                        Some(name) => steps.push(RawPublic::Remove(name)),
                        None => steps.push(RawPublic::Unknown),
                    },
                    _ => steps.push(RawPublic::Unknown),
                }
                self.raw.public.get_or_insert_default().extend(steps);
            }
        }
        self.expression(cursor, false, EdgeKind::References);
    }

    /// Returns the name that a plain string literal spells.
    fn string_name(&mut self, node: &Node<'_>) -> Option<u32> {
        if self.node_kind(node) != Kind::String {
            return None;
        }
        let content = node.named_child(1)?;
        if self.node_kind(&content) != Kind::StringContent || content.named_child_count() != 0 {
            return None;
        }
        Some(self.name_of(&content))
    }

    /// Reads an expression that gives names for `__all__`.
    fn public_steps(&mut self, node: Node<'_>, steps: &mut Vec<RawPublic>) {
        match self.node_kind(&node) {
            Kind::List | Kind::Tuple | Kind::Set => {
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor) {
                    match self.node_kind(&child) {
                        Kind::Comment => {}
                        Kind::ListSplat => match child.named_child(0) {
                            Some(inner) => self.public_steps(inner, steps),
                            None => steps.push(RawPublic::Unknown),
                        },
                        _ => match self.string_name(&child) {
                            Some(name) => steps.push(RawPublic::Add(name)),
                            None => steps.push(RawPublic::Unknown),
                        },
                    }
                }
            }
            Kind::Parenthesized => match node.named_child(0) {
                Some(inner) => self.public_steps(inner, steps),
                None => steps.push(RawPublic::Unknown),
            },
            Kind::BinaryOperator => {
                // A left-deep chain of `+`, walked without recursion.
                let mut rights = Vec::new();
                let mut left = node;
                while self.node_kind(&left) == Kind::BinaryOperator {
                    let (Some(next), Some(right)) = (left.child_by_field_name("left"), left.child_by_field_name("right")) else {
                        steps.push(RawPublic::Unknown);
                        return;
                    };
                    if self.node_kind(&right) == Kind::BinaryOperator {
                        steps.push(RawPublic::Unknown);
                        return;
                    }
                    rights.push(right);
                    left = next;
                }
                self.public_steps(left, steps);
                for right in rights.into_iter().rev() {
                    self.public_steps(right, steps);
                }
            }
            Kind::Call => {
                // `list(x)`, `tuple(x)`, `sorted(x)`.
                let function = node.child_by_field_name("function").map(|function| self.slice(&function));
                let argument = node.child_by_field_name("arguments").and_then(|arguments| arguments.named_child(0));
                match (function, argument) {
                    (Some("list" | "tuple" | "sorted" | "set"), Some(argument)) if self.node_kind(&argument) != Kind::Call => {
                        self.public_steps(argument, steps);
                    }
                    _ => steps.push(RawPublic::Unknown),
                }
            }
            Kind::Attribute => {
                let attribute = node.child_by_field_name("attribute").map(|attribute| self.slice(&attribute));
                match (attribute, node.child_by_field_name("object")) {
                    (Some("__all__"), Some(object)) => {
                        let mut cursor = object.walk();
                        let references = self.raw.references.len();
                        let module = self.expression(&mut cursor, true, EdgeKind::References);
                        // The statement itself is walked too, and records them.
                        self.raw.references.truncate(references);
                        steps.push(if module == NONE { RawPublic::Unknown } else { RawPublic::Extend(module) });
                    }
                    _ => steps.push(RawPublic::Unknown),
                }
            }
            _ => steps.push(RawPublic::Unknown),
        }
    }

    /// Walks an assignment, right side first; returns the value.
    fn assignment(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        let statement = cursor.node();
        if self.depth >= MAX_DEPTH || !cursor.goto_first_child() {
            return NONE;
        }
        self.depth += 1;
        let left = cursor.node();
        let left_kind = self.node_kind(&left);
        let own_source = self.source_definition;
        let mut declaration = NONE;
        let mut name = NONE;
        let declares = matches!(self.scope_kind(), ScopeKind::Module | ScopeKind::Class);
        let mut right_kind = Kind::Other;
        let mut right_node = None;
        let mut annotated = false;
        let mut given = NOTHING;
        // Whether the value is evidence: any name may be a receiver later.
        while cursor.goto_next_sibling() {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::Type => {
                    annotated = true;
                    given.annotation = self.annotation(cursor);
                }
                kind => {
                    right_kind = kind;
                    right_node = Some(cursor.node());
                    break;
                }
            }
        }
        if left_kind == Kind::Identifier {
            name = self.name_of(&left);
            if declares || !self.raw.scopes[self.scope as usize].redirected.is_empty() {
                let span = span_of(&statement);
                if right_kind == Kind::Lambda && declares {
                    declaration = self.declare_lambda(name, span, left.start_byte() as u32);
                } else {
                    declaration = self.declare_variable(name, span, left.start_byte() as u32);
                }
                if declaration != NONE && declares {
                    self.source_definition = self.raw.declarations[declaration as usize].definition + 1;
                }
            }
            if self.scope == 0 && name == self.known.all {
                let mut steps = Vec::new();
                match right_node {
                    Some(right) => self.public_steps(right, &mut steps),
                    None => steps.push(RawPublic::Unknown),
                }
                self.raw.public = Some(steps);
            }
        }
        if right_node.is_some() {
            given.value = match right_kind {
                Kind::Assignment => self.assignment(cursor),
                Kind::AugmentedAssignment => NONE,
                Kind::Subscript if declares && !annotated => self.alias_value(cursor),
                _ => self.expression(cursor, true, EdgeKind::References),
            };
        }
        self.source_definition = own_source;
        cursor.goto_parent();
        let value = given.value;
        match left_kind {
            Kind::Identifier => {
                // A bare annotation binds nothing at run time, but declares: `x: int`.
                let role = match declaration {
                    NONE => RawRole::Variable,
                    declaration => match self.raw.declarations[declaration as usize].shape {
                        RawShape::Function(_) => RawRole::Function,
                        _ => RawRole::Variable,
                    },
                };
                self.bind(name, role, declaration, given);
            }
            _ => {
                if cursor.goto_first_child() {
                    self.target(cursor, given);
                    cursor.goto_parent();
                }
            }
        }
        self.depth -= 1;
        value
    }

    /// The right side of `Alias = Union["A", B]`: type checkers read its strings as annotations.
    fn alias_value(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        let head = cursor.node().child_by_field_name("value");
        let constructor = head.is_some_and(|head| {
            let name = match self.node_kind(&head) {
                Kind::Attribute => head.child_by_field_name("attribute").map(|name| self.slice(&name)),
                _ => Some(self.slice(&head)),
            };
            matches!(
                name,
                Some(
                    "Union"
                        | "Optional"
                        | "List"
                        | "Dict"
                        | "Tuple"
                        | "Set"
                        | "FrozenSet"
                        | "Type"
                        | "Callable"
                        | "Iterable"
                        | "Iterator"
                        | "Sequence"
                        | "Mapping"
                        | "MutableMapping"
                        | "Awaitable"
                        | "Generator"
                        | "Collection"
                        | "Annotated"
                        | "list"
                        | "dict"
                        | "tuple"
                        | "set"
                        | "type"
                )
            )
        });
        let own = std::mem::replace(&mut self.in_annotation, constructor);
        let value = self.expression(cursor, true, EdgeKind::References);
        self.in_annotation = own;
        value
    }

    fn declare_lambda(&mut self, name: u32, span: Span, name_start: u32) -> u32 {
        let kind = if self.scope_kind() == ScopeKind::Class { SymbolKind::Method } else { SymbolKind::Function };
        self.raw.functions.push(RawFunction::default());
        let shape = RawShape::Function(self.raw.functions.len() as u32 - 1);
        let signature = fold(self.text.get(span.start as usize..span.end as usize).unwrap_or(""), 160);
        self.define(name, kind, shape, span, name_start, Some(signature))
    }

    fn augmented_assignment(&mut self, cursor: &mut TreeCursor<'_>) {
        let node = cursor.node();
        if !cursor.goto_first_child() {
            return;
        }
        let left = cursor.node();
        let kind = self.node_kind(&left);
        self.expression(cursor, false, EdgeKind::References);
        while cursor.goto_next_sibling() {
            self.expression(cursor, false, EdgeKind::References);
        }
        cursor.goto_parent();
        if kind == Kind::Identifier {
            let name = self.name_of(&left);
            if self.scope == 0 && name == self.known.all {
                let mut steps = Vec::new();
                match node.child_by_field_name("right") {
                    Some(right) => self.public_steps(right, &mut steps),
                    None => steps.push(RawPublic::Unknown),
                }
                self.raw.public.get_or_insert_default().extend(steps);
            }
            let declaration = self.declare_variable(name, span_of(&left), left.start_byte() as u32);
            self.bind(name, RawRole::Variable, declaration, NOTHING);
        } else if kind == Kind::Attribute && cursor.goto_first_child() {
            let references = self.raw.references.len();
            self.target(cursor, NOTHING);
            self.raw.references.truncate(references);
            cursor.goto_parent();
        }
    }

    fn delete(&mut self, cursor: &mut TreeCursor<'_>) {
        match self.kind(cursor) {
            Kind::Other | Kind::Comment => {}
            Kind::Identifier => {
                let name = self.name_of(&cursor.node());
                let start = cursor.node().start_byte() as u32;
                self.use_name(name, start, EdgeKind::References, false);
                self.bind(name, RawRole::Deleted, NONE, NOTHING);
            }
            _ => {
                self.expression(cursor, false, EdgeKind::References);
            }
        }
    }

    /// Walks an assignment's target and binds what it names.
    fn target(&mut self, cursor: &mut TreeCursor<'_>, given: Given) {
        if self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        match self.kind(cursor) {
            Kind::Identifier => {
                let node = cursor.node();
                let name = self.name_of(&node);
                let declaration = self.declare_variable(name, span_of(&node), node.start_byte() as u32);
                self.bind(name, RawRole::Variable, declaration, given);
            }
            Kind::Attribute => self.attribute_target(cursor, given),
            Kind::Subscript => {
                self.expression(cursor, false, EdgeKind::References);
            }
            Kind::AsPatternTarget | Kind::Parenthesized => {
                each_child!(cursor, {
                    self.target(cursor, given);
                });
            }
            Kind::PatternList
            | Kind::TuplePattern
            | Kind::ListPattern
            | Kind::ListSplatPattern
            | Kind::Tuple
            | Kind::List
            | Kind::ListSplat
            | Kind::ExpressionList
            | Kind::DictionarySplatPattern => {
                each_child!(cursor, {
                    self.target(cursor, NOTHING);
                });
            }
            _ => {}
        }
        self.depth -= 1;
    }

    fn attribute_target(&mut self, cursor: &mut TreeCursor<'_>, given: Given) {
        if !cursor.goto_first_child() {
            return;
        }
        let object = cursor.node();
        let own_instance = if self.node_kind(&object) == Kind::Identifier {
            let name = self.name_of(&object);
            self.instance_class(name)
        } else {
            NONE
        };
        let value = self.expression_as(cursor, own_instance == NONE, EdgeKind::References, true);
        let mut attribute = None;
        while cursor.goto_next_sibling() {
            if self.kind(cursor) == Kind::Identifier {
                attribute = Some(cursor.node());
            }
        }
        cursor.goto_parent();
        let Some(attribute) = attribute else { return };
        let name = self.name_of(&attribute);
        if own_instance != NONE {
            self.raw.classes[own_instance as usize].attributes.push((name, given.annotation, given.value));
        } else if value != NONE {
            self.raw.writes.push((value, name));
        }
    }

    /// Returns the class whose instance (or self) `name` is here; [`NONE`] when it is no such parameter.
    fn instance_class(&self, name: u32) -> u32 {
        let mut scope = self.scope;
        while scope != NONE {
            let entry = &self.raw.scopes[scope as usize];
            if !matches!(entry.kind, ScopeKind::Function | ScopeKind::Comprehension) {
                return NONE;
            }
            if entry.instance == name {
                return entry.class;
            }
            if self.raw.groups.contains_key(&group_key(scope, name)) {
                return NONE;
            }
            scope = entry.parent;
        }
        NONE
    }

    /// Binds what a test for a type says about a local name, for the statements that follow in the arm.
    fn narrow(&mut self) {
        if let Some((name, annotation)) = self.instance_test.take()
            && self.scope_kind() == ScopeKind::Function
            && annotation != NONE
        {
            self.bind(name, RawRole::Narrowed, NONE, Given { annotation, value: NONE });
        }
    }

    fn if_statement(&mut self, cursor: &mut TreeCursor<'_>) -> bool {
        let statement = self.next_statement();
        let own_arm = self.arm;
        let mut arms: SmallVec<[u32; 4]> = SmallVec::new();
        let mut has_else = false;
        let mut checking = false;
        self.instance_test = None;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::Block => {
                    let arm = self.new_arm(own_arm, statement);
                    self.raw.arms[arm as usize].type_checking |= checking;
                    self.arm = arm;
                    self.narrow();
                    let ends = self.block(cursor, None);
                    self.raw.arms[arm as usize].terminates = ends;
                    self.arm = own_arm;
                    arms.push(arm);
                }
                Kind::ElifClause => {
                    self.instance_test = None;
                    let arm = self.new_arm(own_arm, statement);
                    each_child!(cursor, {
                        match self.kind(cursor) {
                            Kind::Other | Kind::Comment => {}
                            Kind::Block => {
                                self.arm = arm;
                                self.narrow();
                                let ends = self.block(cursor, None);
                                self.raw.arms[arm as usize].terminates = ends;
                                self.arm = own_arm;
                            }
                            _ => self.condition(cursor),
                        }
                    });
                    arms.push(arm);
                }
                Kind::ElseClause => {
                    has_else = true;
                    let arm = self.new_arm(own_arm, statement);
                    self.arm = arm;
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::Block {
                            let ends = self.block(cursor, None);
                            self.raw.arms[arm as usize].terminates = ends;
                        }
                    });
                    self.arm = own_arm;
                    arms.push(arm);
                }
                _ => {
                    self.last_name = NONE;
                    let kind = self.kind(cursor);
                    self.condition(cursor);
                    checking = self.last_name == self.known.type_checking && matches!(kind, Kind::Identifier | Kind::Attribute);
                }
            }
        });
        self.instance_test = None;
        let open: SmallVec<[u32; 4]> = arms.iter().copied().filter(|arm| !self.raw.arms[*arm as usize].terminates).collect();
        if has_else && open.len() == 1 {
            self.raw.arms[open[0] as usize].certain = true;
        }
        has_else && open.is_empty()
    }

    /// Walks a condition, keeping the test for a type that it makes when it is true.
    fn condition(&mut self, cursor: &mut TreeCursor<'_>) {
        let kind = self.kind(cursor);
        self.expression(cursor, false, EdgeKind::References);
        let conjunction = kind == Kind::Call
            || kind == Kind::BooleanOperator
                && cursor.node().child_by_field_name("operator").is_some_and(|operator| operator.kind() == "and");
        if !conjunction {
            self.instance_test = None;
        }
    }

    fn next_statement(&mut self) -> u32 {
        self.statements += 1;
        self.statements
    }

    fn loop_statement(&mut self, cursor: &mut TreeCursor<'_>, has_target: bool) -> bool {
        let own_arm = self.arm;
        let body_arm = self.new_arm(own_arm, NONE);
        self.raw.arms[body_arm as usize].repeats = true;
        if has_target {
            // The iterated expression comes before the target that it feeds.
            let mut value = NONE;
            if let Some(right) = cursor.node().child_by_field_name("right") {
                let id = right.id();
                each_child!(cursor, {
                    if cursor.node().id() == id {
                        value = self.expression(cursor, true, EdgeKind::References);
                    }
                });
            }
            if value != NONE {
                value = self.push_expression(RawExpression::Element(value));
            }
            if let Some(left) = cursor.node().child_by_field_name("left") {
                let id = left.id();
                self.arm = body_arm;
                each_child!(cursor, {
                    if cursor.node().id() == id {
                        self.target(cursor, Given { annotation: NONE, value });
                    }
                });
                self.arm = own_arm;
            }
        }
        let mut condition_done = has_target;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Block => {
                    self.arm = body_arm;
                    self.block(cursor, None);
                    self.arm = own_arm;
                }
                Kind::ElseClause => {
                    self.arm = self.new_arm(own_arm, NONE);
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::Block {
                            self.block(cursor, None);
                        }
                    });
                    self.arm = own_arm;
                }
                Kind::Other | Kind::Comment => {}
                _ if !condition_done => {
                    condition_done = true;
                    self.expression(cursor, false, EdgeKind::References);
                }
                _ => {}
            }
        });
        false
    }

    fn try_statement(&mut self, cursor: &mut TreeCursor<'_>) -> bool {
        let statement = self.next_statement();
        let own_arm = self.arm;
        let tried = self.new_arm(own_arm, NONE);
        self.raw.arms[tried as usize].choice = statement;
        let mut tried_ends = false;
        let mut handlers = 0;
        let mut handlers_end = true;
        let mut finally_ends = false;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Block => {
                    self.arm = tried;
                    tried_ends = self.block(cursor, None);
                    self.arm = own_arm;
                }
                Kind::ExceptClause | Kind::ExceptGroupClause => {
                    handlers += 1;
                    let arm = self.new_arm(own_arm, statement);
                    self.arm = arm;
                    let mut ends = false;
                    each_child!(cursor, {
                        match self.kind(cursor) {
                            Kind::Block => ends = self.block(cursor, None),
                            Kind::Other | Kind::Comment => {}
                            Kind::AsPattern => {
                                self.in_handler = true;
                                self.as_pattern(cursor, RawExpression::Instance);
                                self.in_handler = false;
                            }
                            _ => {
                                self.expression(cursor, false, EdgeKind::References);
                            }
                        }
                    });
                    self.raw.arms[arm as usize].terminates = ends;
                    handlers_end &= ends;
                    self.arm = own_arm;
                }
                Kind::ElseClause => {
                    // It runs only when the whole tried block has.
                    self.arm = self.new_arm(tried, NONE);
                    let arm = self.arm;
                    self.raw.arms[arm as usize].certain = true;
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::Block {
                            tried_ends |= self.block(cursor, None);
                        }
                    });
                    self.arm = own_arm;
                }
                Kind::FinallyClause => {
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::Block {
                            finally_ends = self.block(cursor, None);
                        }
                    });
                }
                _ => {}
            }
        });
        // What was bound before an exception is seen by the handlers, so the tried block does not count as one that never goes on.
        self.raw.arms[tried as usize].certain = handlers_end;
        finally_ends || tried_ends && handlers_end && handlers > 0
    }

    /// `value as target`; the target is given `wrap` of the value.
    fn as_pattern(&mut self, cursor: &mut TreeCursor<'_>, wrap: fn(u32) -> RawExpression) {
        let mut value = NONE;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::AsPatternTarget => {
                    if value != NONE {
                        value = self.push_expression(wrap(value));
                    }
                    self.target(cursor, Given { annotation: NONE, value });
                }
                kind => value = self.type_test(cursor, kind),
            }
        });
    }

    fn with_statement(&mut self, cursor: &mut TreeCursor<'_>) -> bool {
        let mut ends = false;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::WithClause => {
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::WithItem {
                            each_child!(cursor, {
                                match self.kind(cursor) {
                                    Kind::Other | Kind::Comment => {}
                                    Kind::AsPattern => self.as_pattern(cursor, RawExpression::Entered),
                                    _ => {
                                        self.expression(cursor, false, EdgeKind::References);
                                    }
                                }
                            });
                        }
                    });
                }
                // A context manager may swallow what a `raise` raises, but not a `return`; both are taken as ends.
                Kind::Block => ends = self.block(cursor, None),
                _ => {}
            }
        });
        ends
    }

    fn match_statement(&mut self, cursor: &mut TreeCursor<'_>) {
        let statement = self.next_statement();
        let own_arm = self.arm;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::Block => {
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::CaseClause {
                            let arm = self.new_arm(own_arm, statement);
                            self.arm = arm;
                            let mut ends = false;
                            each_child!(cursor, {
                                match self.kind(cursor) {
                                    Kind::Other | Kind::Comment => {}
                                    Kind::CasePattern => self.pattern(cursor),
                                    Kind::IfClause => self.expressions(cursor),
                                    Kind::Block => ends = self.block(cursor, None),
                                    _ => {}
                                }
                            });
                            self.raw.arms[arm as usize].terminates = ends;
                            self.arm = own_arm;
                        }
                    });
                }
                _ => {
                    self.expression(cursor, false, EdgeKind::References);
                }
            }
        });
    }

    /// Walks a `case` pattern: bare names are captured, dotted ones and class names are used.
    fn pattern(&mut self, cursor: &mut TreeCursor<'_>) {
        if self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        match self.kind(cursor) {
            Kind::DottedName => self.dotted_pattern(cursor, true),
            Kind::Identifier => {
                let node = cursor.node();
                let name = self.name_of(&node);
                if name != self.known.underscore {
                    let declaration = self.declare_variable(name, span_of(&node), node.start_byte() as u32);
                    self.bind(name, RawRole::Variable, declaration, NOTHING);
                }
            }
            Kind::ClassPattern => {
                let mut class = true;
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::DottedName if class => {
                            class = false;
                            self.dotted_pattern(cursor, false);
                        }
                        _ => self.pattern(cursor),
                    }
                });
            }
            Kind::KeywordPattern => {
                let mut keyword = true;
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::Identifier if keyword => keyword = false,
                        _ => self.pattern(cursor),
                    }
                });
            }
            Kind::CasePattern
            | Kind::AsPattern
            | Kind::SplatPattern
            | Kind::UnionPattern
            | Kind::DictPattern
            | Kind::ListPattern
            | Kind::TuplePattern => {
                each_child!(cursor, {
                    self.pattern(cursor);
                });
            }
            _ => {}
        }
        self.depth -= 1;
    }

    fn dotted_pattern(&mut self, cursor: &mut TreeCursor<'_>, captures: bool) {
        let node = cursor.node();
        let count = node.named_child_count();
        if count == 1 && captures {
            if cursor.goto_first_child() {
                self.pattern(cursor);
                cursor.goto_parent();
            }
            return;
        }
        let mut value = NONE;
        let mut index = 0;
        each_child!(cursor, {
            if self.kind(cursor) == Kind::Identifier {
                index += 1;
                let token = cursor.node();
                let name = self.name_of(&token);
                let start = token.start_byte() as u32;
                if index == 1 {
                    let used = self.use_name(name, start, EdgeKind::References, count > 1);
                    value = self.push_expression(RawExpression::Name(used));
                } else {
                    value = self.member(value, name, start, EdgeKind::References, index < count, true);
                }
            }
        });
    }

    // ---- imports

    fn import_statement(&mut self, cursor: &mut TreeCursor<'_>) {
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::DottedName => {
                    let node = cursor.node();
                    let module = self.slice(&node);
                    let root = node.named_child(0);
                    let dotted = node.named_child_count() > 1;
                    let import = self.module_import(module, dotted, &node);
                    if let Some(root) = root {
                        let name = self.name_of(&root);
                        self.bind(name, RawRole::Import(import), NONE, NOTHING);
                    }
                }
                Kind::AliasedImport => {
                    let node = cursor.node();
                    if let (Some(path), Some(alias)) = (node.child_by_field_name("name"), node.child_by_field_name("alias")) {
                        let module = self.slice(&path);
                        let import = self.module_import(module, false, &path);
                        let name = self.name_of(&alias);
                        self.bind(name, RawRole::Import(import), NONE, NOTHING);
                    }
                }
                _ => {}
            }
        });
    }

    /// Records an import of a module and the reference to it, at the last token of its path.
    fn module_import(&mut self, module: &'s str, root_only: bool, path: &Node<'_>) -> u32 {
        let module = self.intern(module);
        self.raw.imports.push(RawImport { module, name: NONE, root_only });
        let import = self.raw.imports.len() as u32 - 1;
        self.module_reference(import, path);
        import
    }

    fn module_reference(&mut self, import: u32, path: &Node<'_>) {
        let count = path.named_child_count();
        let mut token = *path;
        for index in (0..count).rev() {
            let Some(child) = path.named_child(index as u32) else { continue };
            match self.node_kind(&child) {
                Kind::Identifier => {
                    token = child;
                    break;
                }
                Kind::DottedName => {
                    token = child.named_child(child.named_child_count().saturating_sub(1) as u32).unwrap_or(child);
                    break;
                }
                _ => {}
            }
        }
        let name = self.name_of(&token);
        self.raw.references.push(RawReference {
            start: token.start_byte() as u32,
            kind: EdgeKind::Imports,
            qualifier: false,
            source: self.source_definition,
            subject: RawSubject::Module(import, name),
        });
    }

    fn import_from(&mut self, cursor: &mut TreeCursor<'_>) {
        let mut module: &'s str = "";
        let mut referred = false;
        let mut whole = NONE;
        each_child!(cursor, {
            match self.kind(cursor) {
                kind @ (Kind::DottedName | Kind::RelativeImport) if !referred => {
                    referred = true;
                    let node = cursor.node();
                    module = self.slice(&node);
                    if kind == Kind::RelativeImport && module.contains([' ', '\t', '\\']) {
                        module = "";
                    }
                    let interned = self.intern(module);
                    self.raw.imports.push(RawImport { module: interned, name: NONE, root_only: false });
                    whole = self.raw.imports.len() as u32 - 1;
                    self.module_reference(whole, &node);
                }
                Kind::DottedName => {
                    if let Some(token) = cursor.node().named_child(0) {
                        self.imported_name(module, &token, &token);
                    }
                }
                Kind::AliasedImport => {
                    let node = cursor.node();
                    if let (Some(path), Some(alias)) = (node.child_by_field_name("name"), node.child_by_field_name("alias"))
                        && let Some(token) = path.named_child(0)
                    {
                        self.imported_name(module, &token, &alias);
                    }
                }
                Kind::WildcardImport => {
                    let star = self.intern("*");
                    self.bind(star, RawRole::Star(whole), NONE, NOTHING);
                }
                _ => {}
            }
        });
    }

    fn imported_name(&mut self, module: &'s str, token: &Node<'_>, bound: &Node<'_>) {
        let name = self.name_of(token);
        let module = self.intern(module);
        self.raw.imports.push(RawImport { module, name, root_only: false });
        let import = self.raw.imports.len() as u32 - 1;
        self.raw.references.push(RawReference {
            start: token.start_byte() as u32,
            kind: EdgeKind::Imports,
            qualifier: false,
            source: self.source_definition,
            subject: RawSubject::Imported(import),
        });
        let bound = self.name_of(bound);
        self.bind(bound, RawRole::Import(import), NONE, NOTHING);
    }

    // ---- functions and classes

    fn decorated(&mut self, cursor: &mut TreeCursor<'_>) {
        let mut decorators = Decorators::none();
        decorators.start = Some(cursor.node().start_byte());
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Decorator => self.decorator(cursor, &mut decorators),
                Kind::FunctionDefinition => self.function(cursor, &decorators),
                Kind::ClassDefinition => self.class(cursor, &decorators),
                _ => {}
            }
        });
    }

    fn decorator(&mut self, cursor: &mut TreeCursor<'_>, decorators: &mut Decorators) {
        each_child!(cursor, {
            if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                let mut node = cursor.node();
                if self.node_kind(&node) == Kind::Call
                    && let Some(function) = node.child_by_field_name("function")
                {
                    node = function;
                }
                let (object, last) = match self.node_kind(&node) {
                    Kind::Attribute => (
                        node.child_by_field_name("object").map(|object| self.slice(&object)),
                        node.child_by_field_name("attribute").map(|attribute| self.slice(&attribute)),
                    ),
                    _ => (None, Some(self.slice(&node))),
                };
                match last.unwrap_or("") {
                    "overload" => decorators.overload = true,
                    "property" | "cached_property" | "abstractproperty" => decorators.property = true,
                    "staticmethod" | "abstractstaticmethod" => decorators.static_method = true,
                    "classmethod" | "abstractclassmethod" => decorators.class_method = true,
                    "contextmanager" | "asynccontextmanager" => decorators.context_manager = true,
                    "setter" | "getter" | "deleter" => {
                        if let Some(object) = object {
                            decorators.accessor_of = self.intern(object);
                        }
                    }
                    _ => {}
                }
                // The decorator's application is a call of it.
                self.expression(cursor, false, EdgeKind::Calls);
            }
        });
    }

    fn function(&mut self, cursor: &mut TreeCursor<'_>, decorators: &Decorators) {
        let node = cursor.node();
        let Some(name_node) = node.child_by_field_name("name") else { return };
        if name_node.start_byte() == name_node.end_byte() || self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        let name = self.name_of(&name_node);
        let in_class = self.scope_kind() == ScopeKind::Class;
        let own = (self.scope, self.arm, self.source_definition, self.container, self.function);
        let scope_of_name = self.scope;
        let arm = self.new_arm(NONE, NONE);
        let mut parameters = Vec::new();
        let mut returns = NONE;
        let mut header_end = name_node.end_byte();
        let mut body_seen = false;
        if cursor.goto_first_child() {
            loop {
                match self.kind(cursor) {
                    Kind::TypeParameter => {
                        // The parameters of a generic are a scope of their own around the rest of the head and the body.
                        let type_scope = self.new_scope(ScopeKind::Function, self.arm);
                        self.scope = type_scope;
                        self.type_parameters(cursor);
                    }
                    Kind::Parameters => {
                        header_end = cursor.node().end_byte();
                        self.parameters(cursor, &mut parameters);
                    }
                    Kind::Type => {
                        header_end = cursor.node().end_byte();
                        returns = self.annotation(cursor);
                    }
                    Kind::Block => {
                        body_seen = true;
                        let inner_parent = self.scope;
                        let (declaration, function) = self.declare_function(
                            scope_of_name,
                            name,
                            &node,
                            &name_node,
                            header_end,
                            decorators,
                            returns,
                            in_class,
                        );
                        self.scope = inner_parent;
                        let scope = self.new_scope(ScopeKind::Function, arm);
                        self.enter_function(scope, in_class, name, decorators, &parameters, own.0);
                        let definition = self.raw.declarations[declaration as usize].definition;
                        self.source_definition = definition + 1;
                        self.container = Some(definition);
                        self.function = function;
                        self.scope = scope;
                        self.arm = arm;
                        self.block(cursor, Some(definition));
                    }
                    _ => {}
                }
                if !cursor.goto_next_sibling() {
                    break;
                }
            }
            cursor.goto_parent();
        }
        (self.scope, self.arm, self.source_definition, self.container, self.function) = own;
        if !body_seen {
            self.declare_function(scope_of_name, name, &node, &name_node, header_end, decorators, returns, in_class);
        }
        self.depth -= 1;
    }

    /// Makes or continues the definition of a function, and binds its name in the scope around it.
    #[allow(clippy::too_many_arguments, reason = "all of them describe the one function that is declared")]
    fn declare_function(
        &mut self,
        scope: u32,
        name: u32,
        node: &Node<'_>,
        name_node: &Node<'_>,
        header_end: usize,
        decorators: &Decorators,
        returns: u32,
        in_class: bool,
    ) -> (u32, u32) {
        self.scope = scope;
        let start = decorators.start.unwrap_or(node.start_byte());
        let span = Span { start: start as u32, end: node.end_byte() as u32 };
        let signature = fold(self.text.get(node.start_byte()..header_end).unwrap_or(""), 400);
        let previous = self.declared.get(&group_key(scope, name)).copied();
        let continued = previous.filter(|previous| {
            let entry = &self.raw.declarations[*previous as usize];
            matches!(entry.shape, RawShape::Function(_)) && (entry.overloads || decorators.accessor_of == name)
        });
        let accessor = decorators.accessor_of == name;
        let (declaration, function) = match continued {
            Some(declaration) => {
                let entry = &mut self.raw.declarations[declaration as usize];
                let was_overload = std::mem::replace(&mut entry.overloads, decorators.overload);
                let index = entry.definition as usize;
                let contiguous = index + 1 == self.raw.definitions.len()
                    || self.raw.definitions[index + 1..].iter().all(|later| later.parent != self.container);
                let end_line = self.line_of(span.end.saturating_sub(1));
                let place = self.place_of(name_node.start_byte() as u32);
                let definition = &mut self.raw.definitions[index];
                if was_overload {
                    definition.name_place = place;
                    definition.signature = Some(signature);
                }
                if contiguous {
                    definition.span.end = span.end;
                    definition.end_line = end_line;
                }
                let RawShape::Function(shared) = self.raw.declarations[declaration as usize].shape else {
                    unreachable!("filtered to functions above")
                };
                if accessor && !was_overload {
                    self.raw.functions.push(RawFunction::default());
                    (declaration, self.raw.functions.len() as u32 - 1)
                } else {
                    (declaration, shared)
                }
            }
            None => {
                self.raw.functions.push(RawFunction::default());
                let function = self.raw.functions.len() as u32 - 1;
                let kind = if in_class { SymbolKind::Method } else { SymbolKind::Function };
                let start = name_node.start_byte() as u32;
                let declaration = self.define(name, kind, RawShape::Function(function), span, start, Some(signature));
                self.raw.declarations[declaration as usize].overloads = decorators.overload;
                (declaration, function)
            }
        };
        let entry = &mut self.raw.functions[function as usize];
        if returns != NONE {
            entry.returns.push(returns);
        }
        entry.property |= decorators.property || accessor;
        entry.unbound |= decorators.static_method;
        entry.class_method |= decorators.class_method;
        entry.context_manager |= decorators.context_manager;
        self.bind(name, RawRole::Function, declaration, NOTHING);
        (declaration, function)
    }

    fn enter_function(
        &mut self,
        scope: u32,
        in_class: bool,
        name: u32,
        decorators: &Decorators,
        parameters: &[Parameter],
        class_scope: u32,
    ) {
        let arm = self.raw.scopes[scope as usize].arm;
        let own_arm = std::mem::replace(&mut self.arm, arm);
        for (index, parameter) in parameters.iter().enumerate() {
            let mut role = RawRole::Parameter;
            if index == 0 && in_class && !parameter.starred && !decorators.static_method {
                let class = self.raw.scopes[class_scope as usize].class;
                let takes_class = decorators.class_method
                    || [self.known.new, self.known.init_subclass, self.known.class_getitem].contains(&name);
                let entry = &mut self.raw.scopes[scope as usize];
                entry.class = class;
                entry.instance = parameter.name;
                role = if takes_class { RawRole::Type(class) } else { RawRole::Instance(class) };
            }
            let annotation = if parameter.starred { NONE } else { parameter.annotation };
            self.bind_in(scope, parameter.name, role, NONE, Given { annotation, value: NONE });
        }
        self.arm = own_arm;
    }

    fn type_parameters(&mut self, cursor: &mut TreeCursor<'_>) {
        each_child!(cursor, {
            if self.kind(cursor) == Kind::Type {
                let node = cursor.node();
                let inner = node.named_child(0);
                match inner.map(|inner| (self.node_kind(&inner), inner)) {
                    Some((Kind::Identifier, token)) => {
                        let name = self.name_of(&token);
                        self.bind(name, RawRole::Variable, NONE, NOTHING);
                    }
                    Some((Kind::ConstrainedType | Kind::SplatType, _)) => {
                        // `T: bound`, `*Ts`: the first name is bound, the rest is used.
                        let mut first = true;
                        each_child!(cursor, {
                            each_child!(cursor, {
                                match self.kind(cursor) {
                                    Kind::Other | Kind::Comment => {}
                                    kind if first => {
                                        first = false;
                                        let token =
                                            if kind == Kind::Type { cursor.node().named_child(0) } else { Some(cursor.node()) };
                                        if let Some(token) = token {
                                            let name = self.name_of(&token);
                                            self.bind(name, RawRole::Variable, NONE, NOTHING);
                                        }
                                    }
                                    _ => {
                                        self.annotation(cursor);
                                    }
                                }
                            });
                        });
                    }
                    _ => {}
                }
            }
        });
    }

    /// Walks parameters: defaults and annotations are used in the scope around the function.
    fn parameters(&mut self, cursor: &mut TreeCursor<'_>, found: &mut Vec<Parameter>) {
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Identifier => {
                    let name = self.name_of(&cursor.node());
                    found.push(Parameter { name, annotation: NONE, starred: false });
                }
                Kind::ListSplatPattern | Kind::DictionarySplatPattern => {
                    if let Some(token) = cursor.node().named_child(0) {
                        let name = self.name_of(&token);
                        found.push(Parameter { name, annotation: NONE, starred: true });
                    }
                }
                Kind::TuplePattern => {
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::Identifier {
                            let name = self.name_of(&cursor.node());
                            found.push(Parameter { name, annotation: NONE, starred: true });
                        }
                    });
                }
                Kind::DefaultParameter | Kind::TypedParameter | Kind::TypedDefaultParameter => {
                    let mut parameter = Parameter { name: NONE, annotation: NONE, starred: false };
                    each_child!(cursor, {
                        match self.kind(cursor) {
                            Kind::Other | Kind::Comment => {}
                            Kind::Identifier if parameter.name == NONE => parameter.name = self.name_of(&cursor.node()),
                            Kind::ListSplatPattern | Kind::DictionarySplatPattern if parameter.name == NONE => {
                                if let Some(token) = cursor.node().named_child(0) {
                                    parameter.name = self.name_of(&token);
                                    parameter.starred = true;
                                }
                            }
                            Kind::Type => parameter.annotation = self.annotation(cursor),
                            _ => {
                                self.expression(cursor, false, EdgeKind::References);
                            }
                        }
                    });
                    if parameter.name != NONE {
                        found.push(parameter);
                    }
                }
                _ => {}
            }
        });
    }

    fn class(&mut self, cursor: &mut TreeCursor<'_>, decorators: &Decorators) {
        let node = cursor.node();
        let Some(name_node) = node.child_by_field_name("name") else { return };
        if name_node.start_byte() == name_node.end_byte() || self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        let name = self.name_of(&name_node);
        let own = (self.scope, self.arm, self.source_definition, self.container, self.function);
        self.raw.classes.push(RawClass { declaration: NONE, scope: NONE, ..RawClass::default() });
        let class = self.raw.classes.len() as u32 - 1;
        let mut header_end = name_node.end_byte();
        if let Some(bases) = node.child_by_field_name("superclasses") {
            header_end = bases.end_byte();
        }
        let start = decorators.start.unwrap_or(node.start_byte());
        let span = Span { start: start as u32, end: node.end_byte() as u32 };
        let signature = fold(self.text.get(node.start_byte()..header_end).unwrap_or(""), 400);
        let declaration =
            self.define(name, SymbolKind::Class, RawShape::Class(class), span, name_node.start_byte() as u32, Some(signature));
        self.raw.classes[class as usize].declaration = declaration;
        let definition = self.raw.declarations[declaration as usize].definition;
        if cursor.goto_first_child() {
            loop {
                match self.kind(cursor) {
                    Kind::TypeParameter => {
                        let type_scope = self.new_scope(ScopeKind::Function, self.arm);
                        self.raw.scopes[type_scope as usize].outer = self.raw.scopes[own.0 as usize].outer;
                        self.scope = type_scope;
                        self.type_parameters(cursor);
                    }
                    Kind::ArgumentList => {
                        each_child!(cursor, {
                            match self.kind(cursor) {
                                Kind::Other | Kind::Comment => {}
                                Kind::KeywordArgument => {
                                    self.expression(cursor, false, EdgeKind::References);
                                }
                                _ => {
                                    let base = self.expression(cursor, true, EdgeKind::Inherits);
                                    self.raw.classes[class as usize].bases.push(base);
                                }
                            }
                        });
                    }
                    Kind::Block => {
                        let scope = self.new_scope(ScopeKind::Class, self.arm);
                        self.raw.scopes[scope as usize].class = class;
                        self.raw.classes[class as usize].scope = scope;
                        let outer = self.scope;
                        self.scope = scope;
                        self.source_definition = definition + 1;
                        self.container = Some(definition);
                        self.function = NONE;
                        self.block(cursor, Some(definition));
                        self.scope = outer;
                    }
                    _ => {}
                }
                if !cursor.goto_next_sibling() {
                    break;
                }
            }
            cursor.goto_parent();
        }
        (self.scope, self.arm, self.source_definition, self.container, self.function) = own;
        self.bind(name, RawRole::Class, declaration, NOTHING);
        self.depth -= 1;
    }

    fn type_alias(&mut self, cursor: &mut TreeCursor<'_>) {
        let node = cursor.node();
        let own_scope = self.scope;
        let Some(left) = node.child_by_field_name("left") else { return };
        let Some(mut token) = left.named_child(0) else { return };
        let generic = self.node_kind(&token) == Kind::GenericType;
        if generic && let Some(inner) = token.named_child(0) {
            token = inner;
        }
        let name = self.name_of(&token);
        let declaration = self.declare_variable(name, span_of(&node), token.start_byte() as u32);
        let mut value = NONE;
        let mut is_left = true;
        each_child!(cursor, {
            if self.kind(cursor) == Kind::Type {
                if is_left {
                    is_left = false;
                    if generic {
                        self.scope = self.new_scope(ScopeKind::Function, self.arm);
                        each_child!(cursor, {
                            each_child!(cursor, {
                                if self.kind(cursor) == Kind::TypeParameter {
                                    self.type_parameters(cursor);
                                }
                            });
                        });
                    }
                } else {
                    value = self.annotation(cursor);
                }
            }
        });
        self.scope = own_scope;
        self.bind(name, RawRole::Variable, declaration, Given { annotation: NONE, value });
    }

    // ---- expressions

    /// Walks an annotation: strings in it are expressions too.
    fn annotation(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        let own = std::mem::replace(&mut self.in_annotation, true);
        let value = self.expression(cursor, true, EdgeKind::References);
        self.in_annotation = own;
        value
    }

    /// Walks an expression. Returns its number when `want`ed as evidence (or [`NONE`] when it is none); `kind` is how the whole
    /// expression is used.
    fn expression(&mut self, cursor: &mut TreeCursor<'_>, want: bool, kind: EdgeKind) -> u32 {
        self.expression_as(cursor, want, kind, false)
    }

    /// As [`Self::expression`]; `qualifies` says whether the expression only leads to an attribute.
    fn expression_as(&mut self, cursor: &mut TreeCursor<'_>, want: bool, kind: EdgeKind, qualifies: bool) -> u32 {
        // A chain `a.b(c)[d] + e` nests to the left: its spine is walked down and up without recursion.
        struct Link {
            node: Kind,
            want: bool,
            kind: EdgeKind,
            qualifies: bool,
        }
        let mut spine: SmallVec<[Link; 8]> = SmallVec::new();
        let mut link = Link { node: self.kind(cursor), want, kind, qualifies };
        while matches!(link.node, Kind::Attribute | Kind::Call | Kind::Subscript | Kind::BinaryOperator) {
            if !cursor.goto_first_child() {
                break;
            }
            let (want, kind, qualifies) = match link.node {
                Kind::Attribute => (true, EdgeKind::References, true),
                Kind::Call => (link.want, EdgeKind::Calls, false),
                Kind::Subscript if link.kind == EdgeKind::Inherits => (link.want, EdgeKind::Inherits, false),
                _ => (link.want, EdgeKind::References, false),
            };
            spine.push(link);
            link = Link { node: self.kind(cursor), want, kind, qualifies };
        }
        self.last_name = NONE;
        let mut value = self.primary(cursor, link.node, link.want, link.kind, link.qualifies);
        while let Some(link) = spine.pop() {
            match link.node {
                Kind::Attribute => {
                    let object = value;
                    value = NONE;
                    while cursor.goto_next_sibling() {
                        if self.kind(cursor) == Kind::Identifier {
                            let token = cursor.node();
                            let name = self.name_of(&token);
                            value = self.member(object, name, token.start_byte() as u32, link.kind, link.qualifies, link.want);
                        }
                    }
                }
                Kind::Call => value = self.call(cursor, value, link.want),
                Kind::Subscript => value = self.subscript(cursor, value, link.want),
                _ => {
                    let mut union = false;
                    let mut right = NONE;
                    while cursor.goto_next_sibling() {
                        match self.kind(cursor) {
                            Kind::Comment => {}
                            Kind::Other => union |= cursor.node().kind() == "|",
                            _ => right = self.expression(cursor, link.want && union, EdgeKind::References),
                        }
                    }
                    value = if !link.want || !union { NONE } else { self.either(value, right) };
                }
            }
            cursor.goto_parent();
        }
        value
    }

    fn either(&mut self, left: u32, right: u32) -> u32 {
        match (left, right) {
            (NONE, other) | (other, NONE) => other,
            (left, right) => self.push_expression(RawExpression::Either(left, right)),
        }
    }

    /// Records a reference to `object.name`.
    fn member(&mut self, object: u32, name: u32, start: u32, kind: EdgeKind, qualifier: bool, want: bool) -> u32 {
        self.raw.references.push(RawReference {
            start,
            kind,
            qualifier,
            source: self.source_definition,
            subject: RawSubject::Member(object, name),
        });
        self.last_name = name;
        if want && object != NONE { self.push_expression(RawExpression::Attribute(object, name)) } else { NONE }
    }

    /// The arguments of a call, the cursor being at its callee.
    fn call(&mut self, cursor: &mut TreeCursor<'_>, callee: u32, want: bool) -> u32 {
        let callee_name = self.last_name;
        let mut first = NONE;
        let mut first_name = NONE;
        let mut count = 0;
        let casts = callee_name == self.known.cast;
        let tests = callee_name == self.known.isinstance;
        let own_annotation = std::mem::replace(&mut self.in_annotation, false);
        let mut test = None;
        while cursor.goto_next_sibling() {
            match self.kind(cursor) {
                Kind::ArgumentList if self.depth < MAX_DEPTH => {
                    self.depth += 1;
                    each_child!(cursor, {
                        match self.kind(cursor) {
                            Kind::Other | Kind::Comment => {}
                            kind => {
                                count += 1;
                                match count {
                                    1 if casts => first = self.annotation(cursor),
                                    1 if tests => {
                                        if kind == Kind::Identifier {
                                            first_name = self.name_of(&cursor.node());
                                        }
                                        self.expression(cursor, false, EdgeKind::References);
                                    }
                                    2 if tests && first_name != NONE => {
                                        test = Some((first_name, self.type_test(cursor, kind)));
                                    }
                                    _ if callee_name == self.known.type_var && kind == Kind::KeywordArgument => {
                                        self.type_variable_argument(cursor);
                                    }
                                    _ => {
                                        self.expression(cursor, false, EdgeKind::References);
                                    }
                                }
                            }
                        }
                    });
                    self.depth -= 1;
                }
                Kind::GeneratorExpression => {
                    self.expression(cursor, false, EdgeKind::References);
                }
                _ => {}
            }
        }
        self.in_annotation = own_annotation;
        if test.is_some() {
            self.instance_test = test;
        }
        self.last_name = NONE;
        if !want {
            return NONE;
        }
        if casts && first != NONE {
            return self.push_expression(RawExpression::Instance(first));
        }
        if callee_name == self.known.super_
            && callee != NONE
            && matches!(self.raw.expressions[callee as usize], RawExpression::Name(_))
        {
            let class = self.enclosing_class();
            return if class == NONE { NONE } else { self.push_expression(RawExpression::Super(class)) };
        }
        if callee == NONE { NONE } else { self.push_expression(RawExpression::Call(callee)) }
    }

    /// The type in `isinstance(x, type)`: one, or several in a tuple.
    fn type_test(&mut self, cursor: &mut TreeCursor<'_>, kind: Kind) -> u32 {
        if kind != Kind::Tuple {
            return self.expression(cursor, true, EdgeKind::References);
        }
        let mut all = NONE;
        each_child!(cursor, {
            if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                let one = self.expression(cursor, true, EdgeKind::References);
                all = self.either(all, one);
            }
        });
        all
    }

    /// `bound="Name"` of a type variable, whose string is an annotation.
    fn type_variable_argument(&mut self, cursor: &mut TreeCursor<'_>) {
        let node = cursor.node();
        let bound = match node.child_by_field_name("name") {
            Some(name) => self.name_of(&name) == self.known.bound,
            None => false,
        };
        self.in_annotation = bound;
        self.expression(cursor, false, EdgeKind::References);
        self.in_annotation = false;
    }

    /// Returns the class in whose method (or a function inside one) the walk is.
    fn enclosing_class(&self) -> u32 {
        let mut scope = self.scope;
        while scope != NONE {
            let entry = &self.raw.scopes[scope as usize];
            match entry.kind {
                ScopeKind::Module => return NONE,
                ScopeKind::Class => return entry.class,
                _ if entry.class != NONE => return entry.class,
                _ => scope = entry.parent,
            }
        }
        NONE
    }

    fn subscript(&mut self, cursor: &mut TreeCursor<'_>, object: u32, want: bool) -> u32 {
        let object_name = self.last_name;
        let own_annotation = self.in_annotation;
        if object_name == self.known.literal {
            self.in_annotation = false;
        }
        let mut arguments: SmallVec<[u32; 4]> = SmallVec::new();
        let mut count = 0;
        while cursor.goto_next_sibling() {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                kind => {
                    count += 1;
                    if count == 2 && object_name == self.known.annotated {
                        self.in_annotation = false;
                    }
                    // `Callable[[A], R]` and `Tuple[A, B]` written with a bare tuple or a list.
                    if matches!(kind, Kind::List | Kind::Tuple) && want {
                        each_child!(cursor, {
                            if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                                let argument = self.expression(cursor, kind == Kind::Tuple, EdgeKind::References);
                                if kind == Kind::Tuple {
                                    arguments.push(argument);
                                }
                            }
                        });
                    } else {
                        arguments.push(self.expression(cursor, want, EdgeKind::References));
                    }
                }
            }
        }
        self.in_annotation = own_annotation;
        self.last_name = object_name;
        if !want || object == NONE {
            return NONE;
        }
        let argument = self.argument_chain(&arguments);
        self.push_expression(RawExpression::Subscript(object, argument))
    }

    /// Makes one expression of several arguments; one that is no evidence keeps its place.
    fn argument_chain(&mut self, arguments: &[u32]) -> u32 {
        if let [one] = arguments {
            return *one;
        }
        let mut rest = NONE;
        for argument in arguments.iter().rev() {
            let argument = if *argument == NONE { self.push_expression(RawExpression::Literal) } else { *argument };
            rest = self.push_expression(RawExpression::List(argument, rest));
        }
        rest
    }

    /// Walks an expression that does not nest to the left.
    fn primary(&mut self, cursor: &mut TreeCursor<'_>, node: Kind, want: bool, kind: EdgeKind, qualifies: bool) -> u32 {
        match node {
            Kind::Identifier => {
                let token = cursor.node();
                let name = self.name_of(&token);
                let used = self.use_name(name, token.start_byte() as u32, kind, qualifies);
                return if want { self.push_expression(RawExpression::Name(used)) } else { NONE };
            }
            Kind::Other
            | Kind::Comment
            | Kind::Integer
            | Kind::Float
            | Kind::True
            | Kind::False
            | Kind::Ellipsis
            | Kind::StringStart
            | Kind::StringContent => return NONE,
            Kind::None => return NONE,
            _ => {}
        }
        if self.depth >= MAX_DEPTH {
            return NONE;
        }
        self.depth += 1;
        let value = self.compound(cursor, node, want, kind, qualifies);
        self.depth -= 1;
        value
    }

    fn compound(&mut self, cursor: &mut TreeCursor<'_>, node: Kind, want: bool, kind: EdgeKind, qualifies: bool) -> u32 {
        let mut value = NONE;
        match node {
            Kind::Parenthesized | Kind::Type => {
                each_child!(cursor, {
                    let inner = self.expression_as(cursor, want, kind, qualifies);
                    if inner != NONE {
                        value = inner;
                    }
                });
            }
            Kind::String => self.string(cursor, want, &mut value),
            Kind::ConcatenatedString | Kind::Interpolation | Kind::FormatSpecifier | Kind::FormatExpression => {
                self.expressions(cursor)
            }
            Kind::Conditional => {
                let mut index = 0;
                each_child!(cursor, {
                    if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                        let part = self.expression(cursor, want && index != 1, EdgeKind::References);
                        if index != 1 {
                            value = self.either(value, part);
                        }
                        index += 1;
                    }
                });
            }
            Kind::BooleanOperator => {
                let and = cursor.node().child_by_field_name("operator").is_some_and(|operator| operator.kind() == "and");
                let mut index = 0;
                each_child!(cursor, {
                    if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                        let part = self.expression(cursor, want && !(and && index == 0), EdgeKind::References);
                        value = self.either(value, part);
                        index += 1;
                    }
                });
            }
            Kind::Named => {
                let mut target = None;
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::Other | Kind::Comment => {}
                        Kind::Identifier if target.is_none() => target = Some(cursor.node()),
                        _ => value = self.expression(cursor, true, EdgeKind::References),
                    }
                });
                if let Some(token) = target {
                    let name = self.name_of(&token);
                    let own = self.scope;
                    while self.scope_kind() == ScopeKind::Comprehension {
                        self.scope = self.raw.scopes[self.scope as usize].parent;
                    }
                    let declaration = self.declare_variable(name, span_of(&token), token.start_byte() as u32);
                    self.bind(name, RawRole::Variable, declaration, Given { annotation: NONE, value });
                    self.scope = own;
                }
            }
            Kind::Lambda => self.lambda(cursor),
            Kind::Await => {
                each_child!(cursor, {
                    let inner = self.expression(cursor, want, EdgeKind::References);
                    if inner != NONE {
                        value = self.push_expression(RawExpression::Await(inner));
                    }
                });
            }
            Kind::Yield => {
                if self.function != NONE {
                    self.raw.functions[self.function as usize].generator = true;
                }
                self.expressions(cursor);
            }
            Kind::ListComprehension | Kind::SetComprehension | Kind::DictionaryComprehension | Kind::GeneratorExpression => {
                self.comprehension(cursor);
            }
            Kind::KeywordArgument => {
                let mut keyword = true;
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::Identifier if keyword => keyword = false,
                        _ => {
                            self.expression(cursor, false, EdgeKind::References);
                        }
                    }
                });
            }
            Kind::GenericType => {
                let mut arguments: SmallVec<[u32; 4]> = SmallVec::new();
                let mut head = NONE;
                let mut head_name = NONE;
                let own_annotation = self.in_annotation;
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::Other | Kind::Comment => {}
                        Kind::TypeParameter => {
                            if head_name == self.known.literal {
                                self.in_annotation = false;
                            }
                            each_child!(cursor, {
                                if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                                    if head_name == self.known.annotated && arguments.len() == 1 {
                                        self.in_annotation = false;
                                    }
                                    arguments.push(self.expression(cursor, true, EdgeKind::References));
                                }
                            });
                            self.in_annotation = own_annotation;
                        }
                        _ => {
                            head = self.expression(cursor, true, EdgeKind::References);
                            head_name = self.last_name;
                        }
                    }
                });
                if head != NONE {
                    let argument = self.argument_chain(&arguments);
                    value = self.push_expression(RawExpression::Subscript(head, argument));
                }
            }
            Kind::UnionType => {
                each_child!(cursor, {
                    if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                        let part = self.expression(cursor, true, EdgeKind::References);
                        value = self.either(value, part);
                    }
                });
            }
            Kind::MemberType => {
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::Other | Kind::Comment => {}
                        Kind::Identifier => {
                            let token = cursor.node();
                            let name = self.name_of(&token);
                            value = self.member(value, name, token.start_byte() as u32, EdgeKind::References, false, true);
                        }
                        _ => value = self.expression_as(cursor, true, EdgeKind::References, true),
                    }
                });
            }
            // A list, tuple or pair of types inside an annotation (`Callable[[A], B]`) keeps its strings annotations.
            _ => {
                self.expressions(cursor);
                if want {
                    value = match node {
                        Kind::Tuple | Kind::List | Kind::Set | Kind::Dictionary => self.push_expression(RawExpression::Literal),
                        _ => NONE,
                    };
                }
            }
        }
        self.last_name = if matches!(node, Kind::Parenthesized | Kind::Type | Kind::GenericType) { self.last_name } else { NONE };
        value
    }

    fn string(&mut self, cursor: &mut TreeCursor<'_>, want: bool, value: &mut u32) {
        let mut plain = self.in_annotation;
        let start = cursor.node().start_byte();
        let prefix = self.text.as_bytes()[start..].iter().take_while(|byte| !matches!(byte, b'"' | b'\''));
        if !plain && !prefix.take(3).any(|byte| matches!(byte, b'f' | b'F' | b't' | b'T')) {
            // Most strings: nothing in them is code.
            return;
        }
        let mut content: Option<Node<'_>> = None;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Interpolation => {
                    plain = false;
                    self.expression(cursor, false, EdgeKind::References);
                }
                Kind::StringContent if plain => {
                    let node = cursor.node();
                    plain = content.is_none() && node.named_child_count() == 0;
                    content = Some(node);
                }
                _ => {}
            }
        });
        if let Some(content) = content
            && plain
        {
            let text = self.slice(&content);
            *value = self.annotation_text(text, content.start_byte() as u32, want);
        }
    }

    /// Reads an annotation written as a string.
    fn annotation_text(&mut self, text: &'s str, offset: u32, want: bool) -> u32 {
        let mut reader = AnnotationReader { text, position: 0, offset };
        let value = self.annotation_union(&mut reader, want, 0);
        reader.skip_space();
        if reader.position < text.len() { NONE } else { value }
    }

    fn annotation_union(&mut self, reader: &mut AnnotationReader<'s>, want: bool, depth: u32) -> u32 {
        let mut value = self.annotation_term(reader, want, depth);
        while reader.eat(b'|') {
            let right = self.annotation_term(reader, want, depth);
            value = self.either(value, right);
        }
        value
    }

    fn annotation_term(&mut self, reader: &mut AnnotationReader<'s>, want: bool, depth: u32) -> u32 {
        if depth > 20 {
            reader.position = reader.text.len();
            return NONE;
        }
        reader.skip_space();
        let mut value = NONE;
        if let Some((word, start)) = reader.word() {
            if matches!(word, "None" | "True" | "False") || word.as_bytes()[0].is_ascii_digit() {
                return NONE;
            }
            let dotted = reader.peek() == Some(b'.');
            let name = self.intern(word);
            let used = self.use_name(name, start, EdgeKind::References, dotted);
            value = self.push_expression(RawExpression::Name(used));
            while reader.eat(b'.') {
                let Some((word, start)) = reader.word() else { break };
                let dotted = reader.peek() == Some(b'.');
                let name = self.intern(word);
                value = self.member(value, name, start, EdgeKind::References, dotted, true);
            }
        } else if let Some(quote @ (b'"' | b'\'')) = reader.peek() {
            reader.eat(quote);
            value = self.annotation_union(reader, want, depth + 1);
            if !reader.eat(quote) {
                reader.position = reader.text.len();
            }
            return value;
        } else if reader.eat(b'[') || reader.eat(b'(') {
            self.annotation_arguments(reader, depth);
            return NONE;
        } else if reader.eat(b'*') {
            return self.annotation_term(reader, want, depth + 1);
        } else if reader.eat(b'.') {
            while reader.eat(b'.') {}
            return NONE;
        }
        if reader.eat(b'[') {
            let literal = self.last_name == self.known.literal;
            if literal {
                // What stands in it is no type.
                let rest = &reader.text[reader.position..];
                reader.position += rest.find(']').map_or(rest.len(), |end| end + 1);
                return NONE;
            }
            let arguments = self.annotation_arguments(reader, depth);
            if value != NONE {
                let argument = self.argument_chain(&arguments);
                value = self.push_expression(RawExpression::Subscript(value, argument));
            }
        }
        value
    }

    fn annotation_arguments(&mut self, reader: &mut AnnotationReader<'s>, depth: u32) -> SmallVec<[u32; 4]> {
        let mut arguments = SmallVec::new();
        loop {
            if reader.eat(b']') || reader.eat(b')') {
                break;
            }
            let before = reader.position;
            arguments.push(self.annotation_union(reader, true, depth + 1));
            reader.eat(b',');
            if reader.position == before {
                // Not an annotation after all: give up on the rest.
                reader.position = reader.text.len();
                break;
            }
        }
        arguments
    }

    fn lambda(&mut self, cursor: &mut TreeCursor<'_>) {
        let own = (self.scope, self.arm, self.function);
        let mut parameters = Vec::new();
        let arm = self.new_arm(NONE, NONE);
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::LambdaParameters => self.parameters(cursor, &mut parameters),
                Kind::Other | Kind::Comment => {}
                _ => {
                    let scope = self.new_scope(ScopeKind::Function, arm);
                    self.scope = scope;
                    self.arm = arm;
                    for parameter in &parameters {
                        self.bind(parameter.name, RawRole::Parameter, NONE, NOTHING);
                    }
                    self.function = NONE;
                    self.expression(cursor, false, EdgeKind::References);
                    (self.scope, self.arm, self.function) = own;
                }
            }
        });
    }

    fn comprehension(&mut self, cursor: &mut TreeCursor<'_>) {
        let outer = self.scope;
        let scope = self.new_scope(ScopeKind::Comprehension, self.arm);
        let mut first = true;
        self.scope = scope;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::ForInClause => {
                    let mut left = None;
                    let mut value = NONE;
                    let mut seen_in = false;
                    each_child!(cursor, {
                        match self.kind(cursor) {
                            Kind::Comment => {}
                            Kind::Other => seen_in |= cursor.node().kind() == "in",
                            _ if !seen_in => left = Some(cursor.node()),
                            _ => {
                                // The first iterable is evaluated outside.
                                if first {
                                    self.scope = outer;
                                }
                                let iterated = self.expression(cursor, true, EdgeKind::References);
                                self.scope = scope;
                                first = false;
                                if iterated != NONE {
                                    value = self.push_expression(RawExpression::Element(iterated));
                                }
                            }
                        }
                    });
                    if let Some(left) = left {
                        let mut inner = left.walk();
                        self.target(&mut inner, Given { annotation: NONE, value });
                    }
                }
                Kind::IfClause => self.expressions(cursor),
                _ => {
                    self.expression(cursor, false, EdgeKind::References);
                }
            }
        });
        self.scope = outer;
    }
}

impl Decorators {
    fn none() -> Self {
        Self { accessor_of: NONE, ..Self::default() }
    }
}

/// Reads the text of an annotation, token by token.
struct AnnotationReader<'s> {
    text: &'s str,
    position: usize,
    /// Of the text in its file.
    offset: u32,
}

impl<'s> AnnotationReader<'s> {
    fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        while bytes.get(self.position).is_some_and(u8::is_ascii_whitespace) {
            self.position += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.text.as_bytes().get(self.position).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    /// Returns the next identifier or number and its offset in the file.
    fn word(&mut self) -> Option<(&'s str, u32)> {
        self.skip_space();
        let rest = &self.text[self.position..];
        let length = rest.find(|character: char| !(character == '_' || character.is_alphanumeric())).unwrap_or(rest.len());
        if length == 0 {
            return None;
        }
        let start = self.offset + self.position as u32;
        self.position += length;
        Some((&rest[..length], start))
    }
}

fn span_of(node: &Node<'_>) -> Span {
    Span { start: node.start_byte() as u32, end: node.end_byte() as u32 }
}

/// Returns whether the name is spelt as constants are: capitals, with at least one letter.
fn is_constant_name(name: &str) -> bool {
    name.chars().any(char::is_alphabetic) && !name.chars().any(char::is_lowercase)
}

/// Returns the text on one line: runs of white space become one space, comments go, and what is longer than `limit` bytes is cut.
fn fold(text: &str, limit: usize) -> Shared<str> {
    if text.len() <= limit
        && !text.bytes().any(|byte| matches!(byte, b'\n' | b'\r' | b'\t' | b'#' | b'\\'))
        && !text.contains("  ")
    {
        return text.into();
    }
    let mut out = String::with_capacity(text.len().min(limit));
    let mut quote = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if out.len() >= limit {
            break;
        }
        match (character, quote) {
            ('\'' | '"', None) => {
                quote = Some(character);
                out.push(character);
            }
            (_, Some(open)) => {
                if character == open {
                    quote = None;
                }
                out.push(if character == '\n' { ' ' } else { character });
            }
            ('#', None) => {
                while characters.peek().is_some_and(|next| *next != '\n') {
                    characters.next();
                }
            }
            ('\\', None) if matches!(characters.peek(), Some('\n' | '\r')) => {}
            (space, None) if space.is_whitespace() => {
                if !out.ends_with([' ', '(', '[']) {
                    out.push(' ');
                }
            }
            (')' | ']' | ',', None) => {
                if out.ends_with(' ') {
                    out.pop();
                }
                out.push(character);
            }
            (character, None) => out.push(character),
        }
    }
    out.trim_end().into()
}

/// Returns the documentation text: lines without their common indentation, and no blank lines at the ends.
fn clean_docstring(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or("").trim();
    let rest: Vec<&str> = lines.map(str::trim_end).collect();
    let margin = rest
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| line.len() - line.trim_start_matches([' ', '\t']).len())
        .min()
        .unwrap_or(0);
    let mut out = String::with_capacity(text.len());
    out.push_str(first);
    for line in rest {
        out.push('\n');
        out.push_str(line.get(margin..).unwrap_or(""));
    }
    out.trim().to_owned()
}
