//! What an expression denotes: a module, a type, a value, a trait.
//!
//! Must not know references. Invariant: only what is declared is evidence; of a body nothing is believed but the file's own locals.

use std::rc::Rc;

use super::Inference;
use super::names::Found;
use super::types::{Answer, Function, Meaning, Place, RANGE, Trait, Type, What};
use super::unify::put;
use crate::languages::rust::modules::Module;
use crate::model::facts::{Expression, Handle, NameId, Role, Shape, Space, TypeForm, Use};
use crate::model::{Reason, SymbolKind, Target};

/// Longest path that is looked through for where it begins.
const MAX_PATH: usize = 64;

impl Inference<'_> {
    /// Returns what an expression of a view comes to.
    pub(in crate::languages::rust) fn answer(&mut self, view: u32, handle: Handle) -> Rc<Answer> {
        if let Some(known) = self.answers.get(&(view, handle)) {
            return Rc::clone(known);
        }
        // Whoever comes here again on the way to the answer has none.
        self.answers.insert((view, handle), Rc::new(Answer::nothing(Reason::DynamicReceiver)));
        let answer = self.deeper(Answer::nothing(Reason::DynamicReceiver), |this| this.compute(view, handle));
        let answer = Rc::new(Answer { what: answer.what, meaning: answer.meaning.bounded() });
        self.answers.insert((view, handle), Rc::clone(&answer));
        answer
    }

    pub(in crate::languages::rust) fn type_of(&mut self, view: u32, handle: Handle) -> Type {
        self.answer(view, handle).meaning.clone().type_()
    }

    fn compute(&mut self, index: u32, handle: Handle) -> Answer {
        let view = self.view(index);
        let Some(expression) = view.expression(handle) else { return Answer::nothing(Reason::DynamicReceiver) };
        let meaning = match expression {
            Expression::Search(search) => {
                let Some(search) = view.outline(handle).searches.get(search as usize).copied() else {
                    return Answer::nothing(Reason::UnresolvedName);
                };
                return self.searched(index, search.scope, view.text(search.name, handle), search.space);
            }
            Expression::Path { object, name, space } => return self.path(index, handle, object, name, space),
            Expression::Name(Use::One(binding)) => self.binding(index, binding),
            Expression::Attribute { object, name } => {
                let receiver = self.type_of(index, object);
                Meaning::Value(self.field(&receiver, view.text(name, handle)))
            }
            Expression::Invocation { callee, arguments } => Meaning::Value(self.call(index, callee, arguments)),
            Expression::Subscript { object, argument: Some(argument) } => return self.applied(index, object, argument),
            Expression::Index { object, index: at } => {
                let object = self.type_of(index, object);
                let at = at.map_or(Type::Unknown, |at| self.type_of(index, at));
                Meaning::Value(self.indexed(&object, &at))
            }
            Expression::Primitive(primitive) => Meaning::Value(super::known::primitive(primitive)),
            Expression::Range(first) => {
                let first = first.map_or(Type::Unknown, |first| self.type_of(index, first));
                Meaning::Value(Type::std(RANGE, [first]))
            }
            Expression::Promise(inner) => Meaning::Value(Type::std("Future", [self.type_of(index, inner)])),
            Expression::Await(inner) => {
                let inner = self.type_of(index, inner);
                Meaning::Value(self.awaited(&inner))
            }
            Expression::Either(one, other) => Meaning::Value(self.either(index, one, other)),
            Expression::List(..) => {
                let parts: Vec<Type> = self.list(index, Some(handle)).into_iter().map(|part| self.type_of(index, part)).collect();
                Meaning::Value(Type::Tuple(parts.into()))
            }
            Expression::Element(inner) => {
                let inner = self.type_of(index, inner);
                Meaning::Value(self.iterated(&inner))
            }
            Expression::Part(inner, part) => {
                let inner = self.type_of(index, inner);
                Meaning::Value(self.field(&inner, &part.to_string()))
            }
            Expression::Taken { value, pattern } => Meaning::Value(self.taken(index, value, pattern)),
            Expression::Try(inner) => Meaning::Value(match self.type_of(index, inner).settled() {
                type_ @ Type::Std { name: "Option" | "Result", .. } => type_.argument(0),
                Type::External => Type::External,
                _ => Type::Unknown,
            }),
            Expression::Instance(inner) => Meaning::Value(self.type_of(index, inner)),
            Expression::Pointer(inner) => match self.answer(index, inner).meaning.clone() {
                Meaning::Value(value) => Meaning::Value(self.pointed_to(&value)),
                other => match other.type_() {
                    Type::Unknown => Meaning::Unknown,
                    type_ => Meaning::Type(Type::Raw(Rc::new(type_))),
                },
            },
            Expression::Address(inner) => match self.answer(index, inner).meaning.clone() {
                Meaning::Value(value) => Meaning::Value(value.reference()),
                Meaning::Constructor(value, _) => Meaning::Value(value.reference()),
                other => Meaning::Type(other.type_().reference()),
            },
            Expression::Sequence(inner) => match self.answer(index, inner).meaning.clone() {
                Meaning::Value(value) => Meaning::Value(Type::Sequence(Rc::new(value))),
                other => Meaning::Type(Type::Sequence(Rc::new(other.type_()))),
            },
            Expression::Signature(signature) => {
                let signature = Place { view: index, handle: handle.beside(signature) };
                Meaning::Value(Type::Function(Function { signature, substitution: Rc::from([]) }))
            }
            Expression::Bounded(list) => {
                let traits = self.traits_in(index, Some(list));
                let iterator = traits.iter().find_map(|one| match one {
                    Trait::External { name, arguments } => super::known::iterator(name, arguments),
                    _ => None,
                });
                Meaning::Type(match iterator {
                    Some(iterator) if traits.len() == 1 => iterator,
                    _ => Type::Traits(traits.into()),
                })
            }
            Expression::Anonymous(shape) => {
                let shape = Place { view: index, handle: handle.beside(shape) };
                Meaning::Type(Type::Payload { shape, substitution: Rc::from([]) })
            }
            Expression::Parameter(expected, number) => match view.expression(expected) {
                Some(Expression::Expected { callee, argument }) => {
                    Meaning::Value(self.closure_parameter(index, callee, argument, number))
                }
                _ => Meaning::Unknown,
            },
            Expression::Literal => Meaning::Value(Type::Unknown),
            _ => Meaning::Unknown,
        };
        let what = match &meaning {
            Meaning::Unknown => What::Nothing(Reason::DynamicReceiver),
            _ => What::Local,
        };
        Answer { what, meaning }
    }

    /// Returns the entries of a list.
    pub(super) fn list(&self, view: u32, list: Option<Handle>) -> Vec<Handle> {
        let view = self.view(view);
        let mut entries = Vec::new();
        let mut next = list;
        while let Some(handle) = next {
            let Some(Expression::List(entry, rest)) = view.expression(handle) else { break };
            entries.push(entry);
            next = rest;
        }
        entries
    }

    fn binding(&mut self, index: u32, handle: Handle) -> Meaning {
        let view = self.view(index);
        let Some(binding) = view.outline(handle).bindings.get(handle.index()) else { return Meaning::Unknown };
        match (binding.role, binding.annotation, binding.value) {
            (Role::TypeParameter, ..) => Meaning::Type(Type::Parameter(Place { view: index, handle })),
            (Role::Alias, Some(target), _) => match self.answer(index, target).meaning.clone() {
                Meaning::Modules(_) | Meaning::Unknown => Meaning::Unknown,
                // `Self` of a struct names its type and makes its values.
                other => Meaning::Type(self.whole(other.type_())),
            },
            (Role::Variable, _, Some(value)) => Meaning::Value(self.type_of(index, value)),
            // A constant among the type parameters.
            (Role::Parameter, ..) => Meaning::Value(Type::Unknown),
            _ => Meaning::Unknown,
        }
    }

    /// Gives a declared type its own parameters as arguments where it has none.
    fn whole(&mut self, type_: Type) -> Type {
        match &type_ {
            Type::Named { at, arguments } if arguments.is_empty() => {
                let Some((shape, _)) = self.shape_of(*at, arguments) else { return type_ };
                let view = self.view(at.view);
                let parameters = view.shape(shape.handle).map(|shape| shape.parameters.clone()).unwrap_or_default();
                let arguments = parameters.into_iter().map(|handle| Type::Parameter(Place { view: at.view, handle })).collect();
                Type::Named { at: *at, arguments }
            }
            _ => type_,
        }
    }

    fn searched(&mut self, view: u32, scope: Handle, name: &str, space: Space) -> Answer {
        if space == Space::Type
            && let primitive @ Type::Basic(_) = super::known::type_named(name)
        {
            return Answer { what: What::Nothing(Reason::ExternalImport), meaning: Meaning::Type(primitive) };
        }
        let spaces = spaces(space);
        let found: Vec<(Space, Found)> =
            spaces.iter().filter_map(|space| Some((*space, self.search(view, scope, name, *space)?))).collect();
        self.of_found(found, space, Reason::UnresolvedName)
    }

    /// Returns what was found in one or several spaces of names.
    fn of_found(&mut self, found: Vec<(Space, Found)>, asked: Space, otherwise: Reason) -> Answer {
        let mut answers = found.into_iter().map(|(space, found)| self.of_one(found, space));
        let Some(mut first) = answers.next() else { return Answer::nothing(otherwise) };
        let others: Vec<Answer> = answers.collect();
        for other in others {
            match (&mut first.what, other.what) {
                (What::Targets { targets, reason, .. }, What::Targets { targets: more, reason: why, .. })
                    if asked == Space::Every =>
                {
                    targets.extend(more.into_iter().filter(|target| !targets.contains(target)).collect::<Vec<_>>());
                    *reason = reason.or(why);
                }
                (What::Nothing(_), what @ (What::Targets { .. } | What::Modules(_) | What::Local)) => {
                    first = Answer { what, meaning: other.meaning };
                }
                (What::Modules(modules), What::Targets { mut targets, rule, reason, also }) if asked == Space::Every => {
                    // A module and a function of one name are both imported.
                    let files = modules.iter().filter(|module| module.inner.is_empty());
                    targets.extend(files.map(|module| Target { file: module.file.clone(), definition: None }));
                    first = Answer { what: What::Targets { targets, rule, reason, also }, meaning: first.meaning };
                }
                _ => {}
            }
        }
        first
    }

    fn of_one(&mut self, found: Found, space: Space) -> Answer {
        match found {
            Found::Items { targets, modules, rule, reason } => {
                if targets.is_empty() {
                    if modules.is_empty() {
                        return Answer::nothing(Reason::UnresolvedImport);
                    }
                    let meaning = Meaning::Modules(modules.clone().into());
                    return Answer { what: What::Modules(modules), meaning };
                }
                let meaning =
                    if modules.is_empty() { self.meaning_of(&targets, reason, space) } else { Meaning::Modules(modules.into()) };
                Answer { what: What::Targets { targets, rule, reason, also: Rc::from([]) }, meaning }
            }
            Found::Variant { of, name } => {
                let Some(at) = self.place_of(&of) else { return Answer::nothing(Reason::UnresolvedName) };
                let type_ = Type::Named { at, arguments: Rc::from([]) };
                self.variant_of(at, &type_, &name).unwrap_or(Answer::nothing(Reason::UnresolvedName))
            }
            Found::External(path) => match (last_of(&path), space) {
                ("None", Space::Value) => Answer {
                    what: What::Nothing(Reason::ExternalImport),
                    meaning: Meaning::Value(Type::std("Option", [Type::Unknown])),
                },
                _ => Answer::external(path),
            },
            Found::Missing => Answer::nothing(Reason::UnresolvedImport),
        }
    }

    /// Returns what the targets of a name denote: where it is not certain which is meant, one of several.
    fn meaning_of(&mut self, targets: &[Target], reason: Option<Reason>, space: Space) -> Meaning {
        let [target] = targets else {
            let meanings: Vec<Meaning> = targets.iter().map(|target| self.definition(target, space)).collect();
            return Meaning::one_of(meanings);
        };
        let meaning = self.definition(target, space);
        match reason {
            None => meaning,
            Some(_) => meaning.in_doubt(),
        }
    }

    /// Returns what a definition denotes.
    pub(super) fn definition(&mut self, target: &Target, space: Space) -> Meaning {
        let Some(at) = self.place_of(target) else { return Meaning::Unknown };
        let view = self.view(at.view);
        let Some(declared) = view.declaration(at.handle) else { return Meaning::Unknown };
        match declared.shape {
            Shape::Type(shape) => {
                let shape = at.handle.beside(shape);
                match view.shape(shape).map(|shape| shape.form) {
                    Some(TypeForm::Trait) => Meaning::Trait(Trait::Local { at, arguments: Rc::from([]) }),
                    Some(TypeForm::Alias(target)) => {
                        let type_ = self.type_of(at.view, target);
                        if space == Space::Value { Meaning::Constructor(type_, None) } else { Meaning::Type(type_) }
                    }
                    _ => {
                        let type_ = Type::Named { at, arguments: Rc::from([]) };
                        match space {
                            Space::Value => Meaning::Constructor(type_, Some(Place { view: at.view, handle: shape })),
                            _ => Meaning::Type(type_),
                        }
                    }
                }
            }
            Shape::Signature(signature) => {
                let signature = Place { view: at.view, handle: at.handle.beside(signature) };
                let function = Function { signature, substitution: Rc::from([]) };
                match declared.kind {
                    SymbolKind::Constant | SymbolKind::Variable => Meaning::Value(self.result_of(&function)),
                    _ => Meaning::Value(Type::Function(function)),
                }
            }
            _ => Meaning::Unknown,
        }
    }

    /// Returns the module in which a path stands.
    fn module_around(&self, view: u32, path: Handle) -> (Module, Option<Handle>) {
        let file = self.view(view);
        let mut handle = path;
        for _ in 0..MAX_PATH {
            match file.expression(handle) {
                Some(Expression::Path { object, .. } | Expression::Subscript { object, .. }) => handle = object,
                Some(Expression::Search(search)) => {
                    if let Some(search) = file.outline(handle).searches.get(search as usize) {
                        return (self.module_of(view, search.scope), Some(search.scope));
                    }
                    break;
                }
                _ => break,
            }
        }
        (Module::of_file(&file.path), None)
    }

    fn path(&mut self, index: u32, handle: Handle, object: Handle, name: NameId, space: Space) -> Answer {
        let view = self.view(index);
        let name = view.text(name, handle).to_owned();
        match view.expression(object) {
            Some(Expression::As(type_, of)) => return self.qualified(index, type_, of, &name),
            Some(Expression::Search(search)) => {
                let search = view.outline(object).searches.get(search as usize);
                if let Some(search) = search.filter(|search| view.text(search.name, object) == "::") {
                    let found = self.at_root(index, search.scope, &name);
                    return self.of_one(found, space);
                }
            }
            _ => {}
        }
        let before = self.answer(index, object);
        match before.meaning.clone() {
            Meaning::Modules(modules) => {
                let (from, _) = self.module_around(index, handle);
                let outer = Found::Items { targets: Vec::new(), modules: modules.to_vec(), rule: "rust_path", reason: None };
                let found: Vec<(Space, Found)> = spaces(space)
                    .iter()
                    .filter_map(|space| Some((*space, self.member_of(&outer, &name, *space, &from)?)))
                    .collect();
                self.of_found(found, space, Reason::UnresolvedImport)
            }
            Meaning::Type(type_) | Meaning::Constructor(type_, _) => {
                let mut answer = self.associated(&type_, &name);
                // What hangs on which of several types is meant is no surer than that.
                if let (What::Targets { reason: Some(why), .. }, What::Targets { reason: reason @ None, .. }) =
                    (&before.what, &mut answer.what)
                {
                    *reason = Some(*why);
                }
                answer
            }
            Meaning::Trait(Trait::Local { at, .. }) => {
                self.in_trait(at, &name, None).unwrap_or(Answer::nothing(Reason::UnresolvedMember))
            }
            Meaning::Trait(_) => Answer::nothing(Reason::ExternalImport),
            Meaning::External(path) => match super::known::type_named(&path) {
                Type::External => Answer::external(format!("{path}::{name}").into()),
                type_ => self.associated(&type_, &name),
            },
            Meaning::Foreign(..) | Meaning::Value(_) | Meaning::Unknown => match &before.what {
                What::Nothing(reason) => Answer::nothing(*reason),
                _ => Answer::nothing(Reason::DynamicReceiver),
            },
        }
    }

    /// Returns what `<T as Trait>::name` means: the member by which the type has the trait, or else the trait's own.
    fn qualified(&mut self, index: u32, type_: Handle, of: Handle, name: &str) -> Answer {
        let type_ = self.type_of(index, type_);
        let Meaning::Trait(one @ Trait::Local { .. }) = self.answer(index, of).meaning.clone() else {
            return Answer::nothing(Reason::ExternalImport);
        };
        let Trait::Local { at, .. } = &one else { return Answer::nothing(Reason::ExternalImport) };
        if matches!(type_, Type::Named { .. } | Type::Std { .. } | Type::Basic(_)) {
            let mut fitting = self.members(&type_, name);
            fitting.retain(|fitting| fitting.by.as_ref().is_some_and(|by| super::unify::same(by, &one)));
            if let Some(answer) = self.of_fitting(fitting) {
                return answer;
            }
        }
        self.in_trait(*at, name, Some(&type_)).unwrap_or(Answer::nothing(Reason::UnresolvedMember))
    }

    /// Returns what something with type arguments denotes.
    fn applied(&mut self, index: u32, object: Handle, argument: Handle) -> Answer {
        let before = self.answer(index, object);
        let entries = self.list(index, Some(argument));
        let given = |this: &mut Self| -> Rc<[Type]> { entries.iter().map(|entry| this.type_of(index, *entry)).collect() };
        let meaning = match before.meaning.clone() {
            Meaning::Type(type_) => {
                let given = given(self);
                let alias = match &before.what {
                    What::Targets { targets, .. } => targets.first().and_then(|target| self.alias_parameters(target)),
                    _ => None,
                };
                Meaning::Type(match (alias, type_) {
                    (Some(parameters), type_) => {
                        let entries: Vec<(Place, Type)> = parameters.into_iter().zip(given.iter().cloned()).collect();
                        put(&type_, &entries)
                    }
                    (None, Type::Named { at, .. }) => Type::Named { at, arguments: given },
                    (None, Type::OneOf(options)) => Type::one_of(options.iter().map(|option| match option {
                        Type::Named { at, .. } => Type::Named { at: *at, arguments: Rc::clone(&given) },
                        other => other.clone(),
                    })),
                    (None, Type::Std { name, .. }) => Type::Std { name, arguments: given },
                    (None, other) => other,
                })
            }
            Meaning::Constructor(Type::Named { at, .. }, held) => {
                Meaning::Constructor(Type::Named { at, arguments: given(self) }, held)
            }
            Meaning::Trait(Trait::Local { at, .. }) => Meaning::Trait(Trait::Local { at, arguments: given(self) }),
            Meaning::External(path) => match super::known::type_named(&path) {
                Type::Std { name, .. } => Meaning::Type(Type::Std { name, arguments: given(self) }),
                _ => {
                    let given = given(self);
                    match super::known::iterator(last_of(&path), &given) {
                        Some(iterator) => Meaning::Type(iterator),
                        None => Meaning::External(path),
                    }
                }
            },
            Meaning::Value(Type::Function(function)) => {
                let given = given(self);
                Meaning::Value(Type::Function(self.with_arguments(&function, &given)))
            }
            other => other,
        };
        Answer { what: before.what.clone(), meaning }
    }

    fn alias_parameters(&mut self, target: &Target) -> Option<Vec<Place>> {
        let at = self.place_of(target)?;
        let view = self.view(at.view);
        let Shape::Type(shape) = view.declaration(at.handle)?.shape else { return None };
        let shape = view.shape(at.handle.beside(shape))?;
        let parameters = shape.parameters.iter().map(|handle| Place { view: at.view, handle: *handle }).collect();
        matches!(shape.form, TypeForm::Alias(_)).then_some(parameters)
    }

    fn either(&mut self, index: u32, one: Handle, other: Handle) -> Type {
        let first = self.type_of(index, one);
        let general = |type_: &Type| matches!(type_, Type::Basic(name) if name.starts_with('{'));
        if first.is_whole() && !general(&first) {
            return first;
        }
        let second = self.type_of(index, other);
        match (&first, &second) {
            (Type::Unknown, _) => second,
            (first, Type::Unknown) if general(first) => first.clone(),
            (first, _) if general(first) => second,
            // What one leaves out the other may tell.
            (Type::Named { at, .. }, Type::Named { at: same, .. }) if at == same && second.is_whole() => second,
            (Type::Std { name, .. }, Type::Std { name: same, .. }) if name == same => second,
            (Type::Reference(_), Type::Reference(_)) => second,
            _ => first,
        }
    }

    /// Returns what is got of a value by an index.
    fn indexed(&mut self, object: &Type, index: &Type) -> Type {
        match object.behind().settled() {
            Type::Sequence(inner) => super::known::part(inner, index),
            type_ @ Type::Std { name: "Vec", .. } => super::known::part(&type_.argument(0), index),
            type_ @ Type::Std { name: "VecDeque", .. } => type_.argument(0),
            type_ @ Type::Std { name: "HashMap" | "BTreeMap", .. } => type_.argument(1),
            Type::Std { name: "String", .. } | Type::Basic("str") => Type::Basic("str"),
            type_ @ Type::Named { .. } => {
                let type_ = type_.clone();
                self.index_output(&type_, index)
            }
            type_ => match super::known::behind_pointer(type_) {
                Some(inner) if inner != *type_ => self.deeper(Type::Unknown, |this| this.indexed(&inner, index)),
                _ => Type::Unknown,
            },
        }
    }

    /// Returns what a type of the repository gives for an index: where it has several implementations, the one that the index fits.
    fn index_output(&mut self, type_: &Type, index: &Type) -> Type {
        let mut fitting = self.members(type_, "Output");
        fitting.retain(|fitting| matches!(&fitting.by, Some(Trait::External { name, .. }) if &**name == "Index"));
        if fitting.len() > 1 {
            if matches!(index, Type::Unknown | Type::External | Type::OneOf(_) | Type::Basic("{number}")) {
                return Type::Unknown;
            }
            fitting.retain(|one| {
                let wanted = self.indexed_by(one.place);
                let wanted = put(&wanted, &one.substitution);
                // Only what is surely of another type is left out, and a reference is one.
                matches!(wanted, Type::Reference(_)) == matches!(index, Type::Reference(_)) && {
                    super::unify::fits(&wanted, index, &mut super::unify::Found::default(), 0)
                } || wanted.is_unknown()
                    || matches!(wanted, Type::External | Type::Parameter(_))
            });
        }
        match &fitting[..] {
            [one] => match self.meaning_of_member(one) {
                Meaning::Type(type_) => type_,
                _ => Type::Unknown,
            },
            _ => Type::Unknown,
        }
    }

    /// Returns the argument of the trait of a member's block.
    fn indexed_by(&mut self, member: Place) -> Type {
        let file = self.view(member.view);
        let block = file.block_of(member.handle).and_then(|block| file.block(block));
        let Some((of, _)) = block.and_then(|block| block.of) else { return Type::Unknown };
        match file.expression(of) {
            Some(Expression::Subscript { argument: Some(list), .. }) => match self.list(member.view, Some(list)).first() {
                Some(first) => self.type_of(member.view, *first),
                None => Type::Unknown,
            },
            _ => Type::Unknown,
        }
    }

    /// Returns what waiting for a value gives.
    fn awaited(&mut self, value: &Type) -> Type {
        match value.behind().settled() {
            type_ @ Type::Std { name: "Future", .. } => type_.argument(0),
            type_ @ Type::Std { name: "Box" | "Pin", .. } => {
                let inner = type_.argument(0);
                self.deeper(Type::Unknown, |this| this.awaited(&inner))
            }
            type_ @ Type::Named { .. } => {
                let type_ = type_.clone();
                let output = self.associated_type(&type_, "Output", "IntoFuture");
                output.or_else(|| self.associated_type(&type_, "Output", "Future")).unwrap_or(Type::Unknown)
            }
            type_ @ (Type::Parameter(_) | Type::Traits(_)) => {
                let type_ = type_.clone();
                let future = self.traits_of(&type_).into_iter().find_map(|one| match one {
                    Trait::External { name, arguments } if matches!(&*name, "Future" | "IntoFuture") => {
                        arguments.first().cloned()
                    }
                    _ => None,
                });
                future.unwrap_or(Type::Unknown)
            }
            Type::External => Type::External,
            _ => Type::Unknown,
        }
    }

    /// Returns the associated type that a type has by a trait from outside, unless it has several.
    pub(super) fn associated_type(&mut self, type_: &Type, name: &str, by: &str) -> Option<Type> {
        let mut fitting = self.members(type_, name);
        fitting.retain(|fitting| matches!(&fitting.by, Some(Trait::External { name, .. }) if &**name == by));
        let types: Vec<Type> = fitting
            .iter()
            .map(|one| match self.meaning_of_member(one) {
                Meaning::Type(type_) => type_,
                _ => Type::Unknown,
            })
            .collect();
        if types.is_empty() { None } else { Some(Type::one_of(types)) }
    }

    /// Returns what iterating over a value gives.
    pub(super) fn iterated(&mut self, type_: &Type) -> Type {
        match type_.behind() {
            Type::OneOf(options) => {
                let options = Rc::clone(options);
                Type::one_of(options.iter().map(|option| self.iterated(option)))
            }
            Type::Named { .. } => {
                let named = type_.behind().clone();
                if let Some(item) = self.associated_type(&named, "Item", "Iterator") {
                    return item;
                }
                let item = self.associated_type(&named, "Item", "IntoIterator").unwrap_or(Type::Unknown);
                if matches!(type_, Type::Reference(_)) && !matches!(item, Type::Reference(_)) { item.reference() } else { item }
            }
            Type::Parameter(_) | Type::Traits(_) => {
                let bare = type_.behind().clone();
                let traits = self.traits_of(&bare);
                traits
                    .iter()
                    .find_map(|one| match one {
                        Trait::External { name, arguments } => {
                            super::known::iterator(name, arguments).map(|iterator| iterator.argument(0))
                        }
                        _ => None,
                    })
                    .unwrap_or(Type::Unknown)
            }
            _ => super::known::element(type_),
        }
    }

    fn pointed_to(&mut self, value: &Type) -> Type {
        match value.settled() {
            Type::Reference(inner) => (**inner).clone(),
            Type::External => Type::External,
            named @ Type::Named { .. } => {
                let named = named.clone();
                self.dereferenced(&named).unwrap_or(Type::Unknown)
            }
            other => super::known::behind_pointer(other).unwrap_or(Type::Unknown),
        }
    }

    /// Returns what a value holds when it is what a pattern says.
    fn taken(&mut self, index: u32, value: Handle, pattern: Handle) -> Type {
        let value = self.type_of(index, value);
        let behind = value.behind().settled().behind();
        match self.answer(index, pattern).meaning.clone() {
            Meaning::Constructor(Type::Named { at, .. }, Some(shape)) => {
                let substitution = match behind {
                    Type::Named { at: same, arguments } if *same == at => {
                        self.shape_of(at, arguments).map_or_else(|| Rc::from([]), |(_, substitution)| substitution)
                    }
                    _ => Rc::from([]),
                };
                Type::Payload { shape, substitution }
            }
            Meaning::Type(Type::Named { at, arguments }) => {
                let arguments = match behind {
                    Type::Named { at: same, arguments } if *same == at => Rc::clone(arguments),
                    _ => arguments,
                };
                match self.shape_of(at, &arguments) {
                    Some((shape, substitution)) => Type::Payload { shape, substitution },
                    None => Type::Unknown,
                }
            }
            Meaning::External(path) => match (last_of(&path), behind) {
                ("Some", Type::Std { name: "Option", .. }) | ("Ok", Type::Std { name: "Result", .. }) => {
                    Type::Tuple(Rc::from([behind.argument(0)]))
                }
                ("Err", Type::Std { name: "Result", .. }) => Type::Tuple(Rc::from([behind.argument(1)])),
                _ => Type::Unknown,
            },
            _ => Type::Unknown,
        }
    }
}

/// Returns the spaces in which a name is looked for.
fn spaces(space: Space) -> &'static [Space] {
    match space {
        Space::Type => &[Space::Type],
        Space::Value => &[Space::Value],
        Space::Macro => &[Space::Macro],
        Space::Every => &[Space::Type, Space::Value, Space::Macro],
        Space::Tokens => &[Space::Type, Space::Value],
    }
}

/// Returns the last part of a path.
pub(super) fn last_of(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}
