//! Whether facts that came from outside fit the source they are said to be of, and fit together.
//!
//! Must not know where they came from. Invariant: in facts that pass, every span lies in the source between two characters, every line
//! exists, and every number that stands for an entry of a table stands for one that is there.

use crate::model::facts::{
    Binding, ClassShape, Expression, FunctionShape, Handle, ItemMeaning, ItemScope, MemberBlock, NameId, Outline,
};
use crate::model::facts::{PublicStep, Reaching, Role, Shape, Signature, Subject, TypeForm, TypeShape, Use};
use crate::model::{FileFacts, Place, Span, Surface};

/// What does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the facts do not fit the source: {part}")]
pub struct Misfit {
    part: &'static str,
}

type Fits = Result<(), Misfit>;

fn require(fits: bool, part: &'static str) -> Fits {
    if fits { Ok(()) } else { Err(Misfit { part }) }
}

/// Checks facts of a registered language against the source they are of.
///
/// # Errors
/// With the first part that does not fit.
pub fn validate(facts: &FileFacts, source: &str) -> Fits {
    let body = &facts.body;
    let text = Text::new(source, &body.line_starts)?;
    require(facts.lines <= text.lines, "number of lines")?;
    for (index, definition) in facts.definitions.iter().enumerate() {
        require(definition.parent.is_none_or(|parent| (parent as usize) < index), "parent of a definition")?;
        text.span(definition.span, "span of a definition")?;
        text.place(definition.name_place, "name of a definition")?;
        require(definition.start_line <= definition.end_line, "lines of a definition")?;
        text.line(definition.start_line, "first line of a definition")?;
        text.line(definition.end_line, "last line of a definition")?;
    }
    for heading in &facts.headings {
        text.line(heading.line, "line of a heading")?;
    }
    let surface = Tables { surface: &facts.surface.outline, body: None };
    surface.outline(&facts.surface.outline)?;
    surface.rest_of_surface(&facts.surface)?;
    let both = Tables { surface: &facts.surface.outline, body: Some(&body.outline) };
    both.outline(&body.outline)?;
    let mut last = 0;
    for reference in &body.references {
        require(reference.start >= last, "order of the references")?;
        last = reference.start;
        text.offset(reference.start, "start of a reference")?;
        require(reference.source as usize <= facts.definitions.len(), "source of a reference")?;
        match reference.subject {
            Subject::Name(used) | Subject::Type(used) => both.used(used)?,
            Subject::Key { literal, used } => {
                both.expression(literal)?;
                both.used(used)?;
            }
            Subject::Member { object, name } | Subject::TypeMember { object, name } => {
                both.all(object, Tables::expression)?;
                Tables::name(&body.outline, name)?;
            }
            Subject::Module { import, name } => {
                both.import(import)?;
                Tables::name(&body.outline, name)?;
            }
            Subject::Imported(import) => both.import(import)?,
            Subject::Injected(given) => both.expression(given)?,
            Subject::Path(path) => both.expression(path)?,
        }
    }
    Ok(())
}

/// The source, as far as places in it are concerned.
struct Text<'a> {
    source: &'a str,
    line_starts: &'a [u32],
    /// How many lines the source may be said to have at most.
    lines: u32,
}

impl<'a> Text<'a> {
    fn new(source: &'a str, line_starts: &'a [u32]) -> Result<Self, Misfit> {
        const PART: &str = "starts of the lines";
        let bytes = source.as_bytes();
        let feeds = bytes.iter().filter(|byte| **byte == b'\n').count();
        let (first, others) = line_starts.split_first().ok_or(Misfit { part: PART })?;
        require(*first == 0, PART)?;
        let mut last = 0;
        for start in others {
            // Ascending starts, each behind a line feed and as many as there are line feeds, are all of them.
            require(*start > last && bytes.get(*start as usize - 1) == Some(&b'\n'), PART)?;
            last = *start;
        }
        // The line behind the last line feed may be told or not.
        let untold = bytes.ends_with(b"\n") && last as usize != bytes.len();
        require(others.len() + usize::from(untold) == feeds, PART)?;
        let lines = u32::try_from(feeds + 1).map_err(|_| Misfit { part: PART })?;
        Ok(Self { source, line_starts, lines })
    }

    fn offset(&self, offset: u32, part: &'static str) -> Fits {
        require(self.source.is_char_boundary(offset as usize), part)
    }

    fn span(&self, span: Span, part: &'static str) -> Fits {
        require(span.start <= span.end, part)?;
        self.offset(span.start, part)?;
        self.offset(span.end, part)
    }

