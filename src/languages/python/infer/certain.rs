//! What an expression surely names.
//!
//! Must not know evidence for types. Invariant: what some file rebinds, or what may be another thing, is nothing here.

use std::sync::Arc;

use super::state::Inference;
use super::value::{End, Followed, Object, Place, Value};
use crate::model::facts::{Expression, Handle, Role, Use};

impl Inference<'_> {
    /// Returns the one thing an expression surely names: a module, or a class that nothing rebinds.
    pub fn certain(&mut self, view: u32, handle: Handle) -> Option<Value> {
        let file = self.view(view);
        match file.expression(handle)? {
            Expression::Name(Use::One(binding)) => {
                let bound = file.binding(binding)?;
                match bound.role {
                    Role::Import(import) => {
                        let followed = self.import(view, binding.in_body(), import);
                        self.certain_end(&followed)
                    }
                    Role::Class => {
                        let declaration = bound.declaration?;
                        let key = &file.declaration(declaration)?.key;
                        if self.is_rebound(&file.path, &key.qualified) {
                            return None;
                        }
                        Some(Value::Class(Object::plain(Place { view, declaration })))
                    }
                    _ => None,
                }
            }
            Expression::Name(used @ Use::Free(_)) => match self.free_values(view, used).as_slice() {
                [value @ (Value::Class(_) | Value::Module(_))] => Some(value.clone()),
                _ => None,
            },
            Expression::Attribute { object, name } => {
                let name: Arc<str> = file.outline(handle).names.get(name).into();
                match self.certain(view, object)? {
                    Value::Module(module) => {
                        let followed = self.follow(&module, &name);
                        self.certain_end(&followed)
                    }
                    value @ Value::Class(_) => {
                        let member = self.member(&value, &name).filter(|member| member.certain)?;
                        let owner = self.view(member.owner.view);
                        let Use::One(binding) = member.bound? else { return None };
                        let bound = owner.binding(binding)?;
                        let declaration = bound.declaration?;
                        if bound.role != Role::Class {
                            return None;
                        }
                        let qualified = Arc::clone(&owner.declaration(declaration)?.key.qualified);
                        if self.is_rebound(&owner.path, &qualified) {
                            return None;
                        }
                        Some(Value::Class(Object::plain(Place { view: member.owner.view, declaration })))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn certain_end(&mut self, followed: &Followed) -> Option<Value> {
        if followed.reason.is_some() {
            return None;
        }
        let [end] = followed.ends.as_slice() else { return None };
        match self.end_values(end).as_slice() {
            [value @ (Value::Module(_) | Value::Class(_))] => {
                // A variable that holds a class may be given another.
                if let (Value::Class(Object { class: place, .. }), End::Definition(target)) = (value, end) {
                    let file = &self.views[place.view as usize];
                    let key = file.declaration(place.declaration).map(|declaration| &declaration.key);
                    if file.path != target.file || key != target.definition.as_ref() {
                        return None;
                    }
                }
                Some(value.clone())
            }
            _ => None,
        }
    }
}
