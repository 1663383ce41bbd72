//! The grammars of the family, and the kinds of nodes that mean something here.
//!
//! Must not know scopes or definitions. Invariant: the grammars share the names of their nodes; what only one has is never met in another.

use std::sync::OnceLock;

use smallvec::SmallVec;
use tree_sitter::{Language, Node, TreeCursor};

use crate::languages::Dialect;
use crate::languages::grammar::node_kinds;

pub(in crate::languages) const JAVASCRIPT: Dialect = "javascript";
pub(in crate::languages) const TYPESCRIPT: Dialect = "typescript";
pub(in crate::languages) const TSX: Dialect = "tsx";
pub(in crate::languages) const DECLARATIONS: Dialect = "typescript-declarations";

node_kinds! {
    /// The kinds of nodes that mean something here.
    Kind {
        Program = "program",
        Comment = "comment",
        HashBang = "hash_bang_line",
        Identifier = "identifier",
        PropertyIdentifier = "property_identifier",
        PrivateIdentifier = "private_property_identifier",
        TypeIdentifier = "type_identifier",
        ShorthandProperty = "shorthand_property_identifier",
        ShorthandPattern = "shorthand_property_identifier_pattern",
        StatementIdentifier = "statement_identifier",
        Undefined = "undefined",
        This = "this",
        Super = "super",
        Null = "null",
        True = "true",
        False = "false",
        Number = "number",
        Regex = "regex",
        String = "string",
        StringFragment = "string_fragment",
        TemplateString = "template_string",
        TemplateSubstitution = "template_substitution",
        ImportKeyword = "import",
        // Statements.
        ImportStatement = "import_statement",
        ImportClause = "import_clause",
        NamedImports = "named_imports",
        ImportSpecifier = "import_specifier",
        NamespaceImport = "namespace_import",
        ImportRequire = "import_require_clause",
        ImportAttribute = "import_attribute",
        ImportAlias = "import_alias",
        ExportStatement = "export_statement",
        ExportClause = "export_clause",
        ExportSpecifier = "export_specifier",
        NamespaceExport = "namespace_export",
        ExpressionStatement = "expression_statement",
        LexicalDeclaration = "lexical_declaration",
        VariableDeclaration = "variable_declaration",
        UsingDeclaration = "using_declaration",
        VariableDeclarator = "variable_declarator",
        FunctionDeclaration = "function_declaration",
        GeneratorDeclaration = "generator_function_declaration",
        FunctionSignature = "function_signature",
        ClassDeclaration = "class_declaration",
        AbstractClass = "abstract_class_declaration",
        InterfaceDeclaration = "interface_declaration",
        TypeAlias = "type_alias_declaration",
        EnumDeclaration = "enum_declaration",
        EnumBody = "enum_body",
        EnumAssignment = "enum_assignment",
        Namespace = "internal_module",
        AmbientModule = "module",
        AmbientDeclaration = "ambient_declaration",
        Block = "statement_block",
        If = "if_statement",
        For = "for_statement",
        ForIn = "for_in_statement",
        Return = "return_statement",
        SwitchBody = "switch_body",
        Catch = "catch_clause",
        Labeled = "labeled_statement",
        Break = "break_statement",
        Continue = "continue_statement",
        // Classes.
        ClassBody = "class_body",
        ClassHeritage = "class_heritage",
        ExtendsClause = "extends_clause",
        ImplementsClause = "implements_clause",
        ExtendsTypeClause = "extends_type_clause",
        MethodDefinition = "method_definition",
        MethodSignature = "method_signature",
        AbstractMethod = "abstract_method_signature",
        FieldDefinition = "field_definition",
        PublicField = "public_field_definition",
        StaticBlock = "class_static_block",
        IndexSignature = "index_signature",
        InterfaceBody = "interface_body",
        PropertySignature = "property_signature",
        CallSignature = "call_signature",
        ConstructSignature = "construct_signature",
        Decorator = "decorator",
        AccessibilityModifier = "accessibility_modifier",
        OverrideModifier = "override_modifier",
        ComputedName = "computed_property_name",
        // Functions.
        FunctionExpression = "function_expression",
        GeneratorFunction = "generator_function",
        Arrow = "arrow_function",
        Class = "class",
        Parameters = "formal_parameters",
        RequiredParameter = "required_parameter",
        OptionalParameter = "optional_parameter",
        TypeParameters = "type_parameters",
        TypeParameter = "type_parameter",
        Constraint = "constraint",
        DefaultType = "default_type",
        // Expressions.
        Call = "call_expression",
        New = "new_expression",
        Arguments = "arguments",
        Member = "member_expression",
        Subscript = "subscript_expression",
        OptionalChain = "optional_chain",
        Assignment = "assignment_expression",
        AugmentedAssignment = "augmented_assignment_expression",
        Update = "update_expression",
        Binary = "binary_expression",
        Unary = "unary_expression",
        Ternary = "ternary_expression",
        Await = "await_expression",
        Parenthesized = "parenthesized_expression",
        Sequence = "sequence_expression",
        As = "as_expression",
        Satisfies = "satisfies_expression",
        TypeAssertion = "type_assertion",
        NonNull = "non_null_expression",
        Instantiation = "instantiation_expression",
        Spread = "spread_element",
        Array = "array",
        Object = "object",
        Pair = "pair",
        MetaProperty = "meta_property",
        // Patterns.
        ArrayPattern = "array_pattern",
        ObjectPattern = "object_pattern",
        PairPattern = "pair_pattern",
        AssignmentPattern = "assignment_pattern",
        ObjectAssignmentPattern = "object_assignment_pattern",
        RestPattern = "rest_pattern",
        // JSX.
        JsxElement = "jsx_element",
        JsxSelfClosing = "jsx_self_closing_element",
        JsxOpening = "jsx_opening_element",
        JsxClosing = "jsx_closing_element",
        JsxAttribute = "jsx_attribute",
        JsxNamespaceName = "jsx_namespace_name",
        // Types.
        TypeAnnotation = "type_annotation",
        TypeArguments = "type_arguments",
        GenericType = "generic_type",
        NestedType = "nested_type_identifier",
        NestedIdentifier = "nested_identifier",
        UnionType = "union_type",
        IntersectionType = "intersection_type",
        ArrayType = "array_type",
        TupleType = "tuple_type",
        ObjectType = "object_type",
        FunctionType = "function_type",
        ConstructorType = "constructor_type",
        ConditionalType = "conditional_type",
        ParenthesizedType = "parenthesized_type",
        ReadonlyType = "readonly_type",
        OptionalType = "optional_type",
        RestType = "rest_type",
        PredefinedType = "predefined_type",
        LiteralType = "literal_type",
        TemplateLiteralType = "template_literal_type",
        TypeQuery = "type_query",
        IndexTypeQuery = "index_type_query",
        LookupType = "lookup_type",
        MappedTypeClause = "mapped_type_clause",
        InferType = "infer_type",
        ThisType = "this_type",
        TypePredicate = "type_predicate",
        TypePredicateAnnotation = "type_predicate_annotation",
        Asserts = "asserts",
        AssertsAnnotation = "asserts_annotation",
    }
}