    fn line(&self, line: u32, part: &'static str) -> Fits {
        require((1..=self.lines).contains(&line), part)
    }

    fn place(&self, place: Place, part: &'static str) -> Fits {
        self.offset(place.start, part)?;
        let line_start = (place.line as usize).checked_sub(1).and_then(|index| self.line_starts.get(index));
        require(line_start.and_then(|start| start.checked_add(place.column)) == Some(place.start), part)
    }
}

/// The tables that handles may point into: a surface sees its own only, a body both.
struct Tables<'a> {
    surface: &'a Outline,
    body: Option<&'a Outline>,
}

impl Tables<'_> {
    fn entry(&self, handle: Handle, length: impl Fn(&Outline) -> usize, part: &'static str) -> Fits {
        let outline = if handle.in_body() { self.body } else { Some(self.surface) };
        require(outline.is_some_and(|outline| handle.index() < length(outline)), part)
    }

    fn declaration(&self, handle: Handle) -> Fits {
        self.entry(handle, |outline| outline.declarations.len(), "handle of a declaration")
    }

    fn binding(&self, handle: Handle) -> Fits {
        self.entry(handle, |outline| outline.bindings.len(), "handle of a binding")
    }

    fn expression(&self, handle: Handle) -> Fits {
        self.entry(handle, |outline| outline.expressions.len(), "handle of an expression")
    }

    fn shape(&self, handle: Handle) -> Fits {
        self.entry(handle, |outline| outline.classes.len(), "handle of a class")
    }

    fn import(&self, handle: Handle) -> Fits {
        self.entry(handle, |outline| outline.imports.len(), "handle of an import")
    }

    fn all(&self, handles: impl IntoIterator<Item = Handle>, check: impl Fn(&Self, Handle) -> Fits) -> Fits {
        handles.into_iter().try_for_each(|handle| check(self, handle))
    }

    fn used(&self, used: Use) -> Fits {
        match used {
            Use::One(binding) => self.binding(binding),
            Use::Many(set) => self.entry(set, |outline| outline.sets.len(), "handle of a set"),
            Use::Free(name) => self.entry(name, |outline| outline.names.len(), "handle of a name"),
        }
    }

    fn reaching(&self, reaching: &[Reaching]) -> Fits {
        self.all(reaching.iter().map(|reaching| reaching.binding), Self::binding)
    }

    fn name(outline: &Outline, name: NameId) -> Fits {
        require((name.0 as usize) < outline.names.len(), "number of a name")
    }

    /// Checks one of the two outlines; numbers without a side are of that one.
    fn outline(&self, own: &Outline) -> Fits {
        require(own.names.is_sound(), "names")?;
        for declaration in &own.declarations {
            match declaration.shape {
                Shape::Class(index) => require((index as usize) < own.classes.len(), "shape of a class")?,
                Shape::Function(index) => require((index as usize) < own.functions.len(), "shape of a function")?,
                Shape::Type(index) => require((index as usize) < own.types.len(), "shape of a type")?,
                Shape::Signature(index) => Self::signature_of(own, index)?,
                Shape::Value => {}
            }
        }
        own.bindings.iter().try_for_each(|binding| self.one_binding(own, binding))?;
        own.sets.iter().try_for_each(|set| self.reaching(set))?;
        for import in &own.imports {
            Self::name(own, import.module)?;
            import.name.map_or(Ok(()), |name| Self::name(own, name))?;
        }
        own.expressions.iter().try_for_each(|expression| self.one_expression(own, *expression))?;
        own.classes.iter().try_for_each(|class| self.class(own, class))?;
        own.functions.iter().try_for_each(|function| self.function(own, function))?;
        own.types.iter().try_for_each(|shape| self.type_(own, shape))?;
        own.signatures.iter().try_for_each(|signature| self.signature(signature))?;
        for search in &own.searches {
            self.scope(search.scope)?;
            Self::name(own, search.name)?;
        }
        own.scopes.iter().try_for_each(|scope| self.item_scope(own, scope))?;
        own.blocks.iter().try_for_each(|block| self.member_block(own, block))
    }

    fn scope(&self, scope: Handle) -> Fits {
        self.entry(scope, |outline| outline.scopes.len(), "handle of a scope")
    }

    fn item_scope(&self, own: &Outline, scope: &ItemScope) -> Fits {
        self.all(scope.parent, Self::scope)?;
        scope.name.iter().chain(&scope.mentioned).try_for_each(|name| Self::name(own, *name))?;
        for item in &scope.items {
            Self::name(own, item.name)?;
            match item.meaning {
                ItemMeaning::Declaration(declaration) => self.declaration(declaration)?,
                ItemMeaning::Import(import) | ItemMeaning::Star(import) => {
                    require((import as usize) < own.imports.len(), "number of an import")?;
                }
                ItemMeaning::Module { declaration, scope } => {
                    self.declaration(declaration)?;
                    self.scope(scope)?;
                }
                ItemMeaning::File { path } => path.map_or(Ok(()), |path| Self::name(own, path))?,
            }
        }
        Ok(())
    }

    fn member_block(&self, own: &Outline, block: &MemberBlock) -> Fits {
        self.scope(block.scope)?;
        self.all(block.parameters.iter().copied(), Self::binding)?;
        self.expression(block.subject)?;
        Self::name(own, block.label)?;
        if let Some((of, name)) = block.of {
            self.expression(of)?;
            Self::name(own, name)?;
        }
        if let Some((declared, itself)) = block.declares {
            self.declaration(declared)?;
            self.binding(itself)?;
        }
        self.all(block.members.iter().copied(), Self::declaration)
    }

    fn one_binding(&self, own: &Outline, binding: &Binding) -> Fits {
        Self::name(own, binding.name)?;
        match binding.role {
            Role::Instance(class) | Role::Type(class) => self.declaration(class)?,
            Role::Import(import) | Role::Star(import) => {
                require((import as usize) < own.imports.len(), "number of an import")?;
            }
            Role::LocalType(shape) => require((shape as usize) < own.types.len(), "number of a type")?,
            Role::Function
            | Role::Class
            | Role::Variable
            | Role::Parameter
            | Role::TypeParameter
            | Role::Alias
            | Role::Deleted => {}
        }
        self.all(binding.declaration, Self::declaration)?;
        self.all(binding.annotation, Self::expression)?;
        self.all(binding.value, Self::expression)
    }

    fn one_expression(&self, own: &Outline, expression: Expression) -> Fits {
        match expression {
            Expression::Name(used) => self.used(used),
            Expression::Attribute { object, name } | Expression::Property { object, name } => {
                Self::name(own, name)?;
                self.expression(object)
            }
            Expression::Call { callee } => self.expression(callee),
            Expression::Subscript { object, argument }
            | Expression::Invocation { callee: object, arguments: argument }
            | Expression::New { callee: object, arguments: argument } => {
                self.all([Some(object), argument].into_iter().flatten(), Self::expression)
            }
            Expression::Either(one, other) | Expression::Mapping(one, other) | Expression::As(one, other) => {
                self.all([one, other], Self::expression)
            }
            Expression::Search(search) => require((search as usize) < own.searches.len(), "number of a search"),
            Expression::Taken { value, pattern } => self.all([value, pattern], Self::expression),
            Expression::Path { object, name, .. } => {
                Self::name(own, name)?;
                self.expression(object)
            }
            Expression::List(one, rest) => self.all([Some(one), rest].into_iter().flatten(), Self::expression),
            Expression::Element(of)
            | Expression::Key(of)
            | Expression::Part(of, _)
            | Expression::Entered(of)
            | Expression::Await(of)
            | Expression::Instance(of)
            | Expression::TypeOf(of)
            | Expression::Promise(of)
            | Expression::Parameter(of, _)
            | Expression::Expected { callee: of, .. }
            | Expression::Pointer(of)
            | Expression::Address(of)
            | Expression::Try(of)
            | Expression::Bounded(of)
            | Expression::Sequence(of)
            | Expression::Channel(of) => self.expression(of),
            Expression::Anonymous(shape) => require((shape as usize) < own.types.len(), "number of a type"),
            Expression::Signature(signature) => Self::signature_of(own, signature),
            Expression::Super(class) => self.declaration(class),
            Expression::Object(class)
            | Expression::Structure(class)
            | Expression::This { class, .. }
            | Expression::Above { class, .. } => self.shape(class),
            Expression::Function(function) => self.entry(function, |outline| outline.functions.len(), "handle of a function"),
            Expression::Injected { name, class, .. } => {
                Self::name(own, name)?;
                class.map_or(Ok(()), |class| self.declaration(class))
            }
            Expression::Range(first) => self.all(first, Self::expression),
            Expression::Index { object, index } => self.all([Some(object), index].into_iter().flatten(), Self::expression),
            Expression::Literal | Expression::Unknown | Expression::Primitive(_) => Ok(()),
        }
    }

    fn class(&self, own: &Outline, class: &ClassShape) -> Fits {
        self.all(class.bases.iter().copied().flatten(), Self::expression)?;
        for (name, used) in class.members.iter().chain(&class.statics) {
            Self::name(own, *name)?;
            self.used(*used)?;
        }
        for evidence in &class.attributes {
            Self::name(own, evidence.name)?;
            self.all([evidence.annotation, evidence.value].into_iter().flatten(), Self::expression)?;
        }
        self.all(class.parameters.iter().copied(), Self::binding)?;
        for function in class.calls.iter().chain(&class.constructs) {
            require((*function as usize) < own.functions.len(), "number of a function")?;
        }
        self.all(class.spreads.iter().copied().chain(class.elements), Self::expression)
    }

    fn function(&self, own: &Outline, function: &FunctionShape) -> Fits {
        self.all(function.type_parameters.iter().copied(), Self::binding)?;
        self.all(function.parameters.iter().copied().flatten(), Self::expression)?;
        require(function.shape.is_none_or(|shape| (shape as usize) < own.classes.len()), "shape of a function")?;
        self.all(function.returns.iter().chain(&function.returned).copied(), Self::expression)
    }

    fn signature_of(own: &Outline, index: u32) -> Fits {
        require((index as usize) < own.signatures.len(), "number of a signature")
    }

    fn type_(&self, own: &Outline, shape: &TypeShape) -> Fits {
        if let TypeForm::Defined(of) | TypeForm::Alias(of) = shape.form {
            self.expression(of)?;
        }
        self.all(shape.parameters.iter().copied(), Self::binding)?;
        for (name, type_) in &shape.fields {
            Self::name(own, *name)?;
            self.all(*type_, Self::expression)?;
        }
        self.all(shape.embedded.iter().copied(), Self::expression)?;
        for (name, signature) in &shape.methods {
            Self::name(own, *name)?;
            Self::signature_of(own, *signature)?;
        }
        Ok(())
    }

    fn signature(&self, signature: &Signature) -> Fits {
        self.all(signature.type_parameters.iter().copied(), Self::binding)?;
        self.all(signature.parameters.iter().chain(&signature.results).copied().flatten(), Self::expression)
    }

    fn rest_of_surface(&self, surface: &Surface) -> Fits {
        let own = &surface.outline;
        for (name, used) in &surface.scope {
            Self::name(own, *name)?;
            self.used(*used)?;
        }
        self.reaching(&surface.stars)?;
        for step in surface.public.iter().flatten() {
            match *step {
                PublicStep::Add(name) | PublicStep::Remove(name) => Self::name(own, name)?,
                PublicStep::Extend(module) => self.expression(module)?,
                PublicStep::Unknown => {}
            }
        }
        for (object, name) in &surface.writes {
            self.expression(*object)?;
            Self::name(own, *name)?;
        }
        [surface.module, surface.condition].into_iter().flatten().try_for_each(|name| Self::name(own, name))
    }
}

