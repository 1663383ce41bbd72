//! Declarations.
#![allow(dead_code)]
use std::{collections::HashMap as Map, fmt::{self, *}};
pub(in crate::a) use super::b::{c as d, self};
extern crate self as own;
#[derive(Clone)]
pub struct S<'a, T: ?Sized + 'a, const N: usize = 3>(pub &'a T, [u8; N]) where T: fmt::Debug;
enum E { A, B(u8, S<'static, str>), C { x: Box<dyn Fn(u8) -> E> } = 4 }
trait I<X = u8>: Clone + for<'b> Fn(&'b X) { type O: Default; const K: u8 = 1; fn m(&self) -> Self::O; }
impl<T> I for S<'_, T, 3> { type O = (); fn m(&self) -> <Self as I>::O {} }
static mut COUNT: u8 = vec![1, 2].len() as u8;
macro_rules! make { ($($x:ident),*) => { $(fn $x() {})* } }
make! { one, two }
#[path = "x/y.rs"] mod y;
mod z { pub mod w { pub fn f() { super::super::make!(three); } } }
unsafe extern "C" { fn outside(x: *const u8, ...); }