/// The numbers of the fields that are asked for, by grammar.
macro_rules! fields {
    ($($name:ident = $text:literal,)+) => {
        #[derive(Clone, Copy, Debug)]
        pub(super) struct Fields { $(pub $name: u16,)+ }

        impl Fields {
            fn of(language: &Language) -> Self {
                let id = |name: &str| language.field_id_for_name(name).map_or(0, |id| id.get());
                Self { $($name: id($text),)+ }
            }
        }
    };
}

fields! {
    name = "name",
    alias = "alias",
    source = "source",
    declaration = "declaration",
    value = "value",
    body = "body",
    parameters = "parameters",
    parameter = "parameter",
    return_type = "return_type",
    kind_of = "type",
    type_parameters = "type_parameters",
    type_arguments = "type_arguments",
    function = "function",
    arguments = "arguments",
    constructor = "constructor",
    object = "object",
    property = "property",
    index = "index",
    index_type = "index_type",
    left = "left",
    right = "right",
    key = "key",
    pattern = "pattern",
    module = "module",
    condition = "condition",
    consequence = "consequence",
    alternative = "alternative",
}

/// One grammar, with its numbers.
pub(super) struct Grammar {
    pub language: Language,
    pub kinds: Vec<Kind>,
    pub fields: Fields,
}