#[cfg(test)]
mod tests {
    use crate::languages::REGISTRY;
    use crate::model::codec;

    use super::*;

    const SOURCE: &str = "import os\nfrom a import b as c\n\nclass K(c):\n    x: int = 1\n    def m(self, p=os.sep):\n        self.y = p\n        \
                          return [self.y for q in c(p) if 'é']\n\n__all__ = ['K']\nK.z = c\n";

    fn facts() -> FileFacts {
        REGISTRY[0].extract(SOURCE, REGISTRY[0].dialects()[0], &mut || false).expect("nobody stops it")
    }

    fn check(change: impl FnOnce(&mut FileFacts)) -> String {
        let mut facts = facts();
        change(&mut facts);
        validate(&facts, SOURCE).map_or_else(|misfit| misfit.part.to_owned(), |()| "fits".to_owned())
    }

    #[test]
    fn what_an_extractor_makes_fits() {
        assert_eq!(check(|_| {}), "fits");
    }

    #[test]
    fn what_points_outside_does_not_fit() {
        let inside_character = u32::try_from(SOURCE.find('é').expect("it is there") + 1).expect("short");
        assert_eq!(check(|facts| facts.lines = 99), "number of lines");
        assert_eq!(check(|facts| facts.definitions[0].parent = Some(0)), "parent of a definition");
        assert_eq!(check(|facts| facts.definitions[0].span.end = 9999), "span of a definition");
        assert_eq!(check(|facts| facts.definitions[0].span.end = inside_character), "span of a definition");
        assert_eq!(check(|facts| facts.definitions[0].name_place.column += 1), "name of a definition");
        assert_eq!(check(|facts| facts.definitions[0].end_line = 0), "lines of a definition");
        assert_eq!(check(|facts| facts.body.line_starts[1] += 1), "starts of the lines");
        assert_eq!(check(|facts| _ = facts.body.line_starts.remove(2)), "starts of the lines");
        assert_eq!(check(|facts| facts.body.references.reverse()), "order of the references");
        assert_eq!(check(|facts| facts.body.references[0].source = 99), "source of a reference");
        let last = facts().body.references.len() - 1;
        assert_eq!(check(|facts| facts.body.references[last].start = 9999), "start of a reference");
        let member = |name| Subject::Member { object: None, name };
        assert_eq!(check(|facts| facts.body.references[0].subject = member(NameId(999))), "number of a name");
        let nowhere = Handle::of_body(999);
        assert_eq!(check(|facts| facts.body.references[0].subject = Subject::Imported(nowhere)), "handle of an import");
        assert_eq!(check(|facts| facts.body.references[0].subject = Subject::Name(Use::One(nowhere))), "handle of a binding");
        let into_body = Expression::Element(Handle::of_body(0));
        let surface = |change: fn(&mut Surface, Expression)| {
            check(|facts| {
                let mut surface = facts.surface.as_ref().clone();
                change(&mut surface, into_body);
                facts.surface = surface.into();
            })
        };
        assert_eq!(surface(|surface, into_body| surface.outline.expressions.push(into_body)), "handle of an expression");
        assert_eq!(surface(|surface, _| surface.outline.declarations[0].shape = Shape::Class(99)), "shape of a class");
        assert_eq!(surface(|surface, _| surface.outline.bindings[0].role = Role::Import(99)), "number of an import");
    }

