fn whole() {}
impl X { fn torn( { }
use a::{b, c
mod m { fn inside() { x. } }
macro_rules! n { ( => }