impl Grammar {
    fn new(language: Language) -> Self {
        Self { kinds: Kind::table(&language), fields: Fields::of(&language), language }
    }

    /// Returns the grammar that reads a dialect.
    pub(super) fn of(dialect: Dialect) -> &'static Self {
        static JAVASCRIPT_GRAMMAR: OnceLock<Grammar> = OnceLock::new();
        static TYPESCRIPT_GRAMMAR: OnceLock<Grammar> = OnceLock::new();
        static TSX_GRAMMAR: OnceLock<Grammar> = OnceLock::new();
        match dialect {
            JAVASCRIPT => JAVASCRIPT_GRAMMAR.get_or_init(|| Self::new(tree_sitter_javascript::LANGUAGE.into())),
            TSX => TSX_GRAMMAR.get_or_init(|| Self::new(tree_sitter_typescript::LANGUAGE_TSX.into())),
            _ => TYPESCRIPT_GRAMMAR.get_or_init(|| Self::new(tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into())),
        }
    }

    pub(super) fn kind(&self, node: Node<'_>) -> Kind {
        self.kinds.get(usize::from(node.kind_id())).copied().unwrap_or(Kind::Other)
    }

    /// Collects the children of a node, tokens too, without comments.
    pub(super) fn children<'t>(&self, cursor: &mut TreeCursor<'t>, node: Node<'t>) -> Children<'t> {
        let mut found = Children::default();
        cursor.reset(node);
        if cursor.goto_first_child() {
            loop {
                let node = cursor.node();
                let kind = self.kind(node);
                if kind != Kind::Comment {
                    found.0.push(Child { node, kind, field: cursor.field_id().map_or(0, |id| id.get()) });
                }
                if !cursor.goto_next_sibling() {
                    break;
                }
            }
        }
        found
    }
}

/// A child of a node.
#[derive(Clone, Copy)]
pub(super) struct Child<'t> {
    pub node: Node<'t>,
    pub kind: Kind,
    pub field: u16,
}

/// The children of one node.
#[derive(Clone, Default)]
pub(super) struct Children<'t>(pub SmallVec<[Child<'t>; 8]>);

impl<'t> Children<'t> {
    pub(super) fn field(&self, field: u16) -> Option<Child<'t>> {
        self.0.iter().find(|child| child.field == field && child.node.is_named()).copied()
    }

    /// As [`Self::field`], where the field may be a keyword: `default`.
    pub(super) fn name_or_keyword(&self, field: u16) -> Option<Child<'t>> {
        self.0.iter().find(|child| child.field == field).copied()
    }

    pub(super) fn kind(&self, kind: Kind) -> Option<Child<'t>> {
        self.0.iter().find(|child| child.kind == kind).copied()
    }

    pub(super) fn named(&self) -> impl Iterator<Item = Child<'t>> + '_ {
        self.0.iter().filter(|child| child.node.is_named()).copied()
    }

    pub(super) fn all_of_field(&self, field: u16) -> impl Iterator<Item = Child<'t>> + '_ {
        self.0.iter().filter(move |child| child.field == field && child.node.is_named()).copied()
    }

    /// Returns whether a token of this text is among them.
    pub(super) fn has_token(&self, text: &str) -> bool {
        self.0.iter().any(|child| !child.node.is_named() && child.node.kind() == text)
    }
}