    #[test]
    fn facts_of_every_language_fit() {
        let source = "// +build linux\n\npackage a\n\nimport . \"x\"\n\ntype S[T any] struct { F func(T) []T; *M }\ntype I interface { M(a, b int); E }\n\
                      type A = map[string]chan S[int]\nfunc (s *S[T]) M(x ...T) (r T, e error) { type L struct{ q T }; l := &L{q: x[0]}; l.q.M(); \
                      for k, v := range x { k.y(v) }; return (<-r.(chan T)), I(nil) }\nvar v, w = f[int](A{k: {1: nil}})\n";
        let language = REGISTRY.iter().find(|language| language.name() == "go").expect("registered");
        let facts = language.extract(source, language.dialects()[0], &mut || false).expect("nobody stops it");
        assert_eq!(validate(&facts, source), Ok(()));
        let rust = "use a::b as c;\nmod m { pub use super::*; struct S<T>(T); impl<T: I> S<T> { fn f(&self) -> T { fn g() {} c::<T>(self.0) } } }\ntrait I { type O; }\n";
        let language = REGISTRY.iter().find(|language| language.name() == "rust").expect("registered");
        let of_rust = language.extract(rust, language.dialects()[0], &mut || false).expect("nobody stops it");
        assert_eq!(validate(&of_rust, rust), Ok(()));
        let torn = |change: fn(&mut Outline)| {
            let mut facts = of_rust.clone();
            let mut surface = facts.surface.as_ref().clone();
            change(&mut surface.outline);
            facts.surface = surface.into();
            validate(&facts, rust).map_err(|misfit| misfit.part)
        };
        const NOWHERE: fn() -> Handle = || Handle::of_surface(999);
        assert_eq!(torn(|outline| outline.scopes[1].parent = Some(NOWHERE())), Err("handle of a scope"));
        assert_eq!(torn(|outline| outline.scopes[0].items[0].meaning = ItemMeaning::Star(999)), Err("number of an import"));
        assert_eq!(torn(|outline| outline.searches[0].name = NameId(999)), Err("number of a name"));
        assert_eq!(torn(|outline| outline.blocks[0].members[0] = NOWHERE()), Err("handle of a declaration"));
        assert_eq!(torn(|outline| outline.blocks[0].subject = NOWHERE()), Err("handle of an expression"));
        let mut other = facts.clone();
        other.body.outline.types[0].fields[0].1 = Some(Handle::of_body(999));
        assert!(validate(&other, source).is_err());
    }

    #[test]
    fn damaged_bytes_are_refused_or_fit() {
        // Whatever single byte is wrong, nothing panics, and what passes can be used.
        let bytes = codec::encode(&facts()).expect("plain values");
        let mut refused = 0;
        for index in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[index] ^= flip;
                refused += usize::from(codec::decode(&damaged).is_none_or(|facts| validate(&facts, SOURCE).is_err()));
            }
        }
        assert!(refused > bytes.len(), "{refused} of {}", bytes.len() * 3);
        assert_eq!(codec::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(codec::decode(&[bytes.as_slice(), &[0]].concat()), None);
    }
}
