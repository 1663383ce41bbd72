import { a, from './b'
export {
class { m( { }
const { a: { b: = require('x'
function f(a, { b, ) => {
f(`${`${ "
</div><A b={ <C></A>
x = { y: , ...  get set async *
export * as from ''
 été→𝄞 ?.[ #p new.target() import.meta import(
