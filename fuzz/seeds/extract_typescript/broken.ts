interface A { b: ; (x
type T = { [K in : X
class C<T extends { m(: void
export default abstract
enum { A =
namespace N. { export
declare module 'x' { import
function f(this: , a?: b!: ): x is {
let x: A<B<C>> = <D>(e as
import type from, { type } from 'x'
@a.b( @c class { @d e() }
f<A,(b>?.
